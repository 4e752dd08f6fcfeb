/* SPDX-License-Identifier: Apache-2.0
 *
 * host_recording.c: records the machine's counters as events of this process's own session. An abstract socket with
 * the run's name decides which process records a machine. The kernel gives the socket to one process and frees it when
 * that process ends, for any reason.
 */
#include "base/memory.h"
#include "base/time_now.h"
#include "host/host.h"
#include "recorder/emit.h"
#include "recorder/session.h"
#include "recorder/session_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* This process records little: a small pool, one file, no samples of itself. */
#define OWN_OPTIONS "pool=1M,keep_size=0,sample_process=false"
#define LAST_SAMPLE_NS 50000000

struct host_recording {
	struct host *host; /* NULL: another process records this machine, or recording it is turned off */
	bool is_machine_wanted;
	int claim; /* socket; -1: not claimed */
	char run_id[40];
	int64_t last_ns;
	int ledger;
};

static bool claim_machine(struct host_recording *recording)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "stepscope-host-%u-%s",
	                      (unsigned)geteuid(), recording->run_id);

	recording->claim = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* without sockets no other process can be asked: better twice than never */
	if (recording->claim < 0)
		return true;
	if (bind(recording->claim, (struct sockaddr *)&address,
	         (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) == 0)
		return true;
	close(recording->claim);
	recording->claim = -1;
	return false;
}

static uint32_t counter(void *context, const char *name)
{
	(void)context;
	return emit_symbol(STEPSCOPE_SYMBOL_COUNTER, name, (uint32_t)strlen(name));
}

static void value(void *context, uint32_t number, double amount)
{
	(void)context;
	if (number)
		emit_counter(number, amount);
}

static void host_recording_sample(struct host_recording *recording)
{
	const struct host_sink sink = {.counter = counter, .value = value};
	const char *omitted;

	if (!recording->host && recording->is_machine_wanted && claim_machine(recording))
		recording->host = host_new("/");
	if (!recording->host)
		return;
	recording->last_ns = time_now_ns(CLOCK_MONOTONIC);
	host_sample(recording->host, recording->last_ns, &sink);
	while ((omitted = host_ledger(recording->host, recording->ledger)) != NULL) {
		char key[32];

		snprintf(key, sizeof(key), "host.omitted.%d", recording->ledger++);
		session_meta(key, omitted);
	}
}

struct host_recording *host_recording_new(const char *run_directory, const char *run_id, bool is_machine_wanted,
                                          char *problem, size_t problem_bytes)
{
	const struct session_start how = {.options = OWN_OPTIONS,
	                                  .role = STEPSCOPE_ROLE_HOST,
	                                  .run_directory = run_directory,
	                                  .is_explicit = true};
	struct host_recording *recording;

	if (session_start(&how) != START_OK) {
		snprintf(problem, problem_bytes, "%s", session_problem());
		return NULL;
	}
	recording = memory_resize(NULL, 1, sizeof(*recording));
	*recording = (struct host_recording){.is_machine_wanted = is_machine_wanted, .claim = -1};
	snprintf(recording->run_id, sizeof(recording->run_id), "%s", run_id);
	host_recording_sample(recording);
	return recording;
}

void host_recording_tick(struct host_recording *recording)
{
	if (recording)
		host_recording_sample(recording);
}

void host_recording_fact(struct host_recording *recording, const char *key, const char *text)
{
	if (recording)
		session_meta(key, text);
}

bool host_recording_oom_kills(const struct host_recording *recording, uint64_t *count)
{
	return recording && recording->host && host_oom_kills(recording->host, count);
}

void host_recording_free(struct host_recording *recording, const char *reason)
{
	if (!recording)
		return;
	/* a program that ran for less than a second gets its values here */
	if (recording->host && time_now_ns(CLOCK_MONOTONIC) - recording->last_ns > LAST_SAMPLE_NS)
		host_recording_sample(recording);
	session_stop(reason);
	host_free(recording->host);
	if (recording->claim >= 0)
		close(recording->claim);
	free(recording);
}
