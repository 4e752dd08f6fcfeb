/* SPDX-License-Identifier: Apache-2.0
 *
 * session_facts.c: see the header.
 */
#include "recorder/session_facts.h"

#include "base/utf8.h"
#include "recorder/clock.h"
#include "recorder/processors.h"
#include "recorder/session_state.h"
#include "recorder/step_budget.h"
#include "recorder/step_cpu.h"
#include "recorder/stream.h"
#include "recorder/symbols.h"
#include "recorder/thread_use.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void session_meta(const char *key, const char *value)
{
	char pair[2400]; /* threads may have small stacks */
	size_t key_bytes = strnlen(key, 256), most = sizeof(pair) - 300;
	size_t value_bytes = utf8_cut(value, strnlen(value, most + 1), most);
	memcpy(pair, key, key_bytes);
	pair[key_bytes] = 0;
	memcpy(pair + key_bytes + 1, value, value_bytes);
	uint32_t symbol = symbols_intern(STEPSCOPE_SYMBOL_META, pair, (uint32_t)(key_bytes + 1 + value_bytes));
	if (symbol)
		stream_put(STEPSCOPE_EVENT_MARK, symbol, NULL, 0);
	else
		stream_drop(STEPSCOPE_EVENT_MARK);
}

void session_meta_own(const char *key, const char *what)
{
	char value[96];
	snprintf(value, sizeof(value), "%sprocess %d", what, (int)session.identity.pid);
	session_meta(key, value);
}

static void meta_number(const char *key, double value)
{
	char text[64];
	snprintf(text, sizeof(text), "%.3f", value);
	session_meta(key, text);
}

/* Measures on a private chunk. */
double session_measure_event_ns(void)
{
	uint64_t words[130];
	struct cursor scratch = {.stream = 1};
	struct cursor *mine = cursor_mine;
	uint64_t best = UINT64_MAX;
	for (int round = 0; round < 20; round++) {
		scratch.next = words;
		scratch.end = words + 130;
		scratch.high = (uint32_t)(clock_ticks() >> 32);
		cursor_mine = &scratch;
		uint64_t start = clock_ticks();
		for (int i = 0; i < 128; i++) {
			if (recorder_clock.is_counter)
				stream_put(STEPSCOPE_EVENT_BEGIN, 1, NULL, 0);
			else
				(void)clock_ticks(); /* the clock is most of the cost; the slow path needs a pool */
		}
		uint64_t ticks = clock_ticks() - start;
		cursor_mine = mine;
		if (ticks < best)
			best = ticks;
	}
	return (double)best * 1e9 / (double)recorder_clock.tick_hz / 128;
}

static void put_processors(char *text, size_t bytes)
{
	unsigned count = processors_allowed();
	if (count) {
		snprintf(text, bytes, "%u", count);
		session_meta("processors", text);
	}
	processors_quota_text(text, bytes);
	session_meta("processors.quota", text);
}

void session_put_facts(void)
{
	char text[1024];
	ssize_t length = readlink("/proc/self/exe", text, sizeof(text) - 1);
	if (length > 0) {
		text[length] = 0;
		session_meta("program", text);
	}
	if (getcwd(text, sizeof(text)))
		session_meta("cwd", text);
	session_meta("version", STEPSCOPE_VERSION);
	if (session.identity.role != STEPSCOPE_ROLE_HOST)
		step_budget_tell(&session.options);
	if (session.pool.kind == POOL_MEMFD)
		snprintf(text, sizeof(text), "memfd:%d", session.pool.file.fd);
	else
		snprintf(text, sizeof(text), "%s", pool_kind_text(session.pool.kind));
	session_meta("pool", text);
	meta_number("pool.bytes", (double)session.pool.bytes);
	session_meta("clock", recorder_clock.is_counter ? "counter" : "system");
	meta_number("clock.tick_ns", 1e9 / (double)recorder_clock.tick_hz);
	meta_number("cost.event_ns", session.cost_event_ns);
	put_processors(text, sizeof(text));
	double step_cpu_ns;
	if (step_cpu_cost_ns(&session.steps.cpu, &step_cpu_ns))
		meta_number("cost.step_cpu_ns", step_cpu_ns);
	double use_ns, process_ns;
	if (thread_use_cost_ns(&use_ns, &process_ns)) {
		meta_number("cost.use_ns", use_ns);
		meta_number("cost.process_use_ns", process_ns);
	}
	if (session.identity.job.has_rank && session.identity.job.local_rank >= 0)
		meta_number("local_rank", session.identity.job.local_rank);
	if (session.identity.job.restart_count > 0)
		meta_number("restart_count", session.identity.job.restart_count);
	if (session.identity.job.launcher && session.identity.job.launcher[0])
		session_meta("launcher", session.identity.job.launcher);
}
