/* SPDX-License-Identifier: Apache-2.0
 *
 * test_symbols.c: equal names get equal numbers, from any number of threads and across forks; every name reaches the file and the pool.
 */
#include "recorder/symbols.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static uint32_t intern(enum stepscope_symbol_kind kind, const char *text)
{
	return symbols_intern(kind, text, (uint32_t)strlen(text));
}

static int set_up(void **state)
{
	return symbols_start() ? 0 : -1;
}

static void equal_names_of_a_kind_are_one(void **state)
{
	uint32_t range = intern(STEPSCOPE_SYMBOL_RANGE, "layer 1");

	assert_true(range >= STEPSCOPE_BUILTIN_FIRST_FREE);
	assert_int_equal(intern(STEPSCOPE_SYMBOL_RANGE, "layer 1"), range);
	assert_int_not_equal(intern(STEPSCOPE_SYMBOL_OP, "layer 1"), range);
	assert_int_not_equal(intern(STEPSCOPE_SYMBOL_RANGE, "layer 2"), range);
	assert_int_not_equal(symbols_intern(STEPSCOPE_SYMBOL_RANGE, "layer 1", 6), range);
	assert_int_not_equal(symbols_intern(STEPSCOPE_SYMBOL_RANGE, "layer 1", 8), range); /* with its NUL */
	assert_int_equal(intern(STEPSCOPE_SYMBOL_PHASE, "data"), STEPSCOPE_BUILTIN_PHASE_DATA);
	assert_int_equal(intern(STEPSCOPE_SYMBOL_PHASE, "evaluation"), STEPSCOPE_BUILTIN_PHASE_EVALUATION);
	assert_int_equal(intern(STEPSCOPE_SYMBOL_TEXT, "bytes"), STEPSCOPE_BUILTIN_KEY_BYTES);
}

static void long_names_are_cut(void **state)
{
	char *text = test_malloc(70000);

	memset(text, 'x', 70000);
	uint32_t number = symbols_intern(STEPSCOPE_SYMBOL_RANGE, text, 70000);
	assert_true(number > 0);
	assert_int_equal(symbols_intern(STEPSCOPE_SYMBOL_RANGE, text, SYMBOLS_MAX_TEXT), number);
	assert_int_equal(symbols_intern(STEPSCOPE_SYMBOL_RANGE, text, 69999), number);
	assert_int_not_equal(symbols_intern(STEPSCOPE_SYMBOL_RANGE, text, SYMBOLS_MAX_TEXT - 1), number);
	test_free(text);
}

