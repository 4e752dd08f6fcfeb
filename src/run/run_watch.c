/* SPDX-License-Identifier: Apache-2.0
 *
 * run_watch.c: a hash table of processes by process id. The directory is listed every ten seconds if its time has
 * changed, or every second if there is no inotify.
 */
#include "run/run_watch.h"

#include "base/hex_id.h"
#include "base/memory.h"
#include "base/time_now.h"
#include "run/run_process.h"
#include "run/run_segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ANCESTORS 64
#define POOL_FOLDER "/dev/shm/"
#define POOL_TRIES 5
#define RESCAN_NS (INT64_C(10) * 1000000000)
#define HEADER_TRIES 20
#define SPARE_DESCRIPTORS 64
#define REAPED_KEPT (sizeof(((struct run_watch *)NULL)->reaped) / sizeof(struct run_reaped))

/* ---- table ---- */

bool run_watch_is_neighbour(const struct run_watch *watch, uint64_t pid_namespace)
{
	return !pid_namespace || !watch->view.pid_namespace || pid_namespace == watch->view.pid_namespace;
}

static struct watched *next_of(const struct run_watch *watch, const struct watched *item, pid_t pid)
{
	uint32_t at = item ? item->next : watch->bucket_count ? watch->buckets[(uint32_t)pid % watch->bucket_count] : 0;

	while (at && watch->items[at - 1].pid != pid)
		at = watch->items[at - 1].next;
	return at ? &watch->items[at - 1] : NULL;
}

static struct watched *run_watch_find(const struct run_watch *watch, pid_t pid, uint64_t start_time,
                                      uint64_t pid_namespace)
{
	struct watched *item = next_of(watch, NULL, pid);

	while (item && (item->start_time != start_time || item->pid_namespace != pid_namespace))
		item = next_of(watch, item, pid);
	return item;
}

/* Finds a process in our namespace. Start time 0: the newest process with that id. */
static struct watched *find_neighbour(const struct run_watch *watch, pid_t pid, uint64_t start_time)
{
	struct watched *item = next_of(watch, NULL, pid);

	while (item &&
	       ((item->start_time != start_time && start_time) || !run_watch_is_neighbour(watch, item->pid_namespace)))
		item = next_of(watch, item, pid);
	return item;
}

static void run_watch_grow(struct run_watch *watch)
{
	watch->capacity = watch->capacity ? watch->capacity * 2 : 64;
	watch->items = memory_resize(watch->items, watch->capacity, sizeof(*watch->items));
	watch->bucket_count = watch->capacity * 2;
	watch->buckets = memory_resize(watch->buckets, watch->bucket_count, sizeof(*watch->buckets));
	memset(watch->buckets, 0, watch->bucket_count * sizeof(*watch->buckets));
	for (uint32_t i = 0; i < watch->count; i++) {
		uint32_t *bucket = &watch->buckets[(uint32_t)watch->items[i].pid % watch->bucket_count];

		watch->items[i].next = *bucket;
		*bucket = i + 1;
	}
}

static struct watched *run_watch_add(struct run_watch *watch, const struct run_segment_name *parts, const char *name,
                                     const struct stepscope_segment_header *header)
{
	struct watched *item;
	uint32_t *bucket;

	if (watch->count == watch->capacity)
		run_watch_grow(watch);
	item = &watch->items[watch->count++];
	bucket = &watch->buckets[(uint32_t)parts->pid % watch->bucket_count];
	*item = (struct watched){
		.pid = (pid_t)parts->pid,
		.start_time = parts->start_time,
		.stem = strndup(name, (size_t)parts->stem_length),
		.newest = parts->number,
		.pid_namespace = header->pid_namespace,
		.rank = header->rank,
		.role = header->role,
		.parent = (pid_t)header->parent_pid,
		.pidfd = -1,
		.pool_fd = -1,
		.next = *bucket,
	};
	if (!item->stem)
		memory_exhausted((size_t)parts->stem_length);
	*bucket = watch->count;
	return item;
}

/* ---- whose process ---- */

