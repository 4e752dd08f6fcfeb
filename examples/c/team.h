/* SPDX-License-Identifier: Apache-2.0 */
/* A few threads that share one loop. The caller is worker 0 and takes part; item i always belongs to worker
 * i % count, so results do not depend on timing. A team of one runs the loop in the caller, without any thread.
 *
 *     team_init(&team, 2, &failure);
 *     team_run(&team, "attention.heads", head_forward, &job, heads);
 *     team_release(&team);
 */
#ifndef TRAINER_TEAM_H
#define TRAINER_TEAM_H

#include "failure.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Handles one item. Runs in any worker; must not touch what another item writes. */
typedef void team_work(void *job, int item, int worker);

struct team_member;

struct team {
	int count;
	struct team_member *members; /* count - 1 of them: workers 1.. */
	pthread_mutex_t lock;
	pthread_cond_t begin, done;
	unsigned long round; /* number of loops started */
	int busy;            /* workers still in the current loop */
	bool stop;
	const char *label;
	team_work *work;
	void *job;
	int items;
	int64_t slow_ns; /* fault: the last worker loses this much in each loop */
};

int team_init(struct team *team, int count, struct failure *failure);
void team_release(struct team *team);

/* Calls work(job, item, worker) for items 0..items-1 and returns when all are done. `label` names the range each
 * worker shows, and must stay valid. */
void team_run(struct team *team, const char *label, team_work *work, void *job, int items);

#endif
