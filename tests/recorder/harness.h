/* SPDX-License-Identifier: Apache-2.0
 *
 * harness.h: what the recorder's tests share. A test starts its own program again as a victim, with a recording asked for in the
 * environment, does something to it, and reads the recording back. Victims count what they emit in memory that the test
 * shares with them, so that "recorded + declared drops = issued" can be checked after any death.
 *
 *     static void victim_work(int argc, char **argv) { ... stepscope_mark("x"); ... }
 *     static void marks_are_recorded(void)
 *     {
 *         harness_run("work", NULL);
 *         struct recording *recording = recording_read(harness.directory);
 *         CHECK(recording_sum(recording, STEPSCOPE_EVENT_MARK) == 1);
 *         recording_free(recording);
 *     }
 *     HARNESS_MAIN(VICTIM(work)), (TEST(marks_are_recorded))
 *
 * A failed CHECK ends its test. Output is TAP. `PROGRAM NAME...` runs single tests.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <sys/types.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define IS_THREAD_SANITIZED 1
#else
#define IS_THREAD_SANITIZED 0
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

struct harness_test {
	const char *name;
	void (*run)(void);
};

struct harness_victim {
	const char *name;
	void (*run)(int argc, char **argv);
};

struct harness {
	char root[64];       /* of this test, removed after it */
	char directory[96];  /* the run directory in it */
	char errors[96];     /* file: what victims wrote to stderr */
	char output[96];     /* file: the same for stdout */
	uint64_t *counters;  /* HARNESS_COUNTERS shared numbers, also in victims; victim thread k: [8 * k] */
	const char *preload; /* victims' LD_PRELOAD, NULL none */
	const char *options; /* victims' STEPSCOPE_OPTIONS, NULL: keep_size=0; without a budget they have none */
	const char *name;    /* of the test */
};
extern struct harness harness;
#define HARNESS_COUNTERS 16384u

/* Starts a victim with up to 6 arguments, NULL-terminated. The process id. */
pid_t harness_start(const char *victim, ...) __attribute__((sentinel));
/* Starts it and waits; the wait status, 0 when it ended well. */
int harness_run(const char *victim, ...) __attribute__((sentinel));
int harness_wait(pid_t pid);
/* Becomes this program again; under the emulator in HARNESS_WRAPPER (its words), whose /proc/self/exe is not ours. */
void harness_exec(char **argv);
/* Waits until counters[index] >= value; fails the test when the victim ends before or nothing moves for a minute. */
void harness_await(pid_t pid, unsigned index, uint64_t value);
/* Text of a file, at most 64 KB of it, NUL-terminated; valid until the next call. */
const char *harness_text(const char *path);
unsigned harness_count_lines(const char *text, const char *part); /* lines that contain `part` */
/* A fresh random number below `below`; the seed is printed when a test fails. */
uint32_t harness_random(uint32_t below);

noreturn void harness_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
noreturn void harness_skip(const char *reason);
#define CHECK(condition) ((condition) ? (void)0 : harness_fail(__FILE__, __LINE__, "%s", #condition))
#define CHECK_EQUAL(a, b) harness_check_equal(__FILE__, __LINE__, #a " == " #b, (uint64_t)(a), (uint64_t)(b))
void harness_check_equal(const char *file, int line, const char *what, uint64_t a, uint64_t b);

int harness_main(int argc, char **argv, const struct harness_test *tests, const struct harness_victim *victims);
#define TEST(name)                                                                                                     \
	{                                                                                                              \
#name, name                                                                                            \
	}
#define VICTIM(name)                                                                                                   \
	{                                                                                                              \
#name, victim_##name                                                                                   \
	}
#define LIST(...)                                                                                                      \
	{                                                                                                              \
		__VA_ARGS__,                                                                                           \
		{                                                                                                      \
			0, 0                                                                                           \
		}                                                                                                      \
	}
#define HARNESS_MAIN(victim_list, test_list)                                                                           \
	int main(int argc, char **argv)                                                                                \
	{                                                                                                              \
		static const struct harness_victim victims[] = victim_list;                                            \
		static const struct harness_test tests[] = test_list;                                                  \
		return harness_main(argc, argv, tests, victims);                                                       \
	}

#endif