/* Takes ids in /proc. In a container we may be process 1, whose parent is 0: no process. */
static bool descends(pid_t pid, pid_t ancestor)
{
	struct process_facts facts;

	for (int i = 0; i < ANCESTORS && pid > 0; i++) {
		if (pid == ancestor)
			return true;
		if (!process_read(&facts, pid))
			return false;
		pid = facts.parent;
	}
	return false;
}

static const struct run_reaped *find_reaped(const struct run_watch *watch, const struct watched *item)
{
	uint32_t kept = watch->reaped_count < REAPED_KEPT ? watch->reaped_count : REAPED_KEPT;

	for (uint32_t i = 0; i < kept; i++) {
		const struct run_reaped *reaped = &watch->reaped[i];

		if (item->ids.here && reaped->pid == item->ids.here &&
		    (!reaped->start_time || reaped->start_time == item->start_time))
			return reaped;
	}
	return NULL;
}

/* For a process that is gone: decides by its parent, or because no other run writes into this directory. */
static bool was_ours(struct run_watch *watch, const struct watched *item)
{
	if (run_watch_is_neighbour(watch, item->pid_namespace)) {
		const struct watched *parent = find_neighbour(watch, item->parent, 0);

		if (item->pid == watch->program || item->parent == watch->program || (parent && parent->is_ours) ||
		    find_reaped(watch, item))
			return true;
	}
	return !watch->directory->is_shared;
}

/* ---- end ---- */

static void close_all(struct run_watch *watch, struct watched *item)
{
	if (item->pidfd >= 0) {
		epoll_ctl(watch->epoll, EPOLL_CTL_DEL, item->pidfd, NULL);
		close(item->pidfd);
	}
	if (item->pool_fd >= 0)
		close(item->pool_fd);
	item->pidfd = item->pool_fd = -1;
}

static void find_status(struct run_watch *watch, struct watched *item)
{
	const struct run_reaped *reaped = find_reaped(watch, item);

	if (reaped && !item->has_status) {
		item->has_status = true;
		item->wait_status = reaped->wait_status;
	}
	if (!item->has_status)
		item->has_status = process_status(item->ids.in_proc, item->start_time, item->pidfd, &item->wait_status);
}

static void pool_path(char *out, size_t bytes, const struct watched *item)
{
	snprintf(out, bytes, POOL_FOLDER "stepscope.%u.%d.%" PRIu64, (unsigned)getuid(), (int)item->pid,
	         item->start_time);
}

/* Containers that share a /dev/shm may make the same name. The pool with our own id is ours: opening and closing it
 * would drop the lock that shows that we live. */
bool run_watch_has_pool(const struct watched *process)
{
	struct stepscope_segment_header identity = {.pid = 0};
	char path[128];
	int fd;

	pool_path(path, sizeof(path), process);
	fd = process->pid == getpid() ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	if (pread(fd, &identity, sizeof(identity), offsetof(struct stepscope_pool_header, identity)) < 0)
		identity.pid = 0;
	close(fd);
	return identity.pid == (uint32_t)process->pid && identity.pid_namespace == process->pid_namespace;
}

/* Removes the name of a pool that we hold, if it has one that we can see. */
static void remove_held(int fd)
{
	struct stat held, named;
	char path[64], target[256];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, target, sizeof(target) - 1);
	target[length > 0 ? length : 0] = '\0';
	if (!strncmp(target, POOL_FOLDER, strlen(POOL_FOLDER)) && fstat(fd, &held) == 0 && lstat(target, &named) == 0 &&
	    held.st_dev == named.st_dev && held.st_ino == named.st_ino)
		unlink(target);
}

/* Moves the remaining events from the pool into the file. A process that is not certainly dead may hold a lock on the
 * pool. */
static void rescue(struct watched *item, bool is_surely_dead)
{
	struct fold_result result = {.was_folded = false};
	char path[128];
	struct error err;

	pool_path(path, sizeof(path), item);
	if (item->pool_fd >= 0)
		snprintf(path, sizeof(path), "/proc/self/fd/%d", item->pool_fd);
	else if (!run_watch_has_pool(item))
		return;
	if (fold_pool(path, is_surely_dead, &result, &err) != STATUS_OK) {
		/* if the pool is gone, a nested run has rescued it */
		if (item->pool_fd >= 0 || access(path, F_OK) == 0)
			item->rescue_problem = strdup(err.text);
		return;
	}
	if (item->pool_fd >= 0)
		remove_held(item->pool_fd);
	if (!result.was_folded)
		return;
	item->rescue = memory_resize(NULL, 1, sizeof(result));
	*item->rescue = result;
}

