/* SPDX-License-Identifier: Apache-2.0
 *
 * disk.c: bytes and busy time per disk from /proc/diskstats. Whole devices only: partitions would count twice.
 */
#include "host/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SECTOR_BYTES 512 /* the unit of diskstats for every device */

struct disk {
	char name[HOST_NAME_BYTES];
	bool is_recorded;
	uint32_t read, written, busy;
	struct host_rate read_rate, written_rate, busy_rate;
};

struct disks {
	struct host_file file;
	struct disk items[HOST_MAX_DEVICES * 4]; /* includes disks that are not recorded */
	int count, recorded;
	int hint; /* next index: lines come in the same order every time */
};
#define KNOWN_DISKS ((int)(sizeof(((struct disks *)0)->items) / sizeof(struct disk)))

static bool is_whole_device(const struct host *host, const char *name)
{
	char path[HOST_NAME_BYTES + 32];

	if (!strncmp(name, "loop", 4) || !strncmp(name, "ram", 3) || !strncmp(name, "zram", 4))
		return false;
	snprintf(path, sizeof(path), "/sys/block/%s", name);
	/* without /sys, take every device */
	return host_exists(host, path) || !host_exists(host, "/sys/block");
}

static void disk_add_counters(struct host *host, struct disk *disk)
{
	disk->is_recorded = true;
	disk->read = host_counter(host, "disk.%s.read_bytes_per_s", disk->name);
	disk->written = host_counter(host, "disk.%s.written_bytes_per_s", disk->name);
	disk->busy = host_counter(host, "disk.%s.busy_ratio", disk->name);
}

static struct disk *disk_find(struct host *host, struct disks *disks, const char *name)
{
	struct disk *disk;

	for (int i = 0; i < disks->count; i++) {
		int at = (disks->hint + i) % disks->count;

		if (!strcmp(disks->items[at].name, name)) {
			disks->hint = at + 1;
			return &disks->items[at];
		}
	}
	if (disks->count == KNOWN_DISKS)
		return NULL;
	disk = &disks->items[disks->count++];
	snprintf(disk->name, sizeof(disk->name), "%s", name);
	if (!is_whole_device(host, name))
		return disk;
	if (disks->recorded < HOST_MAX_DEVICES) {
		disks->recorded++;
		disk_add_counters(host, disk);
	} else {
		host_omit(host, "disk: the first %d disks are recorded", HOST_MAX_DEVICES);
	}
	return disk;
}

static void disk_sample_line(struct host *host, struct disks *disks, const char *line)
{
	uint64_t sectors_read, sectors_written, busy_ms;
	char name[HOST_NAME_BYTES];
	struct disk *disk;

	if (sscanf(line, "%*u %*u %47s %*u %*u %" SCNu64 " %*u %*u %*u %" SCNu64 " %*u %*u %" SCNu64, name,
	           &sectors_read, &sectors_written, &busy_ms) != 4)
		return;
	disk = disk_find(host, disks, name);
	if (!disk || !disk->is_recorded)
		return;
	host_rate_value(host, &disk->read_rate, disk->read, sectors_read, SECTOR_BYTES);
	host_rate_value(host, &disk->written_rate, disk->written, sectors_written, SECTOR_BYTES);
	host_rate_value(host, &disk->busy_rate, disk->busy, busy_ms, 1e-3);
}

static void disk_sample(struct host *host, void *state)
{
	struct disks *disks = state;
	const char *text = host_file_read(host, &disks->file, "/proc/diskstats");

	disks->hint = 0;
	while (text && *text) {
		const char *next = strchr(text, '\n');

		disk_sample_line(host, disks, text);
		text = next ? next + 1 : NULL;
	}
}

static void disk_close_files(void *state)
{
	host_file_close(&((struct disks *)state)->file);
}

const struct host_source host_disk = {"disk", sizeof(struct disks), NULL, disk_sample, disk_close_files};