static void characters_are_not_cut(void **state)
{
	static const char *const last[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x99\x82"};
	char *text = test_malloc(70000);

	for (int i = 0; i < 3; i++) {
		memset(text, 'a' + i, 70000);
		memcpy(text + SYMBOLS_MAX_TEXT - 1, last[i], strlen(last[i]));
		uint32_t number = symbols_intern(STEPSCOPE_SYMBOL_RANGE, text, 70000);
		assert_int_equal(symbols_intern(STEPSCOPE_SYMBOL_RANGE, text, SYMBOLS_MAX_TEXT - 1), number);
	}
	test_free(text);
}

#define THREADS 4
#define NAMES 5000

static void *intern_all(void *argument)
{
	uint32_t *numbers = argument;

	for (int i = 0; i < NAMES; i++) {
		char text[32];
		snprintf(text, sizeof(text), "name %d", i * 7 % NAMES);
		numbers[i * 7 % NAMES] = intern(STEPSCOPE_SYMBOL_RANGE, text);
	}
	return NULL;
}

static void threads_agree_about_numbers(void **state)
{
	static uint32_t numbers[THREADS][NAMES];
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, intern_all, numbers[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i < THREADS; i++)
		assert_memory_equal(numbers[i], numbers[0], sizeof(numbers[0]));
}

/* Walks symbols; returns how many entries have `text`, with its number in *found. */
static int find(const uint8_t *bytes, size_t length, const char *text, uint32_t *found)
{
	int count = 0;

	for (size_t at = 0; at + sizeof(struct stepscope_symbol) <= length;) {
		struct stepscope_symbol symbol;
		memcpy(&symbol, bytes + at, sizeof(symbol));
		assert_true(at + sizeof(symbol) + symbol.length <= length);
		assert_int_not_equal(symbol.id, 0);
		if (symbol.length == strlen(text) && memcmp(bytes + at + sizeof(symbol), text, symbol.length) == 0) {
			*found = symbol.id;
			count++;
		}
		at += sizeof(symbol) + ((symbol.length + 7u) & ~7u);
	}
	return count;
}

static void every_name_is_taken_once_in_pieces(void **state)
{
	uint32_t number = intern(STEPSCOPE_SYMBOL_MARK, "wanted"), found = 0;
	size_t room = SYMBOLS_MAX_TEXT + 64;
	uint8_t *out = test_malloc(room);
	uint32_t from = 0;
	int count = 0;

	for (size_t got = symbols_take(&from, true, out, room); got; got = symbols_take(&from, true, out, room))
		count += find(out, got, "wanted", &found);
	assert_int_equal(count, 1);
	assert_int_equal(found, number);
	intern(STEPSCOPE_SYMBOL_MARK, "later");
	size_t got = symbols_take(&from, true, out, room);
	assert_int_equal(find(out, got, "later", &found), 1);
	assert_int_equal(find(out, got, "wanted", &found), 0);
	test_free(out);
}

static void details_are_taken_where_they_are_wanted(void **state)
{
	uint32_t number = intern(STEPSCOPE_SYMBOL_INPUTS, "[7, 7]"), found = 0;
	uint32_t plain = intern(STEPSCOPE_SYMBOL_OP, "beside it"), from = number - 1;
	uint8_t out[256];

	size_t got = symbols_take(&from, false, out, sizeof(out));
	assert_int_equal(find(out, got, "[7, 7]", &found), 0);
	assert_int_equal(find(out, got, "beside it", &found), 1);
	assert_int_equal(from, plain);
	from = number - 1;
	got = symbols_take(&from, true, out, sizeof(out));
	assert_int_equal(find(out, got, "[7, 7]", &found), 1);
	assert_int_equal(found, number);
}

static void the_pool_has_old_and_new_names(void **state)
{
	struct pool pool;
	uint32_t before = intern(STEPSCOPE_SYMBOL_MARK, "before the pool"), found = 0;

	assert_true(pool_create(&pool, 16u << 20, (unsigned)getpid(), 555));
	pool_grow_symbols(&pool);
	symbols_attach_pool(&pool, 0);
	uint32_t after = intern(STEPSCOPE_SYMBOL_MARK, "after the pool");
	assert_true(find(pool.symbols, pool.header->symbols_used, "before the pool", &found) >= 1);
	assert_int_equal(found, before);
	assert_true(find(pool.symbols, pool.header->symbols_used, "after the pool", &found) >= 1);
	assert_int_equal(found, after);
	assert_true(symbols_detach_pool());
	pool_destroy(&pool, true);
	assert_true(intern(STEPSCOPE_SYMBOL_MARK, "without a pool") > 0);
}

static void the_pool_has_what_the_file_lacks(void **state)
{
	struct pool pool;
	char text[1200];
	uint32_t written = intern(STEPSCOPE_SYMBOL_MARK, "in the file"), lacked = 0, last = 0, found = 0;

	assert_true(pool_create(&pool, 1u << 20, (unsigned)getpid(), 556));
	symbols_attach_pool(&pool, written);
	assert_int_equal(pool.header->symbols_used, 0);
	/* ten times what there is room for, with a drainer that is one name behind */
	for (uint32_t i = 0; pool.header->symbols_bytes && i < 10 * pool.header->symbols_bytes / sizeof(text); i++) {
		snprintf(text, sizeof(text), "long %1100u", i);
		lacked = last ? last : written;
		last = intern(STEPSCOPE_SYMBOL_MARK, text);
		symbols_free_copies(lacked);
		assert_true(find(pool.symbols, pool.header->symbols_used, text, &found) >= 1);
		assert_int_equal(found, last);
	}
	assert_true(pool.header->symbols_used <= pool.header->symbols_bytes);
	assert_int_equal(find(pool.symbols, pool.header->symbols_used, "in the file", &found), 0);
	assert_true(symbols_detach_pool());
	pool_destroy(&pool, true);
}

static void children_keep_the_numbers(void **state)
{
	uint32_t number = intern(STEPSCOPE_SYMBOL_MARK, "inherited");
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		(void)symbols_detach_pool();
		bool is_same = intern(STEPSCOPE_SYMBOL_MARK, "inherited") == number;
		_exit(is_same && intern(STEPSCOPE_SYMBOL_MARK, "new in the child") > number ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void children_leave_details(void **state)
{
	uint32_t inputs = intern(STEPSCOPE_SYMBOL_INPUTS, "[9, 9]"), plain = intern(STEPSCOPE_SYMBOL_OP, "of both");
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		uint8_t out[256];
		uint32_t found, from = inputs - 1;
		symbols_leave_details();
		uint32_t mine = intern(STEPSCOPE_SYMBOL_INPUTS, "[9, 9]");
		bool is_right = mine > plain && intern(STEPSCOPE_SYMBOL_INPUTS, "[9, 9]") == mine;
		is_right &= intern(STEPSCOPE_SYMBOL_OP, "of both") == plain;
		size_t got = symbols_take(&from, true, out, sizeof(out));
		is_right &= find(out, got, "[9, 9]", &found) == 1 && found == mine;
		is_right &= find(out, got, "of both", &found) == 1;
		_exit(is_right ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#ifdef __x86_64__
/* Instructions from one interruption to the next: who is disturbed in each turn of a loop would never get through. */
#define BETWEEN 64

static struct {
	uint32_t from;
	uint8_t *room;
	long instructions, missed; /* missed: of the names that were added in between */
	char quick[32], slow[32];
	bool has_quick, has_slow;
} traps;

/* A trap behind each instruction. */
static void set_trap(bool is_on)
{
	uint64_t flags = is_on ? 0x100 : 0;
	__asm__ volatile("leaq -128(%%rsp), %%rsp\n\t" /* what the compiler keeps below the stack */
	                 "pushfq\n\t"
	                 "andq $~0x100, (%%rsp)\n\t"
	                 "orq %0, (%%rsp)\n\t"
	                 "popfq\n\t"
	                 "leaq 128(%%rsp), %%rsp"
	                 :
	                 : "r"(flags)
	                 : "memory", "cc");
}

/* What the drainer does, as long as there is something. */
static void take_all(void)
{
	uint32_t number, late = symbols_take_late();
	if (late && late <= traps.from)
		traps.from = late - 1;
	for (size_t got; (got = symbols_take(&traps.from, true, traps.room, SYMBOLS_MAX_TEXT + 64)) != 0;) {
		traps.has_quick |= find(traps.room, got, traps.quick, &number) > 0;
		traps.has_slow |= find(traps.room, got, traps.slow, &number) > 0;
	}
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	if (++traps.instructions % BETWEEN)
		return;
	traps.has_quick = false;
	snprintf(traps.quick, sizeof(traps.quick), "quick %ld", traps.instructions);
	intern(STEPSCOPE_SYMBOL_MARK, traps.quick);
	take_all();
	traps.missed += !traps.has_quick;
}

/* A thread may stay anywhere in the middle of adding a name: what others add meanwhile is taken, and its own when it comes. */
static void who_is_interrupted_holds_up_nobody(void **state)
{
	const struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	struct sigaction old;

	traps.room = test_malloc(SYMBOLS_MAX_TEXT + 64);
	sigaction(SIGTRAP, &action, &old);
	for (int first = 0; first < BETWEEN; first++) {
		snprintf(traps.slow, sizeof(traps.slow), "slow %d", first);
		size_t length = strlen(traps.slow);
		traps.has_slow = false;
		traps.instructions = traps.instructions / BETWEEN * BETWEEN + first;
		const long before = traps.instructions;
		set_trap(true);
		symbols_intern(STEPSCOPE_SYMBOL_MARK, traps.slow, (uint32_t)length);
		set_trap(false);
		assert_true(traps.instructions > before + 50);
		assert_int_equal(traps.missed, 0);
		take_all();
		assert_true(traps.has_slow);
	}
	sigaction(SIGTRAP, &old, NULL);
	test_free(traps.room);
}
#else
static void who_is_interrupted_holds_up_nobody(void **state)
{
	skip(); /* traps behind each instruction are set as on x86-64 */
}
#endif

/* Beside the last: they fill half of the table. */
static void inputs_leave_room_for_names(void **state)
{
	char text[32];
	uint32_t count = 0;
	for (uint32_t last = 1; count < SYMBOLS_MAX && last; count += last != 0) {
		snprintf(text, sizeof(text), "[%u]", count);
		last = intern(STEPSCOPE_SYMBOL_INPUTS, text);
	}
	assert_in_range(count, SYMBOLS_MAX / 4, SYMBOLS_MAX / 2);
	assert_int_equal(intern(STEPSCOPE_SYMBOL_FRAME, "train.py:1"), 0);
	assert_false(symbols_are_full());
	assert_int_not_equal(intern(STEPSCOPE_SYMBOL_TEXT, "a name"), 0);
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		symbols_leave_details();
		_exit(intern(STEPSCOPE_SYMBOL_INPUTS, "[0]") != 0 && intern(STEPSCOPE_SYMBOL_FRAME, "train.py:1") != 0
		              ? 0
		              : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Last: afterwards there is no room any more. */
static void a_full_table_has_names_that_stand_in(void **state)
{
	uint32_t number = intern(STEPSCOPE_SYMBOL_MARK, "early"), last = 1;
	char text[32];

	for (uint32_t i = 0; i < SYMBOLS_MAX + 10 && last; i++) {
		snprintf(text, sizeof(text), "fill %u", i);
		last = intern(STEPSCOPE_SYMBOL_TEXT, text);
	}
	assert_int_equal(last, 0);
	assert_int_equal(intern(STEPSCOPE_SYMBOL_MARK, "early"), number); /* known ones still work */
	/* values and texts get none, what has an end gets one that stands in for all */
	assert_true(symbols_are_full());
	assert_int_equal(intern(STEPSCOPE_SYMBOL_COUNTER, "too late"), 0);
	assert_int_equal(intern(STEPSCOPE_SYMBOL_RANGE, "too late"),
	                 intern(STEPSCOPE_SYMBOL_RANGE, "(too many names)"));
	assert_int_equal(intern(STEPSCOPE_SYMBOL_RANGE, "later still"), intern(STEPSCOPE_SYMBOL_RANGE, "too late"));
	assert_int_not_equal(intern(STEPSCOPE_SYMBOL_OP, "too late"), 0);
	assert_int_not_equal(intern(STEPSCOPE_SYMBOL_OP, "too late"), intern(STEPSCOPE_SYMBOL_RANGE, "too late"));
	/* facts find room until they have filled theirs, and the stand-ins have theirs still */
	assert_int_not_equal(intern(STEPSCOPE_SYMBOL_META, "capture"), 0);
	for (uint32_t i = 0; i < SYMBOLS_MAX && last == 0; i++) {
		snprintf(text, sizeof(text), "fact %u", i);
		last = intern(STEPSCOPE_SYMBOL_META, text) ? 0 : 1;
	}
	assert_int_equal(last, 1);
	assert_int_not_equal(symbols_intern(STEPSCOPE_SYMBOL_META, "capture\0all", 11), 0);
	assert_int_not_equal(intern(STEPSCOPE_SYMBOL_MARK, "too late"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_names_of_a_kind_are_one),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(characters_are_not_cut),
		cmocka_unit_test(threads_agree_about_numbers),
		cmocka_unit_test(every_name_is_taken_once_in_pieces),
		cmocka_unit_test(details_are_taken_where_they_are_wanted),
		cmocka_unit_test(the_pool_has_old_and_new_names),
		cmocka_unit_test(the_pool_has_what_the_file_lacks),
		cmocka_unit_test(children_keep_the_numbers),
		cmocka_unit_test(children_leave_details),
		cmocka_unit_test(who_is_interrupted_holds_up_nobody),
		cmocka_unit_test(inputs_leave_room_for_names),
		cmocka_unit_test(a_full_table_has_names_that_stand_in),
	};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