static void run_watch_end(struct run_watch *watch, struct watched *item)
{
	/* we saw it die, or it is missing in a /proc that would show it */
	bool is_surely_dead = item->is_alive ||
	                      (watch->view.self && run_watch_is_neighbour(watch, item->pid_namespace));

	if (item->is_alive && item->pidfd < 0)
		watch->polled--;
	if (item->is_alive && item->is_ours)
		watch->living--;
	item->is_alive = false;
	find_status(watch, item);
	rescue(item, is_surely_dead);
	close_all(watch, item);
	if (item->is_ours && watch->on_end)
		watch->on_end(watch->context, item);
}

void run_watch_ended(struct run_watch *watch, uint32_t index)
{
	if (index < watch->count && watch->items[index].is_alive)
		run_watch_end(watch, &watch->items[index]);
}

void run_watch_note_status(struct run_watch *watch, const struct run_reaped *reaped)
{
	struct watched *item = find_neighbour(watch, reaped->pid, reaped->start_time);

	if (item && !item->has_status) {
		item->has_status = true;
		item->wait_status = reaped->wait_status;
	}
	watch->reaped[watch->reaped_count++ % REAPED_KEPT] = *reaped;
}

/* ---- pools without a file ---- */

/* The pool is in memory or in a file. In another user namespace its name has another user id. If a process in another
 * pid namespace has the same id and start time, a number is appended. */
static bool is_pool_of(const struct watched *item, const char *target)
{
	char memory[64], file[64];
	const char *found;
	size_t length;

	snprintf(memory, sizeof(memory), "/memfd:stepscope.pool.%d (deleted)", (int)item->pid);
	if (!strcmp(target, memory))
		return true;
	length = (size_t)snprintf(file, sizeof(file), ".%d.%" PRIu64, (int)item->pid, item->start_time);
	if (strncmp(target, POOL_FOLDER "stepscope.", strlen(POOL_FOLDER "stepscope.")) != 0)
		return false;
	found = strstr(target, file);
	return found && (!found[length] || found[length] == '.');
}

/* Opens the pool among the descriptors of a process. Returns -1 if there is none. */
static int open_pool_of(const struct watched *item)
{
	char path[64], target[128];
	struct dirent *entry;
	int found = -1;
	DIR *list;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)item->ids.in_proc);
	list = opendir(path);
	while (list && found < 0 && (entry = readdir(list)) != NULL) {
		ssize_t length = readlinkat(dirfd(list), entry->d_name, target, sizeof(target) - 1);

		target[length > 0 ? length : 0] = '\0';
		if (is_pool_of(item, target))
			found = openat(dirfd(list), entry->d_name, O_RDWR | O_CLOEXEC);
	}
	if (list)
		closedir(list);
	return found;
}

/* A pool in a memfd, or in another /dev/shm than ours, vanishes with its process unless another process holds it. The
 * pool exists before the recording's file does. */
static void hold_pool(const struct run_watch *watch, struct watched *item)
{
	item->pool_tries++;
	if (!run_watch_is_neighbour(watch, item->pid_namespace) || !run_watch_has_pool(item)) {
		item->pool_fd = open_pool_of(item);
		if (item->pool_fd < 0)
			return;
	}
	item->pool_tries = POOL_TRIES;
}

/* ---- start ---- */

static bool is_running(const struct watched *item, pid_t *parent)
{
	struct process_facts facts;

	if (!process_read(&facts, item->ids.in_proc) || facts.start_time != item->start_time || facts.state == 'X')
		return false;
	*parent = facts.parent;
	return true;
}

/* If the parent ends during the check, the process gets another parent. */
static bool is_descendant(struct run_watch *watch, const struct watched *item, pid_t parent)
{
	pid_t before;

	do {
		if (descends(parent, watch->view.self))
			return true;
		before = parent;
		if (!is_running(item, &parent))
			return was_ours(watch, item);
	} while (parent != before);
	return false;
}

