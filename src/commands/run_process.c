/* SPDX-License-Identifier: Apache-2.0
 *
 * run_process.c: parses /proc/PID/stat and /proc/PID/io and asks pidfds.
 */
#include "commands/run_process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's struct pidfd_info as of its first version; Debian 12's headers do not have it. */
struct pidfd_answer {
	uint64_t mask;
	uint64_t cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};
_Static_assert(sizeof(struct pidfd_answer) == 64, "PIDFD_INFO_SIZE_VER0");
#define PIDFD_ASK _IOWR(0xFF, 11, struct pidfd_answer)
#define PIDFD_ASK_EXIT (UINT64_C(1) << 3)

/* Reads a small file of /proc as text; its length, -1 when it cannot be read. */
static ssize_t read_text(const char *path, char *text, size_t bytes)
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
	if (read_text(path, text, sizeof(text)) <= 0)
		return false;
	/* the name may contain anything: fields begin behind the last bracket */
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
	if (read_text(path, text, sizeof(text)) <= 0)
		return;
	reads = strstr(text, "\nread_bytes: ");
	writes = strstr(text, "\nwrite_bytes: ");
	if (!reads || !writes)
		return;
	io->read_bytes = strtoull(reads + strlen("\nread_bytes: "), NULL, 10);
	io->write_bytes = strtoull(writes + strlen("\nwrite_bytes: "), NULL, 10);
	io->is_known = true;
}

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
