/* SPDX-License-Identifier: Apache-2.0
 *
 * run_process.c: parses /proc/PID/stat and /proc/PID/io and asks pidfds.
 */
#include "run/run_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's struct pidfd_info in its first version; the headers of Debian 12 lack it. */
struct pidfd_answer {
	uint64_t mask;
	uint64_t cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};
_Static_assert(sizeof(struct pidfd_answer) == 64, "PIDFD_INFO_SIZE_VER0");
#define PIDFD_ASK _IOWR(0xFF, 11, struct pidfd_answer)
#define PIDFD_ASK_EXIT (UINT64_C(1) << 3)

/* Reads a small file of /proc as text. Returns its length, or -1 if it cannot be read. */
static ssize_t run_process_read_text(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return -1;
	length = read(fd, text, bytes - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	return length;
}

static uint64_t ticks_to_ns(uint64_t ticks)
{
	long hz = sysconf(_SC_CLK_TCK);

	return ticks * (UINT64_C(1000000000) / (uint64_t)(hz > 0 ? hz : 100));
}

bool process_read(struct process_facts *facts, pid_t pid)
{
	char path[64], text[1024];
	uint64_t field[53] = {0};
	char *at, *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (run_process_read_text(path, text, sizeof(text)) <= 0)
		return false;
	/* the name may contain anything: the fields start after the last bracket */
	at = strrchr(text, ')');
	if (!at || at[1] != ' ' || !at[2])
		return false;
	*facts = (struct process_facts){.pid = pid, .state = at[2]};
	at += 3;
	for (int i = 4; i <= 52; i++) {
		field[i] = strtoull(at, &end, 10);
		if (end == at)
			break;
		at = end;
	}
	facts->parent = (pid_t)field[4];
	facts->user_ns = ticks_to_ns(field[14] + field[16]);
	facts->system_ns = ticks_to_ns(field[15] + field[17]);
	facts->start_time = field[22];
	facts->wait_status = (int)field[52];
	return true;
}

void process_read_io(struct process_io *io, pid_t pid)
{
	char path[64], text[512];
	const char *reads, *writes;

	io->is_known = false;
	snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
	if (run_process_read_text(path, text, sizeof(text)) <= 0)
		return;
	reads = strstr(text, "\nread_bytes: ");
	writes = strstr(text, "\nwrite_bytes: ");
	if (!reads || !writes)
		return;
	io->read_bytes = strtoull(reads + strlen("\nread_bytes: "), NULL, 10);
	io->write_bytes = strtoull(writes + strlen("\nwrite_bytes: "), NULL, 10);
	io->is_known = true;
}

/* ---- namespaces ---- */

#define NESTED_MAX 33 /* the kernel's limit of depth */

/* Reads the ids of a process, from the namespace of /proc down to its own. Returns their number, 0: unknown. */
static int read_ids(pid_t *ids, pid_t in_proc)
{
	char path[64], text[8192], *at, *end;
	int count = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)in_proc);
	if (run_process_read_text(path, text, sizeof(text)) <= 0 || !(at = strstr(text, "\nNSpid:")))
		return 0;
	for (at += strlen("\nNSpid:"); count < NESTED_MAX && *at != '\n'; at = end) {
		ids[count] = (pid_t)strtol(at, &end, 10);
		if (end == at)
			break;
		count++;
	}
	return count;
}

static uint64_t namespace_of(pid_t in_proc)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)in_proc);
	return stat(path, &status) == 0 ? status.st_ino : 0;
}

void process_view_init(struct process_view *view)
{
	pid_t ids[NESTED_MAX];
	char text[16] = "";
	int count;

	*view = (struct process_view){.pid_namespace = 0};
	if (readlink("/proc/self", text, sizeof(text) - 1) <= 0)
		return;
	view->self = (pid_t)strtol(text, NULL, 10);
	view->pid_namespace = namespace_of(view->self);
	count = read_ids(ids, view->self);
	view->depth = count > 0 ? count - 1 : 0;
}

struct wanted_process {
	pid_t here; /* 0: find it by the other fields */
	pid_t pid;  /* in its own namespace */
	uint64_t start_time, pid_namespace;
};

static bool run_process_is_wanted(const struct process_view *view, const struct wanted_process *wanted,
                                  struct process_ids *found)
{
	struct process_facts facts;
	pid_t ids[NESTED_MAX];
	uint64_t pid_namespace;
	int count;

	if (!process_read(&facts, found->in_proc) || facts.state == 'X' ||
	    (!wanted->here && facts.start_time != wanted->start_time))
		return false;
	count = read_ids(ids, found->in_proc);
	found->here = count > view->depth ? ids[view->depth] : 0;
	if (wanted->here)
		return found->here == wanted->here;
	pid_namespace = namespace_of(found->in_proc);
	return found->here && ids[count - 1] == wanted->pid &&
	       (!pid_namespace || !wanted->pid_namespace || pid_namespace == wanted->pid_namespace);
}

static bool search(struct process_ids *found, const struct process_view *view, const struct wanted_process *wanted)
{
	DIR *list = opendir("/proc");
	const struct dirent *entry;
	bool is_found = false;

	while (list && !is_found && (entry = readdir(list)) != NULL) {
		*found = (struct process_ids){.in_proc = (pid_t)strtol(entry->d_name, NULL, 10)};
		is_found = found->in_proc > 0 && run_process_is_wanted(view, wanted, found);
	}
	if (list)
		closedir(list);
	if (!is_found)
		*found = (struct process_ids){.here = 0};
	return is_found;
}

bool process_find(struct process_ids *ids, const struct process_view *view, pid_t pid, uint64_t start_time,
                  uint64_t pid_namespace)
{
	bool is_neighbour = !pid_namespace || !view->pid_namespace || pid_namespace == view->pid_namespace;
	struct wanted_process wanted = {.pid = pid, .start_time = start_time, .pid_namespace = pid_namespace};
	struct process_facts facts;
	bool is_found;

	if (!is_neighbour || view->depth) {
		is_found = search(ids, view, &wanted);
		if (is_neighbour)
			ids->here = pid;
		return is_found;
	}
	is_found = process_read(&facts, pid) && facts.start_time == start_time && facts.state != 'X';
	*ids = (struct process_ids){.here = pid, .in_proc = is_found ? pid : 0};
	return is_found;
}

pid_t process_in_proc(const struct process_view *view, pid_t here)
{
	struct wanted_process wanted = {.here = here};
	struct process_ids found;

	if (!view->depth || here <= 0)
		return here;
	return search(&found, view, &wanted) ? found.in_proc : 0;
}

/* ---- end ---- */

int process_open(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool process_status(pid_t pid, uint64_t start_time, int pidfd, int *wait_status)
{
	struct process_facts facts;
	struct pidfd_answer answer = {.mask = PIDFD_ASK_EXIT};

	if (process_read(&facts, pid) && facts.start_time == start_time && (facts.state == 'Z' || facts.state == 'X')) {
		*wait_status = facts.wait_status;
		return true;
	}
	if (pidfd < 0 || ioctl(pidfd, PIDFD_ASK, &answer) != 0 || !(answer.mask & PIDFD_ASK_EXIT))
		return false;
	*wait_status = answer.exit_code;
	return true;
}