static bool has_ended(int pidfd)
{
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};

	return poll(&ended, 1, 0) != 0;
}

/* Finds out whether the process lives, and whether it is our descendant. */
static void meet(struct run_watch *watch, struct watched *item)
{
	pid_t parent;

	if (!watch->view.self) { /* no /proc */
		item->is_alive = item->pidfd >= 0 && !has_ended(item->pidfd);
		item->is_ours = was_ours(watch, item);
		return;
	}
	item->is_alive = is_running(item, &parent);
	item->is_ours = item->is_alive ? is_descendant(watch, item, parent) : was_ours(watch, item);
}

static void run_watch_follow(struct run_watch *watch, struct watched *item)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)(item - watch->items)};

	process_find(&item->ids, &watch->view, item->pid, item->start_time, item->pid_namespace);
	if (item->ids.here)
		item->pidfd = process_open(item->ids.here);
	if (item->pidfd >= watch->pidfd_limit) {
		close(item->pidfd);
		item->pidfd = -1;
	}
	meet(watch, item);
	if (item->is_alive && item->is_ours) {
		watch->living++;
		hold_pool(watch, item);
	}
	if (!item->is_alive) {
		if (item->pidfd >= 0)
			close(item->pidfd);
		item->pidfd = -1;
		run_watch_end(watch, item);
	} else if (item->pidfd < 0 || epoll_ctl(watch->epoll, EPOLL_CTL_ADD, item->pidfd, &event) != 0) {
		if (item->pidfd >= 0)
			close(item->pidfd);
		item->pidfd = -1;
		watch->polled++;
	}
}

static bool is_our_boot(const struct run_watch *watch, const struct stepscope_segment_header *header)
{
	return !memcmp(header->boot_id, watch->boot_id, sizeof(watch->boot_id));
}

/* Checks the namespace too: another one may have a process with our id. */
static bool run_watch_is_own(const struct run_watch *watch, const struct stepscope_segment_header *header)
{
	return (pid_t)header->pid == getpid() && header->start_time == watch->own_start_time &&
	       run_watch_is_neighbour(watch, header->pid_namespace);
}

static void run_watch_note_number(struct watched *item, uint32_t number)
{
	if (number > item->newest)
		item->newest = number;
}

/* Returns false if the header is incomplete. */
static bool run_watch_look_at(struct run_watch *watch, const char *name)
{
	struct run_segment_name parts;
	struct stepscope_segment_header header;
	struct watched *item;
	bool is_complete;
	int fd;

	if (!run_segment_parse_name(&parts, name))
		return true;
	item = find_neighbour(watch, (pid_t)parts.pid, parts.start_time);
	if (item) {
		run_watch_note_number(item, parts.number);
		return true;
	}
	fd = openat(watch->directory->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return true;
	is_complete = pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header);
	if (is_complete && !memcmp(header.magic, STEPSCOPE_SEGMENT_MAGIC, sizeof(header.magic)) &&
	    is_our_boot(watch, &header) && !run_watch_is_own(watch, &header)) {
		item = run_watch_find(watch, (pid_t)parts.pid, parts.start_time, header.pid_namespace);
		if (item)
			run_watch_note_number(item, parts.number);
		else
			run_watch_follow(watch, run_watch_add(watch, &parts, name, &header));
	}
	close(fd);
	return is_complete;
}

/* ---- as files come ---- */

static void look_at_new(struct run_watch *watch, const char *name)
{
	struct new_file *file = &watch->new_files[watch->new_count];
	int limit = (int)(sizeof(watch->new_files) / sizeof(watch->new_files[0]));

	/* the next listing finds files for which there is no room here */
	if (run_watch_look_at(watch, name) || watch->new_count == limit)
		return;
	snprintf(file->name, sizeof(file->name), "%s", name);
	file->tries = HEADER_TRIES;
	watch->new_count++;
}

