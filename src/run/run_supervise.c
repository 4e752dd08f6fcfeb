/* SPDX-License-Identifier: Apache-2.0
 *
 * run_supervise.c: one loop over signals, a timer of one second and the ends of processes. It names processes that
 * died while others go on.
 */
#include "base/time_now.h"
#include "commands/say.h"
#include "run/run_segment.h"
#include "run/run_state.h"
#include "run/run_words.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EVENT_SIGNAL UINT64_MAX
#define EVENT_TIMER (UINT64_MAX - 1)
#define EVENT_FILES (UINT64_MAX - 2)
#define NAMED_LIMIT 8
#define GRACE_NS INT64_C(1000000000)
#define RETRY_MS 10
#define BLOCKS_LOOKED_AT 100000 /* in the recording of a process that failed */

/* ---- who died ---- */

/* Reads the identity from the header of the recording, updated by later facts. */
static struct stepscope_segment_header identity_of(const struct run *run, const struct watched *process)
{
	struct stepscope_segment_header identity = {.role = process->role, .rank = process->rank};
	struct run_scan scan = {.blocks_left = BLOCKS_LOOKED_AT, .pid_namespace = process->pid_namespace};
	char name[512];

	snprintf(name, sizeof(name), "%s.%" PRIu32 ".ssr", process->stem, process->newest);
	run_scan_add(&scan, run->directory.fd, name);
	run_scan_finish(&scan);
	own_facts_apply(&scan.own, &identity);
	return identity;
}

static bool may_be_named(const struct run *run, const struct watched *process)
{
	if (process->ids.here == run->child.pid || !run->child.is_running || run->was_asked_to_end)
		return false;
	/* Without a status: an orderly end leaves nothing to rescue. Forked children seldom end that way, most call
	 * _exit(). */
	if (!process->has_status)
		return process->rescue && process->role != STEPSCOPE_ROLE_WORKER;
	return process->wait_status != 0;
}

static bool is_worth_naming(const struct watched *process, uint32_t role)
{
	int status = process->wait_status;

	/* loaders routinely end their workers with SIGTERM */
	return role != STEPSCOPE_ROLE_WORKER || (WIFSIGNALED(status) && WTERMSIG(status) != SIGTERM);
}

static void run_supervise_on_end(void *context, const struct watched *process)
{
	struct run *run = context;
	struct stepscope_segment_header identity;
	struct run_end end;
	struct buffer text;

	if (!may_be_named(run, process))
		return;
	identity = identity_of(run, process);
	if (!is_worth_naming(process, identity.role))
		return;
	if (run->named >= NAMED_LIMIT) {
		*(process->has_status ? &run->unnamed : &run->unknown) += 1;
		return;
	}
	run->named++;
	end = run_end_find(run, process, &identity);
	buffer_init(&text, RUN_WORDS_BYTES);
	run_words_death(&text, &end);
	say("stepscope: %s\n", text.data);
	buffer_release(&text);
}

/* Excuses processes with PyTorch that record after all. */
static void run_supervise_excuse(struct run *run)
{
	for (uint32_t i = 0; i < run->watch.count; i++)
		run_unseen_excuse(&run->unseen, run->watch.items[i].ids.in_proc);
}

/* ---- events ---- */

static void reap(struct run *run)
{
	struct run_reaped reaped;

	while (run_child_reap(&run->child, &run->watch.view, &reaped))
		run_watch_note_status(&run->watch, &reaped);
}

static void on_timer(struct run *run)
{
	uint64_t times;

	if (read(run->timer, &times, sizeof(times)) != (ssize_t)sizeof(times))
		return;
	run_watch_tick(&run->watch, false);
	if (run->directory.fd >= 0)
		run_unseen_tick(&run->unseen,
		                run->child.is_running ? process_in_proc(&run->watch.view, run->child.pid) : 0);
	host_recording_tick(run->host);
}

/* Signals come first: they bring the status of processes whose pidfds are readable. */
static void handle(struct run *run, const struct epoll_event *events, int count)
{
	if (run_signals_pass(&run->signals, run->child.is_running ? run->child.pid : 0))
		run->was_asked_to_end = true;
	reap(run);
	for (int i = 0; i < count; i++) {
		if (events[i].data.u64 == EVENT_TIMER)
			on_timer(run);
		else if (events[i].data.u64 == EVENT_FILES)
			run_watch_files(&run->watch);
		else if (events[i].data.u64 != EVENT_SIGNAL)
			run_watch_ended(&run->watch, (uint32_t)events[i].data.u64);
	}
}

static void wait_once(struct run *run, int timeout_ms)
{
	struct epoll_event events[64];
	bool is_retry = run->watch.new_count > 0;
	int count = epoll_wait(run->epoll, events, 64, is_retry ? RETRY_MS : timeout_ms);

	/* without epoll there is no time-out either */
	if (count < 0 && errno != EINTR)
		usleep((useconds_t)RETRY_MS * 1000);
	handle(run, events, count > 0 ? count : 0);
	if (is_retry)
		run_watch_retry(&run->watch);
}

static void add_event(struct run *run, int fd, uint64_t what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = what};

	if (fd >= 0)
		epoll_ctl(run->epoll, EPOLL_CTL_ADD, fd, &event);
}

static void open_events(struct run *run)
{
	const struct itimerspec second = {{1, 0}, {1, 0}};

	run->epoll = epoll_create1(EPOLL_CLOEXEC);
	run->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (run->timer >= 0)
		timerfd_settime(run->timer, 0, &second, NULL);
	add_event(run, run->signals.fd, EVENT_SIGNAL);
	add_event(run, run->timer, EVENT_TIMER);
}

static void wait_for_the_rest(struct run *run)
{
	int64_t end_ns = time_now_ns(CLOCK_MONOTONIC) + GRACE_NS;

	while (run->watch.living && time_now_ns(CLOCK_MONOTONIC) < end_ns)
		wait_once(run, 50);
}

/* When the first process of a container ends, the kernel kills all others. If they are killed while we still run, they
 * lose nothing. */
static void end_container(struct run *run)
{
	if (getpid() != 1 || !run->watch.living)
		return;
	kill(-1, SIGKILL);
	wait_for_the_rest(run);
}

void run_supervise(struct run *run)
{
	open_events(run);
	run_watch_init(&run->watch, &run->directory, run->epoll);
	run->watch.program = run->child.pid;
	run->watch.on_end = run_supervise_on_end;
	run->watch.context = run;
	add_event(run, run->watch.inotify, EVENT_FILES);
	/* finds files that are older than the watch */
	run_watch_tick(&run->watch, true);
	/* the time-out is for systems without a timer or a signalfd */
	while (run->child.is_running)
		wait_once(run, 1500);
	run_watch_tick(&run->watch, true);
	wait_for_the_rest(run);
	end_container(run);
	run_watch_tick(&run->watch, true);
	run_supervise_excuse(run);
	if (run->unnamed)
		say("stepscope: %u more processes were killed or failed\n", run->unnamed);
	if (run->unknown)
		say("stepscope: %u more processes ended with unknown exit status\n", run->unknown);
}
