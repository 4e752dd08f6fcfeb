/* SPDX-License-Identifier: Apache-2.0
 *
 * run_files.c: reads only names, sizes and first bytes; importers read the rest of the files.
 */
#include "load/run_files.h"

#include "base/text.h"
#include "importers/kineto/kineto_import.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stepscope/format.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FILE_NAME,
	FILE_BYTES,
	FILE_PID,
	FILE_ROLE,
	FILE_RANK,
	FILE_SEGMENT,
	FILE_CLOCK,
	FILE_COLUMNS
};

static const struct table_column columns[FILE_COLUMNS] = {
	[FILE_NAME] = {.name = "file", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "name of the file"},
	[FILE_BYTES] = {.name = "bytes",
                        .title = "size",
                        .type = TABLE_INT,
                        .unit = UNIT_BYTES,
                        .definition = "size of the file"},
	[FILE_PID] = {.name = "pid", .type = TABLE_INT, .definition = "process that recorded it"},
	[FILE_ROLE] = {.name = "role",
                       .type = TABLE_TEXT,
                       .definition = "role of the process: trainer, worker, launcher, host, imported"},
	[FILE_RANK] = {.name = "rank", .type = TABLE_INT, .definition = "rank of the process"},
	[FILE_SEGMENT] = {.name = "segment",
                          .type = TABLE_INT,
                          .definition = "number of the file among those of its process"},
	[FILE_CLOCK] = {.name = "clock", .type = TABLE_TEXT, .definition = "source of the times"},
};

static void set_header(struct table *table, int row, const struct stepscope_segment_header *header)
{
	static const char *const roles[] = {"trainer", "worker", "launcher", "host", "imported"};
	static const char *const clocks[] = {NULL, "processor's counter (tsc)", "processor's counter (cntvct)",
	                                     "monotonic (system call)", "nanoseconds of the trace"};

	table_set_int(table, row, FILE_PID, header->pid);
	table_set_int(table, row, FILE_SEGMENT, header->segment);
	table_set_text(table, row, FILE_ROLE,
	               header->role < sizeof(roles) / sizeof(roles[0]) ? roles[header->role] : "unknown");
	if (header->rank >= 0)
		table_set_int(table, row, FILE_RANK, header->rank);
	else
		table_set_missing(table, row, FILE_RANK, "no launcher set a rank");
	if (header->clock > 0 && header->clock < sizeof(clocks) / sizeof(clocks[0]))
		table_set_text(table, row, FILE_CLOCK, clocks[header->clock]);
	else
		table_set_missing(table, row, FILE_CLOCK, "unknown to this version");
}

/* Returns true if it is not a file, or if `stepscope convert` made it from other files, which may be in the same
 * folder. */
static bool run_files_add_file(struct table *table, int directory, const char *name)
{
	struct stepscope_segment_header header = {0};
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat info;
	int row;

	if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
		if (fd >= 0)
			close(fd);
		return true;
	}
	row = table_row(table);
	table_set_text(table, row, FILE_NAME, name);
	table_set_int(table, row, FILE_BYTES, info.st_size);
	if (pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	    !memcmp(header.magic, STEPSCOPE_SEGMENT_MAGIC, sizeof(header.magic)))
		set_header(table, row, &header);
	else
		for (int column = FILE_PID; column < FILE_COLUMNS; column++)
			table_set_missing(table, row, column,
			                  text_ends_with(name, ".ssr") ? "the file has no readable header"
			                                               : "it is not a recording of stepscope");
	close(fd);
	return header.flags & STEPSCOPE_SEGMENT_CONVERTED;
}

/* Returns true for a trace that the importer would find, by its name or its contents. */
static bool is_trace(const char *folder, const char *name)
{
	char path[PATH_MAX];
	struct stat info;
	if (text_ends_with(name, ".json") || text_ends_with(name, ".gz") || text_ends_with(name, ".zst"))
		return true;
	return *name != '.' && snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path) &&
	       stat(path, &info) == 0 && S_ISREG(info.st_mode) && kineto_is_sure(path);
}

/* Returns false if no file belongs to a recorded run. */
static bool add_files(struct table *table, const char *folder, DIR *directory, bool is_traces)
{
	const struct dirent *entry;
	bool is_of_run = false;

	rewinddir(directory);
	while ((entry = readdir(directory))) {
		const char *name = entry->d_name;
		if (is_traces ? is_trace(folder, name) : text_ends_with(name, ".ssr"))
			is_of_run |= !run_files_add_file(table, dirfd(directory), name);
	}
	return is_of_run;
}

void run_files_table(struct table *table, const char *path)
{
	DIR *directory = opendir(path);

	table_init(table, "files", "Files", "recordings of the run");
	table_columns(table, columns, FILE_COLUMNS);
	if (strcmp(path, "-") == 0)
		table->empty = "it was read from standard input";
	else if (!directory)
		run_files_add_file(table, AT_FDCWD, path);
	if (!directory)
		return;
	if (!add_files(table, path, directory, false)) /* otherwise traces of another profiler */
		add_files(table, path, directory, true);
	closedir(directory);
	table_sort(table, FILE_NAME, true);
}
