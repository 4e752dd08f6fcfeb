/* SPDX-License-Identifier: Apache-2.0
 *
 * record.c: measures the cost of an event in the recording thread, compared with bare clock reads and LTTng-UST, in
 * interleaved rounds. Bursts are smaller than the pool, and the drainer empties it between them. bench/record runs
 * this and checks for drops.
 *
 *     record (single ROUNDS | threads SECONDS | fake ROUNDS) DIRECTORY
 */
#include "measure.h"
#include "record_empty.h"

#include <stepscope/stepscope.h>
#include <x86intrin.h>
#ifdef WITH_PARTS /* linked with the objects of the library */
#include "recorder/stream.h"
#endif
#ifdef WITH_LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "record_lttng.h"
#endif

#define PAIRS 100000ll /* 2 ms; 200,000 events, of 2 million that the pool can hold */
#define KEEP __asm__ volatile("")
#define USE(value) __asm__ volatile("" ::"r"(value))

static stepscope_name_t name;

static void run_empty(int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		KEEP;
}

static void run_counter(int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		USE(__rdtsc());
		KEEP;
		USE(__rdtsc());
	}
}

static void run_counter_once(int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		USE(__rdtsc());
}

static void run_clock_gettime(int64_t n)
{
	struct timespec now;
	for (int64_t i = 0; i < n; i++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		KEEP;
		clock_gettime(CLOCK_MONOTONIC, &now);
	}
}

/* Makes the same two calls to empty functions of a shared library, with a test of the same kind of flag. */
static void run_calls(int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		if (record_empty_active)
			record_empty_begin(name);
		KEEP;
		if (record_empty_active)
			record_empty_end();
	}
}

static void run_pair(int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		stepscope_range_push_name(name);
		KEEP;
		stepscope_range_pop();
	}
}

static void run_string(int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		stepscope_range_push("forward layer");
		KEEP;
		stepscope_range_pop();
	}
}

static void run_switch(int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		stepscope_range_switch_name(name);
}

#ifdef WITH_PARTS
static void run_inline(int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		stream_put(STEPSCOPE_EVENT_BEGIN, name, NULL, 0);
		KEEP;
		stream_put(STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, NULL, 0);
	}
}
#endif

#ifdef WITH_LTTNG
static void run_lttng(int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		lttng_ust_tracepoint(bench_record, begin, (uint32_t)i);
		KEEP;
		lttng_ust_tracepoint(bench_record, end);
	}
}
#endif

struct row {
	void (*run)(int64_t n);
	bool is_recording;
	struct measure measure;
};

static void run_rounds(struct row *rows, int rounds)
{
	for (int i = -3; i < rounds; i++) /* three rounds of warm-up */
		for (struct row *row = rows; row->run; row++) {
			struct measure *measure = &row->measure;
			measure_start(measure);
			row->run(PAIRS);
			measure_stop(measure, PAIRS);
			if (i < 0)
				measure->kept_count = measure->total = 0;
			if (row->is_recording) {
				stepscope_flush();
				usleep(2000); /* gives the daemon of LTTng the same time */
			}
		}
	for (struct row *row = rows; row->run; row++)
		measure_print(&row->measure);
}

static struct row off_rows[] = {
	{run_empty, false, {.name = "empty loop"}},
	{run_pair, false, {.name = "pair, recording off"}},
	{NULL, false, {0}},
};
static struct row single_rows[] = {
	{run_counter, false, {.name = "2 x rdtsc"}},
	{run_pair, true, {.name = "pair"}},
	{run_counter_once, false, {.name = "1 x rdtsc"}},
	{run_switch, true, {.name = "switch"}},
	{run_string, true, {.name = "pair, name as a string"}},
	{run_clock_gettime, false, {.name = "2 x clock_gettime"}},
#ifdef WITH_LTTNG
	{run_lttng, true, {.name = "pair, LTTng-UST"}},
#endif
	{NULL, false, {0}},
};
static struct row fake_rows[] = {
	{run_empty, false, {.name = "empty loop, fake clock"}},
	{run_calls, false, {.name = "2 empty calls"}},
	{run_pair, true, {.name = "pair, fake clock"}},
	{run_switch, true, {.name = "switch, fake clock"}},
#ifdef WITH_PARTS
	{run_inline, true, {.name = "pair, fake clock, inline"}},
#endif
	{NULL, false, {0}},
};

static void begin(const char *directory)
{
	char options[1100];
	snprintf(options, sizeof(options), "keep_size=0,out=%s", directory);
	if (stepscope_init(options) != 0 || !(name = stepscope_name(STEPSCOPE_KIND_RANGE, "range"))) {
		fprintf(stderr, "record: %s\n", stepscope_error());
		exit(1);
	}
	usleep(400000); /* until the drainer has touched the whole pool */
}

/* ---- both processors busy ------------------------------------------------------------------------------------------------- */

struct load {
	pthread_t thread;
	int processor;
	void (*run)(int64_t n);
	int64_t end_ns, pairs;
	double ns;
};

static void *run_load(void *argument)
{
	struct load *load = argument;
	measure_pin(load->processor);
	int64_t start = measure_clock(CLOCK_MONOTONIC), cpu = measure_clock(CLOCK_THREAD_CPUTIME_ID);
	while (measure_clock(CLOCK_MONOTONIC) - start < load->end_ns) {
		load->run(1000);
		load->pairs += 1000;
	}
	load->ns = (double)(measure_clock(CLOCK_THREAD_CPUTIME_ID) - cpu) / (double)load->pairs;
	return NULL;
}

static void run_loads(const char *what, void (*run)(int64_t n), double seconds)
{
	struct load loads[2];
	for (int i = 0; i < 2; i++) {
		loads[i] = (struct load){.processor = i, .run = run, .end_ns = (int64_t)(seconds * 1e9)};
		pthread_create(&loads[i].thread, NULL, run_load, &loads[i]);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(loads[i].thread, NULL);
	printf("%s\t%.4f\t%.4f\t%lld\n", what, (loads[0].ns + loads[1].ns) / 2,
	       loads[0].ns < loads[1].ns ? loads[0].ns : loads[1].ns, (long long)(loads[0].pairs + loads[1].pairs));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "single";
	double amount = argc > 2 ? atof(argv[2]) : 0;
	if (argc != 4)
		return 2;
	if (strcmp(mode, "threads") == 0) {
		begin(argv[3]);
		run_loads("2 x rdtsc, 2 threads", run_counter, amount);
		run_loads("pair, 2 threads", run_pair, amount);
		return 0;
	}
	bool is_fake = strcmp(mode, "fake") == 0;
	if (!is_fake) {
		measure_pin(0);
		measure_go_first(true);
		run_rounds(off_rows, (int)amount);
		measure_go_first(false);
		cpu_set_t all;
		memset(&all, 0xff, sizeof(all));
		pthread_setaffinity_np(pthread_self(), sizeof(all), &all); /* the drainer inherits it */
	}
	begin(argv[3]);
	bool is_pinned = measure_pin(0), is_first = measure_go_first(true);
	run_rounds(is_fake ? fake_rows : single_rows, (int)amount);
	printf("# %s, %s\n", is_pinned ? "pinned" : "not pinned", is_first ? "SCHED_FIFO" : "normal scheduling");
	return 0;
}
