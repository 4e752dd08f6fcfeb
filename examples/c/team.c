/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads for one parallel loop at a time, woken by a condition variable. No work stealing, by intention: a
 * slow worker keeps its items, and everybody waits for it. */
#include "team.h"

#include "monotonic.h"

#include <stdio.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

struct team_member {
	struct team *team;
	int worker;
	pthread_t thread;
};

static void run_share(struct team *team, int worker)
{
	stepscope_range_push(team->label);
	for (int item = worker; item < team->items; item += team->count)
		team->work(team->job, item, worker);
	if (worker == team->count - 1)
		monotonic_sleep_ns(team->slow_ns);
	stepscope_range_pop();
}

static void *member_main(void *argument)
{
	struct team_member *member = argument;
	struct team *team = member->team;
	unsigned long seen = 0;
	char name[32];
	snprintf(name, sizeof(name), "worker %d", member->worker);
	stepscope_thread_name(name);
	pthread_mutex_lock(&team->lock);
	for (;;) {
		while (!team->stop && team->round == seen)
			pthread_cond_wait(&team->begin, &team->lock);
		if (team->stop)
			break;
		seen = team->round;
		pthread_mutex_unlock(&team->lock);
		run_share(team, member->worker);
		pthread_mutex_lock(&team->lock);
		if (--team->busy == 0)
			pthread_cond_signal(&team->done);
	}
	pthread_mutex_unlock(&team->lock);
	return NULL;
}

int team_init(struct team *team, int count, struct failure *failure)
{
	memset(team, 0, sizeof(*team));
	pthread_mutex_init(&team->lock, NULL);
	pthread_cond_init(&team->begin, NULL);
	pthread_cond_init(&team->done, NULL);
	team->count = 1;
	team->members = calloc((size_t)count, sizeof(*team->members));
	if (team->members == NULL)
		return failure_memory(failure, (size_t)count * sizeof(*team->members));
	for (int worker = 1; worker < count; worker++) {
		struct team_member *member = &team->members[worker - 1];
		*member = (struct team_member){.team = team, .worker = worker};
		int error = pthread_create(&member->thread, NULL, member_main, member);
		if (error != 0)
			return failure_set(failure, "cannot start worker thread %d: %s", worker, strerror(error));
		pthread_mutex_lock(&team->lock);
		team->count = worker + 1;
		pthread_mutex_unlock(&team->lock);
	}
	return 0;
}

void team_release(struct team *team)
{
	if (team->members == NULL)
		return;
	pthread_mutex_lock(&team->lock);
	team->stop = true;
	pthread_cond_broadcast(&team->begin);
	pthread_mutex_unlock(&team->lock);
	for (int worker = 1; worker < team->count; worker++)
		pthread_join(team->members[worker - 1].thread, NULL);
	free(team->members);
	pthread_cond_destroy(&team->begin);
	pthread_cond_destroy(&team->done);
	pthread_mutex_destroy(&team->lock);
	memset(team, 0, sizeof(*team));
}

void team_run(struct team *team, const char *label, team_work *work, void *job, int items)
{
	pthread_mutex_lock(&team->lock);
	team->label = label;
	team->work = work;
	team->job = job;
	team->items = items;
	team->busy = team->count - 1;
	team->round++;
	pthread_cond_broadcast(&team->begin);
	pthread_mutex_unlock(&team->lock);
	run_share(team, 0);
	if (team->count == 1)
		return;
	STEPSCOPE_RANGE_PUSH("wait for workers");
	pthread_mutex_lock(&team->lock);
	while (team->busy > 0)
		pthread_cond_wait(&team->done, &team->lock);
	pthread_mutex_unlock(&team->lock);
	stepscope_range_pop();
}
