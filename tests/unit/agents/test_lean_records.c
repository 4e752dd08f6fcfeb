/* SPDX-License-Identifier: Apache-2.0
 *
 * test_lean_records.c: our observer is told the same with lean records as with those of a PyTorch that we made, another one misses nothing, and a
 * PyTorch that is not as known is left alone. Each test is a process of its own, since calls are led for good.
 */
#include "agents/torch/lean.h"
#include "fake_records.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct torch_entry entry;
static struct torch_layout layout;

static const char *calibrate(const char *parts)
{
	entry = fake_records_entry();
	lean_want(parts);
	assert_true(layout_probe_begin(&entry));
	lean_probe_begin(&entry);
	for (int i = 0; i < 4; i++) {
		fake_operate(1);
		fake_backward();
	}
	layout_probe_end(&layout);
	lean_probe_end(&entry, &layout);
	return lean_text();
}

/* ---- what our observer is told ------------------------------------------------------------------------------------------- */

static struct story {
	char text[20000];
	size_t length;
} * story;

static void note(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	story->length += (size_t)vsnprintf(story->text + story->length, sizeof(story->text) - story->length, format,
	                                   arguments);
	va_end(arguments);
}

static const void *open_records[16];
static int depth;

static void begin(const void *record)
{
	int64_t sequence;
	memcpy(&sequence, (const char *)record + layout.sequence, sizeof(sequence));
	open_records[depth++] = record;
	note("(%s %d ", entry.name(record), (int)sequence);
}

static void end(const void *record, void *context)
{
	note(open_records[--depth] == record ? ")" : "?");
}

static void *start(void **context, const void *record)
{
	*context = NULL;
	begin(record);
	return context;
}

static void run_all(void)
{
	fake_operate(1);
	fake_backward();
	fake_range();
	fake_switch_off(true);
	fake_operate(1);
	fake_backward();
	fake_switch_off(false);
	fake_operate(0);
	note("\n");
}

/* Callbacks come and go, and another observer does. */
static void tell_all(void)
{
	static const int scopes[] = {TORCH_SCOPE_FUNCTION, TORCH_SCOPE_BACKWARD, TORCH_SCOPE_USER};
	lean_observer(start, end);
	for (int i = 0; i < 4; i++) {
		uint64_t handles[3];
		for (int scope = 0; scope < 3; scope++) {
			struct torch_callback callback = {.start = start, .end = end, .probability = 1.0};
			callback.scopes[scopes[scope]] = true;
			handles[scope] = entry.add_global_callback(callback);
		}
		run_all();
		fake_watch(true);
		run_all();
		fake_watch(false);
		run_all();
		for (int scope = 0; scope < 3; scope++)
			entry.remove_callback(handles[scope]);
		run_all();
	}
	note("watched %u", fake_watched);
}

/* Whether the fact is this; the story is that of records that are PyTorch's. */
static void check(const char *parts, enum fake_way way, const char *fact)
{
	struct story *stories = mmap(NULL, 2 * sizeof(*stories), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	                             0);
	unsigned *objects = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	for (int is_lean = 0; is_lean < 2; is_lean++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			story = &stories[is_lean];
			fake_way = way;
			const char *told = calibrate(is_lean ? parts : "none");
			bool is_told = strcmp(told, is_lean ? fact : "none") == 0;
			if (!is_told)
				fprintf(stderr, "%s: %s\n", parts, told);
			fake_objects = 0;
			tell_all();
			objects[is_lean] = fake_objects;
			_exit(!is_told);
		}
		waitpid(pid, &status, 0);
		assert_int_equal(status, 0);
	}
	assert_true(stories[0].length > 1000);
	assert_string_equal(stories[1].text, stories[0].text);
	assert_int_equal(objects[1] < objects[0], strncmp(fact, "none", 4) != 0);
}

static void what_is_told_is_the_same(void **state)
{
	check("engine", FAKE_AS_KNOWN, "engine");
	check("object", FAKE_AS_KNOWN, "object");
	check("engine,object", FAKE_AS_KNOWN, "engine,object");
	check("object,nothing,engine", FAKE_AS_KNOWN, "engine,object");
	check("engine,object", FAKE_NOISY, "engine,object");
}

#define BEGIN "its records start in an unknown way, or another observer is active"
#define KEEP "its records keep their contents in an unknown way"
#define BOTH(problem) "none; no engine: " problem "; no object: " problem

static void records_that_are_not_as_known_are_left_alone(void **state)
{
	check("engine,object", FAKE_PAIRS_MOVED, BOTH(BEGIN));
	check("engine,object", FAKE_FLAG_MOVED, BOTH(BEGIN));
	check("engine,object", FAKE_NAME_MOVED, BOTH(KEEP));
	check("engine,object", FAKE_PLACE_UNUSED, BOTH(KEEP));
}

static void calls_that_are_not_as_known_are_left_alone(void **state)
{
	check("engine,object", FAKE_OTHER_TEXT, "engine; no object: its records are used in an unknown way");
	check("object", FAKE_KEPT, "none; no object: its records are used in an unknown way");
	check("engine", FAKE_NODE_FIRST, "none; no engine: the engine works in an unknown way");
	check("engine,object", FAKE_NAME_OF_ENGINE, "object; no engine: the engine works in an unknown way");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_told_is_the_same),
		cmocka_unit_test(records_that_are_not_as_known_are_left_alone),
		cmocka_unit_test(calls_that_are_not_as_known_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
