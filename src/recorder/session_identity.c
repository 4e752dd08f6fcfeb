/* SPDX-License-Identifier: Apache-2.0
 *
 * session_identity.c: see the header.
 */
#include "recorder/session_identity.h"

#include "base/hex_id.h"
#include "recorder/clock.h"
#include "recorder/ranks.h"
#include "recorder/session.h"
#include "recorder/session_capture.h"
#include "recorder/session_facts.h"
#include "recorder/session_state.h"
#include "recorder/step_budget.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t read_start_time(void)
{
	char text[1024];
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	char *at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

void session_read_process(void)
{
	session.identity.pid = getpid();
	session.identity.start_time = read_start_time();
}

/* Reads the id of the run, 32 hexadecimal digits, which `stepscope run` passes to its children. */
static void read_run_id(uint8_t id[16])
{
	const char *text = getenv("STEPSCOPE_IDENTITY");
	if (text && strlen(text) == 32)
		(void)hex_id_parse(id, text);
}

void session_fill_identity(struct stepscope_segment_header *identity)
{
	struct stat pid_namespace;
	*identity = (struct stepscope_segment_header){
		.pid = (uint32_t)session.identity.pid,
		.start_time = session.identity.start_time,
		.clock = recorder_clock.kind,
		.role = session.identity.role,
		.rank = session.identity.job.has_rank ? session.identity.job.rank : -1,
		.world_size = session.identity.job.world_size,
		.tick_hz = recorder_clock.tick_hz,
		.tick_step = recorder_clock.tick_step,
		.parent_pid = (uint32_t)getppid(),
		.pid_namespace = stat("/proc/self/ns/pid", &pid_namespace) == 0 ? pid_namespace.st_ino : 0,
	};
	(void)hex_id_of_boot(identity->boot_id);
	read_run_id(identity->run_id);
	if (getrandom(&identity->session, sizeof(identity->session), GRND_NONBLOCK) != sizeof(identity->session))
		identity->session = (uint32_t)clock_ticks();
}

void session_choose_identity(enum stepscope_role role, bool is_forked)
{
	const struct job_identity told = session.identity.job;
	const int32_t before = session.identity.environments_rank;
	job_identity_read(&session.identity.job, environ);
	session.identity.environments_rank = session.identity.job.has_rank ? session.identity.job.rank : -1;
	/* a forked child is a worker of its parent, unless a launcher gave it a new rank, or until it trains */
	bool is_new = session.identity.environments_rank >= 0 && session.identity.environments_rank != before;
	bool is_worker = is_forked && role == STEPSCOPE_ROLE_TRAINER && !is_new;
	session.identity.role = is_worker ? STEPSCOPE_ROLE_WORKER : role;
	session.identity.is_rank_told &= !is_new;
	if (session.identity.is_rank_told)
		session.identity.job = told;
	session_choose_detail();
}

static void become_trainer(void)
{
	session.identity.is_training = true;
	session_meta_own("trains", "");
	if (session.identity.role != STEPSCOPE_ROLE_WORKER)
		return;
	session.identity.role = STEPSCOPE_ROLE_TRAINER;
	/* until now it used its parent's capture at the fork */
	step_budget_start(&session.budget, &session.options, false);
	if ((session.options.mode != RECORD_ALWAYS || session.budget.is_on) && !session.steps.has_marked)
		session_switch_capture(schedule_action(&session.options, session.steps.index, session.steps.index),
		                       false);
}

void session_trains(void)
{
	if (!session_enter() || session.identity.is_training || session.identity.role == STEPSCOPE_ROLE_HOST ||
	    !session_lock_steps())
		return;
	if (!session.identity.is_training)
		become_trainer();
	session_unlock_steps();
}

void session_tell_rank(int32_t rank, int32_t world_size)
{
	char what[64];
	if (rank < 0 || !session_enter() || !session_lock_steps())
		return;
	bool is_known = session.identity.job.has_rank && session.identity.job.rank == rank &&
	                session.identity.job.world_size == world_size;
	if (session.identity.job.rank != rank)
		session.identity.job.local_rank = -1; /* the local rank in the environment belongs to another rank */
	session.identity.job.has_rank = session.identity.is_rank_told = true;
	session.identity.job.rank = rank;
	session.identity.job.world_size = world_size;
	if (!is_known) {
		snprintf(what, sizeof(what), "%d of %d, ", (int)rank, (int)world_size);
		session_meta_own("rank", what);
		session_choose_detail();
		session_switch_capture(session.capture.now, false);
	}
	session_unlock_steps();
}
