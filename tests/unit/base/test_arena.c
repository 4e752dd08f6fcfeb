/* SPDX-License-Identifier: Apache-2.0
 *
 * test_arena.c: arena_alloc() and its relatives.
 */
#include "base/arena.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void pieces_are_zeroed_aligned_and_apart(void **state)
{
	struct arena arena;
	unsigned char *pieces[2000];

	arena_init(&arena, 0);
	for (size_t i = 0; i < 2000; i++) {
		size_t bytes = i % 97 * (i % 31);

		pieces[i] = arena_alloc(&arena, bytes);
		assert_int_equal((uintptr_t)pieces[i] % 16, 0);
		for (size_t j = 0; j < bytes; j++)
			assert_int_equal(pieces[i][j], 0);
		memset(pieces[i], (int)(i % 251), bytes);
	}
	for (size_t i = 0; i < 2000; i++) {
		for (size_t j = 0; j < i % 97 * (i % 31); j++)
			assert_int_equal(pieces[i][j], i % 251);
	}
	arena_release(&arena);
	assert_null(arena.newest);
	assert_int_equal(arena.used_bytes, 0);
	arena_release(&arena);
}

static void a_block_can_be_filled_to_its_end(void **state)
{
	struct arena arena;

	arena_init(&arena, 0);
	for (int i = 0; i < 20000; i++)
		memset(arena_alloc(&arena, 16), 1, 16);
	assert_int_equal(arena.used_bytes, 320000);
	arena_release(&arena);
}

static void a_large_piece_does_not_waste_the_current_block(void **state)
{
	struct arena arena;
	char *before;
	char *after;

	arena_init(&arena, 0);
	before = arena_alloc(&arena, 16);
	memset(arena_alloc(&arena, 5u << 20), 1, 5u << 20);
	after = arena_alloc(&arena, 16);
	assert_in_range(after - before, 16, 32); /* a gap under AddressSanitizer */
	arena_release(&arena);
}

static void the_limit_holds_and_gives_null(void **state)
{
	struct arena arena;

	arena_init(&arena, 64);
	assert_non_null(arena_alloc(&arena, 33)); /* 48 */
	assert_null(arena_alloc(&arena, 17));
	assert_non_null(arena_alloc(&arena, 16));
	assert_int_equal(arena.used_bytes, 64);
	assert_null(arena_alloc(&arena, 1));
	assert_null(arena_dup(&arena, "x"));
	assert_null(arena_printf(&arena, "%d", 1));
	assert_null(arena_alloc(&arena, SIZE_MAX));
	assert_null(arena_dup_n(&arena, "x", SIZE_MAX));
	arena_release(&arena);
}

static void an_array_too_large_to_multiply_is_refused(void **state)
{
	struct arena arena;

	arena_init(&arena, 1024);
	assert_null(arena_array(&arena, SIZE_MAX / 4 + 2, 4)); /* wraps to 4 */
	assert_non_null(arena_array(&arena, 4, 4));
	assert_non_null(arena_array(&arena, 0, 4));
	arena_release(&arena);
}

static void without_a_limit_running_out_aborts(void **state)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct arena arena;

		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		signal(SIGABRT, SIG_DFL);
		close(2);
		arena_init(&arena, 0);
		arena_array(&arena, SIZE_MAX / 4 + 2, 4);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void copies_are_terminated_texts(void **state)
{
	struct arena arena;
	char *text;

	arena_init(&arena, 0);
	assert_string_equal(arena_dup(&arena, "loss"), "loss");
	assert_string_equal(arena_dup(&arena, ""), "");
	assert_string_equal(arena_dup_n(&arena, "forward", 3), "for");
	assert_memory_equal(arena_dup_n(&arena, "a\0b", 3), "a\0b", 4);
	assert_string_equal(arena_printf(&arena, "step %d of %s", 7, "20"), "step 7 of 20");
	text = arena_printf(&arena, "%100000d", 1);
	assert_int_equal(strlen(text), 100000);
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_zeroed_aligned_and_apart),
		cmocka_unit_test(a_block_can_be_filled_to_its_end),
		cmocka_unit_test(a_large_piece_does_not_waste_the_current_block),
		cmocka_unit_test(the_limit_holds_and_gives_null),
		cmocka_unit_test(an_array_too_large_to_multiply_is_refused),
		cmocka_unit_test(without_a_limit_running_out_aborts),
		cmocka_unit_test(copies_are_terminated_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