void run_watch_files(struct run_watch *watch)
{
	char bytes[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t length;

	while (watch->inotify >= 0 && (length = read(watch->inotify, bytes, sizeof(bytes))) > 0) {
		for (const char *at = bytes; at < bytes + length;) {
			const struct inotify_event *event = (const struct inotify_event *)at;

			if (event->mask & IN_Q_OVERFLOW)
				watch->next_scan_ns = 0;
			else if (event->len)
				look_at_new(watch, event->name);
			at += sizeof(*event) + event->len;
		}
	}
}

void run_watch_retry(struct run_watch *watch)
{
	int kept = 0;

	for (int i = 0; i < watch->new_count; i++) {
		if (!run_watch_look_at(watch, watch->new_files[i].name) && --watch->new_files[i].tries > 0)
			watch->new_files[kept++] = watch->new_files[i];
	}
	watch->new_count = kept;
}

/* ---- once a second ---- */

/* Returns true if it is time to list the directory and new files may exist. A change within the same tick of the file
 * system's clock would not show, so a recent time does not count as seen. */
static bool is_scan_due(struct run_watch *watch)
{
	int64_t now = time_now_ns(CLOCK_MONOTONIC), age_ns;
	struct stat status;

	if (now < watch->next_scan_ns || fstat(watch->directory->fd, &status) != 0)
		return false;
	watch->next_scan_ns = now + (watch->inotify >= 0 ? RESCAN_NS : 0);
	age_ns = time_now_ns(CLOCK_REALTIME) - timespec_ns(&status.st_mtim);
	if (age_ns > 2 * RESCAN_NS && status.st_mtim.tv_sec == watch->seen_change.tv_sec &&
	    status.st_mtim.tv_nsec == watch->seen_change.tv_nsec)
		return false;
	watch->seen_change = status.st_mtim;
	return true;
}

static void scan(struct run_watch *watch)
{
	int fd = openat(watch->directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!list) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(list)) != NULL)
		run_watch_look_at(watch, entry->d_name);
	closedir(list);
}

static void poll_living(struct run_watch *watch)
{
	for (uint32_t i = 0; i < watch->count && watch->polled; i++) {
		struct watched *item = &watch->items[i];
		struct process_facts facts;

		if (item->is_alive && item->pidfd < 0 &&
		    (!process_read(&facts, item->ids.in_proc) || facts.start_time != item->start_time ||
		     facts.state == 'Z'))
			run_watch_end(watch, item);
	}
}

static void hold_pools(struct run_watch *watch)
{
	/* the newest come last; older ones were tried often enough */
	for (uint32_t i = watch->count; i > 0 && watch->count - i < 4096; i--) {
		struct watched *item = &watch->items[i - 1];

		if (item->is_alive && item->is_ours && item->pool_tries < POOL_TRIES)
			hold_pool(watch, item);
	}
}

void run_watch_tick(struct run_watch *watch, bool is_last)
{
	if (watch->directory->fd < 0)
		return;
	if (is_last || is_scan_due(watch))
		scan(watch);
	if (watch->polled)
		poll_living(watch);
	hold_pools(watch);
}

/* ---- all of it ---- */

void run_watch_init(struct run_watch *watch, struct run_directory *directory, int epoll)
{
	struct process_facts self;
	struct rlimit limit;

	*watch = (struct run_watch){.directory = directory, .epoll = epoll, .inotify = -1};
	process_view_init(&watch->view);
	if (process_read(&self, watch->view.self))
		watch->own_start_time = self.start_time;
	(void)hex_id_of_boot(watch->boot_id);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < INT_MAX)
		watch->pidfd_limit = (int)limit.rlim_cur - SPARE_DESCRIPTORS;
	else
		watch->pidfd_limit = INT_MAX;
	if (directory->fd < 0)
		return;
	watch->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watch->inotify >= 0 && inotify_add_watch(watch->inotify, directory->path, IN_CREATE | IN_MOVED_TO) < 0) {
		close(watch->inotify);
		watch->inotify = -1;
	}
}

void run_watch_release(struct run_watch *watch)
{
	for (uint32_t i = 0; i < watch->count; i++) {
		close_all(watch, &watch->items[i]);
		free(watch->items[i].stem);
		free(watch->items[i].rescue);
		free(watch->items[i].rescue_problem);
	}
	if (watch->inotify >= 0)
		close(watch->inotify);
	watch->inotify = -1;
	free(watch->items);
	free(watch->buckets);
	watch->items = NULL;
	watch->buckets = NULL;
	watch->count = watch->capacity = watch->bucket_count = 0;
}
