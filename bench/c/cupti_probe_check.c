/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti_probe_check.c: tests cupti_probe.c without a GPU, with cupti_stand_in.c instead of CUPTI. Run
 * `cupti_probe_check CASE` in an empty directory. It prints unexpected values and exits with 1 if there are any. The
 * caller sets CUPTI_PROBE_ANYWAY=1 and CUPTI_PROBE_LIBRARY.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cupti_numbers.h"
#include "cupti_probe.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

static void expect(const char *what, int64_t found, int64_t expected)
{
	if (found == expected)
		return;
	fprintf(stderr, "%s: %ld, not %ld\n", what, (long)found, (long)expected);
	failures++;
}

static void (*stand_in_set)(const char *, int64_t);
static void (*stand_in_launch)(int, int);
static void (*stand_in_graph)(int, int);
static void (*stand_in_foreign)(void);

static void start(void)
{
	void *library = dlopen(getenv("CUPTI_PROBE_LIBRARY"), RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	*(void **)&stand_in_set = dlsym(library, "stand_in_set");
	*(void **)&stand_in_launch = dlsym(library, "stand_in_launch");
	*(void **)&stand_in_graph = dlsym(library, "stand_in_graph");
	*(void **)&stand_in_foreign = dlsym(library, "stand_in_foreign");
	expect("InitializeInjection", InitializeInjection(), 1);
}

/* Returns a number of the report by its name, or -1. */
static int64_t reported(const char *name)
{
	static char text[200000];
	char key[100];
	expect("report fits", cupti_probe_report(text, sizeof(text)) <= sizeof(text), 1);
	snprintf(key, sizeof(key), "\"%s\": ", name);
	const char *at = strstr(text, key);
	return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

static int64_t lines(const char *ending)
{
	char path[200], line[4000];
	int64_t count = 0;
	snprintf(path, sizeof(path), "out-%d.%s", (int)getpid(), ending);
	FILE *file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		count++;
	if (file)
		fclose(file);
	return count;
}

/* Returns the number of kernel rows in the raw file, or -1 if it is torn. */
static int64_t raw_kernels(void)
{
	char path[200];
	uint64_t head[2];
	int64_t count = 0;
	static uint8_t bytes[1 << 20];
	snprintf(path, sizeof(path), "out-%d.bin", (int)getpid());
	FILE *file = fopen(path, "r");
	while (file && fread(head, sizeof(head), 1, file) == 1) {
		if (head[0] > sizeof(bytes) || fread(bytes, 1, head[0], file) != head[0]) {
			count = -1;
			break;
		}
		for (size_t at = 0; at < head[0];) {
			uint32_t kind;
			memcpy(&kind, bytes + at, sizeof(kind));
			count += kind == CUPTI_KIND_KERNEL;
			at += kind == CUPTI_KIND_KERNEL ? 216 : sizeof(struct cupti_call_record);
		}
	}
	if (file)
		fclose(file);
	return count;
}

static void check_records(void)
{
	start();
	expect("state", cupti_probe_state(), 2);
	stand_in_launch(20000, 7);
	expect("rows before the flush come with full buffers", cupti_probe_rows(10) > 10000, 1);
	expect("flush", cupti_probe_flush(0) >= 0, 1);
	expect("kernels", (int64_t)cupti_probe_rows(10), 20000);
	expect("calls", (int64_t)cupti_probe_rows(5), 20000);
	expect("all", (int64_t)cupti_probe_rows(0), 40000);
	expect("buffers out", (int64_t)cupti_probe_buffers_out(), 0);
	expect("names", lines("kernels.txt"), 20000);
	expect("raw", raw_kernels(), 20000);
	expect("late", reported("late_in_stream"), 0);
	stand_in_set("late_every", 10);
	stand_in_set("untimed_every", 100);
	stand_in_set("drops", 5);
	stand_in_launch(1000, 7);
	cupti_probe_flush(0);
	expect("late", reported("late_in_stream"), 90);
	expect("dropped", reported("dropped"), 5);
	expect("foreign", reported("foreign_buffers"), 0);
	stand_in_foreign();
	expect("foreign", reported("foreign_buffers"), 1);
	expect("foreign rows", reported("foreign_rows"), 1);
}

static void check_turns(void)
{
	start();
	for (int i = 0; i < 20; i++) {
		expect("disable", cupti_probe_disable(10), 0);
		expect("calls off", cupti_probe_calls(0), 0);
		stand_in_launch(10, 7);
		expect("enable", cupti_probe_enable(10), 0);
		stand_in_launch(10, 7);
		cupti_probe_flush(0);
	}
	expect("kernels", (int64_t)cupti_probe_rows(10), 200);
	expect("calls", (int64_t)cupti_probe_rows(5), 0);
}

static void check_release(void)
{
	start();
	stand_in_launch(10, 7);
	expect("release", cupti_probe_release(1), 0);
	expect("state", cupti_probe_state(), 1);
	expect("rows", (int64_t)cupti_probe_rows(10), 10);
	stand_in_set("other", 1);
	expect("not ours", cupti_probe_take(1), 39);
	expect("not ours", cupti_probe_take(2), 39);
	char holder[64];
	cupti_probe_holder(holder, sizeof(holder));
	expect("holder", strcmp(holder, "another"), 0);
	stand_in_launch(10, 7);
	stand_in_set("other", 0);
	expect("ours again", cupti_probe_take(2), 0);
	stand_in_launch(10, 7);
	cupti_probe_flush(0);
	expect("rows", (int64_t)cupti_probe_rows(10), 20);
	stand_in_set("finalize", 1);
	stand_in_launch(10, 7);
	cupti_probe_flush(0);
	expect("rows", (int64_t)cupti_probe_rows(10), 20);
	cupti_probe_release(0);
	expect("ours again", cupti_probe_take(1), 0);
	stand_in_launch(10, 7);
	cupti_probe_flush(0);
	expect("rows", (int64_t)cupti_probe_rows(10), 30);
}

static void check_graphs(void)
{
	start();
	cupti_probe_mark("graph");
	stand_in_graph(50, 4);
	cupti_probe_callbacks(0, 2);
	stand_in_graph(50, 4);
	stand_in_launch(10, 7);
	cupti_probe_flush(0);
	expect("kernels", (int64_t)cupti_probe_rows(10), 410);
	expect("callbacks", lines("callbacks.txt"), 1 + 3 * 50 - 1 + 1 + 50 + 2);
	expect("launches", lines("launches.txt"), 20);
	expect("marks", lines("marks.txt"), 1);
}

static void check_pool(void)
{
	start();
	stand_in_set("keeps_buffers", 1);
	stand_in_set("one_buffer_each", 1);
	stand_in_launch(100, 7);
	stand_in_set("one_buffer_each", 0);
	expect("small", reported("small_given"), 16);
	expect("refused", reported("refused") > 0, 1);
	cupti_probe_flush(0);
	expect("small rows", reported("small_rows"), 16);
	stand_in_launch(10, 7);
	cupti_probe_flush(0);
	expect("raw", raw_kernels(), 4 + 10);
}

static void check_fork(void)
{
	start();
	stand_in_launch(100, 7);
	pid_t child = fork();
	if (child == 0) {
		stand_in_set("hangs", 1);
		expect("state of a child", cupti_probe_state(), -1);
		expect("take in a child", cupti_probe_take(1), -1);
		expect("flush in a child", cupti_probe_flush(0), -2);
		cupti_probe_mark("child");
		exit(failures ? 1 : 0);
	}
	int status = -1;
	waitpid(child, &status, 0);
	expect("child", status, 0);
	cupti_probe_flush(0);
	expect("names", lines("kernels.txt"), 100);
	expect("marks", lines("marks.txt"), 0);
}

static void check_hang(void)
{
	start();
	stand_in_launch(100, 7);
	stand_in_set("hangs", 1);
}

static void check_pending(void)
{
	start();
	stand_in_launch(100, 7);
}

/* Tests without CUPTI, or with one that finds no driver. */
static void check_none(void)
{
	const char *path = getenv("CUPTI_PROBE_LIBRARY");
	if (path)
		dlopen(path, RTLD_NOW);
	expect("InitializeInjection", InitializeInjection(), 1);
	expect("not ours", cupti_probe_state() < 2, 1);
	expect("take fails", cupti_probe_take(1) != 0, 1);
	expect("flush fails", cupti_probe_flush(0) < 0, 1);
	expect("rows", (int64_t)cupti_probe_rows(0), 0);
	cupti_probe_release(1);
	cupti_probe_enable(10);
}

static void check_held(void)
{
	start();
	expect("state", cupti_probe_state(), 1);
	expect("take", cupti_probe_take(1), 39);
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*check)(void);
	} table[] = {{"records", check_records}, {"turns", check_turns},     {"release", check_release},
	             {"graphs", check_graphs},   {"pool", check_pool},       {"fork", check_fork},
	             {"hang", check_hang},       {"pending", check_pending}, {"none", check_none},
	             {"held", check_held}};
	for (size_t i = 0; count == 2 && i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(arguments[1], table[i].name) == 0) {
			table[i].check();
			return failures ? 1 : 0;
		}
	fprintf(stderr, "usage: cupti_probe_check CASE\n");
	return 2;
}
