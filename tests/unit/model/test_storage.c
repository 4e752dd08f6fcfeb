/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays and pieces of a model's storage: contents stay whatever they move through, files give their space back, what is resident of
 * them is bounded, and without a temporary file it goes on in memory and says so.
 */
#include "base/error.h"
#include "base/merge_sort.h"
#include "base/storage.h"
#include "model/model.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)
#define REGION (16 * MIB) /* what pieces are cut from stays */

static void fill(uint64_t *array, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		array[i] = i * 0x9e3779b97f4a7c15u;
}

static void check(const uint64_t *array, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_true(array[i] == i * 0x9e3779b97f4a7c15u);
}

static void arrays_keep_their_contents(void **state)
{
	const size_t limits[] = {0, 3 * MIB, 1024 * MIB};
	for (int l = 0; l < 3; l++) {
		struct storage *storage = storage_new(limits[l]);
		uint64_t *array = NULL, *other = NULL;
		size_t count = 0;
		for (size_t wanted = 5; wanted < 4 * MIB; wanted = wanted * 2 + 3) {
			array = storage_resize(storage, array, wanted, sizeof *array);
			fill(array, count, wanted);
			count = wanted;
			other = storage_resize(storage, other, wanted, sizeof *other);
			fill(other, 0, wanted);
			check(array, count);
		}
		assert_true(storage_memory_bytes(storage) <= limits[l]);
		assert_true(limits[l] > 100 * MIB || storage_file_bytes(storage) > 30 * MIB);
		check(other, count);
		storage_release(storage, other);
		for (; count > 5; count /= 3) { /* shorter again */
			array = storage_resize(storage, array, count, sizeof *array);
			check(array, count);
		}
		storage_release(storage, array);
		storage_release(storage, NULL);
		assert_true(storage_file_bytes(storage) <= REGION);
		assert_int_equal(storage_memory_bytes(storage), 0);
		assert_null(storage_problem(storage));
		storage_free(storage);
	}
	(void)state;
}

static void released_memory_is_taken_again(void **state)
{
	struct storage *storage = storage_new(64 * MIB);
	uint64_t *array = storage_resize(storage, NULL, MIB, sizeof *array), *other;
	fill(array, 0, MIB);
	storage_release(storage, array);
	assert_int_equal(storage_memory_bytes(storage), 0);
	other = storage_resize(storage, NULL, MIB / 4, sizeof *other);
	assert_ptr_equal(other, array);
	fill(other, 0, MIB / 4);
	other = storage_resize(storage, other, MIB / 4 + MIB / 8, sizeof *other); /* it has room for that */
	assert_ptr_equal(other, array);
	other = storage_resize(storage, other, MIB, sizeof *other);
	check(other, MIB / 4);
	fill(other, MIB / 4, MIB);
	other = storage_resize(storage, other, 2 * MIB, sizeof *other);
	check(other, MIB);
	other = storage_resize(storage, other, MIB / 4, sizeof *other); /* shorter: that gives memory back */
	assert_true(storage_memory_bytes(storage) < 5 * MIB);
	check(other, MIB / 4);
	storage_release(storage, other);
	assert_int_equal(storage_memory_bytes(storage), 0);
	storage_free(storage);
	(void)state;
}

static bool is_within(const void *start, const uint64_t *array, size_t count)
{
	return (const char *)start >= (const char *)array && (const char *)start < (const char *)(array + count);
}

/* Memory that was touched is not given back and fetched anew: arrays and pieces share what was one array, which is whole again later. */
static void released_memory_is_shared(void **state)
{
	struct storage *storage = storage_new(64 * MIB);
	uint64_t *array = storage_resize(storage, NULL, 2 * MIB, sizeof *array), *first, *second;
	fill(array, 0, 2 * MIB);
	storage_release(storage, array);
	first = storage_resize(storage, NULL, MIB / 4, sizeof *first);
	second = storage_resize(storage, NULL, MIB / 4, sizeof *second);
	assert_true(is_within(first, array, 2 * MIB) && is_within(second, array, 2 * MIB));
	fill(first, 0, MIB / 4);
	fill(second, 0, MIB / 4);
	check(first, MIB / 4);
	first = storage_resize(storage, first, MIB, sizeof *first); /* behind the second */
	check(first, MIB / 4);
	check(second, MIB / 4);
	assert_true(is_within(first, array, 2 * MIB));
	storage_release(storage, first);
	storage_release(storage, second);
	assert_ptr_equal(storage_resize(storage, NULL, 2 * MIB, sizeof *array), array);
	storage_release(storage, array);
	for (int i = 0; i < 3; i++) { /* zeros, each a piece of its own */
		uint64_t *piece = storage_alloc(storage, MIB);
		assert_true(is_within(piece + MIB / sizeof *piece / 2, array, 2 * MIB));
		for (size_t k = 0; k < MIB / sizeof *piece; k++)
			assert_int_equal(piece[k], 0);
		fill(piece, 0, MIB / sizeof *piece);
	}
	storage_free(storage);
	(void)state;
}

/* What is released and what is in use are never more than the limit together. */
static void released_memory_is_within_the_limit(void **state)
{
	struct storage *storage = storage_new(12 * MIB);
	uint64_t *array = storage_resize(storage, NULL, MIB, sizeof *array), *other;
	storage_release(storage, array);
	other = storage_resize(storage, NULL, MIB + MIB / 8, sizeof *other); /* not in what was 8 MiB */
	array = storage_resize(storage, NULL, MIB / 8, sizeof *array);
	assert_int_equal(storage_file_bytes(storage), 0);
	assert_true(storage_memory_bytes(storage) <= 12 * MIB);
	storage_release(storage, array);
	storage_release(storage, other);
	storage_free(storage);
	(void)state;
}

static int compare_falling(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;
	return (*a < *b) - (*a > *b);
}

static void what_sorting_takes_comes_back(void **state)
{
	struct storage *storage = storage_new(0);
	size_t count = 2 * MIB;
	uint64_t *array = storage_resize(storage, NULL, count, sizeof *array);
	for (size_t i = 0; i < count; i++)
		array[i] = i;
	uint64_t bytes = storage_file_bytes(storage);
	merge_sort_in(storage, array, count, sizeof *array, compare_falling);
	for (size_t i = 0; i < count; i++)
		assert_true(array[i] == count - 1 - i);
	assert_true(storage_file_bytes(storage) <= bytes + REGION);
	storage_release(storage, array);
	storage_free(storage);
	(void)state;
}

/* As series of values are: each is less than pages of its own are worth. */
static void many_small_arrays_are_bounded_too(void **state)
{
	enum {
		ARRAYS = 200,
		COUNT = 40000
	};
	struct storage *storage = storage_new(MIB);
	uint64_t *arrays[ARRAYS] = {0}, bytes = 0;
	for (int again = 0; again < 2; again++) {
		for (size_t count = 16, before = 0; before < COUNT; before = count, count *= 2)
			for (int i = 0; i < ARRAYS; i++) {
				arrays[i] = storage_resize(storage, arrays[i], count, sizeof **arrays);
				fill(arrays[i], before, count);
			}
		assert_true(storage_memory_bytes(storage) <= MIB);
		assert_true(storage_file_bytes(storage) > ARRAYS * COUNT * sizeof **arrays);
		bytes = again ? bytes : storage_file_bytes(storage);
		for (int i = 0; i < ARRAYS; i++) {
			check(arrays[i], COUNT);
			storage_release(storage, arrays[i]);
			arrays[i] = NULL;
		}
		assert_int_equal(storage_memory_bytes(storage), 0);
	}
	assert_int_equal(storage_file_bytes(storage), bytes); /* what was released was taken again */
	storage_free(storage);
	(void)state;
}

/* Resident pages of temporary files. */
static uint64_t resident_bytes(void)
{
	unsigned long long size, resident, shared;
	FILE *file = fopen("/proc/self/statm", "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%llu %llu %llu", &size, &resident, &shared), 3);
	(void)fclose(file);
	return shared * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void few_pages_of_files_stay_resident(void **state)
{
	struct storage *storage = storage_new(0);
	size_t count = 20 * MIB; /* of 8 bytes */
	uint64_t *array = storage_resize(storage, NULL, count, sizeof *array);
	char *piece = storage_alloc(storage, 20 * MIB);
	memset(piece, 1, 20 * MIB);
	fill(array, 0, count);
	for (int tries = 0; resident_bytes() > 128 * MIB; tries++) { /* until its thread has come round */
		assert_true(tries < 3000);
		usleep(10000);
	}
	check(array, count);
	assert_int_equal(piece[20 * MIB - 1], 1);
	storage_release(storage, array);
	storage_free(storage);
	(void)state;
}

static void set_file_limit(rlim_t bytes)
{
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void without_room_it_stays_in_memory_and_says_so(void **state)
{
	struct storage *storage = storage_new(MIB);
	uint64_t *array = storage_resize(storage, NULL, MIB, sizeof *array), *other;
	assert_true(storage_file_bytes(storage) > 8 * MIB);
	fill(array, 0, MIB);
	signal(SIGXFSZ, SIG_IGN);
	set_file_limit(MIB); /* as a full disk, for what grows */
	array = storage_resize(storage, array, 2 * MIB, sizeof *array);
	other = storage_resize(storage, NULL, MIB, sizeof *other);
	assert_non_null(storage_alloc(storage, 3 * MIB));
	set_file_limit(RLIM_INFINITY);
	check(array, MIB);
	fill(other, 0, MIB);
	check(other, MIB);
	assert_int_equal(storage_file_bytes(storage), 0);
	const struct error *problem = storage_problem(storage);
	assert_non_null(problem);
	assert_string_equal(problem->text, "cannot reserve 16 MiB in a temporary file: File too large");
	storage_release(storage, other);
	storage_release(storage, array);
	storage_free(storage);
	(void)state;
}

static int full_folders; /* as many calls find no room */

int __real_posix_fallocate64(int fd, off_t offset, off_t bytes);
int __wrap_posix_fallocate64(int fd, off_t offset, off_t bytes);

int __wrap_posix_fallocate64(int fd, off_t offset, off_t bytes)
{
	if (full_folders) {
		full_folders--;
		return ENOSPC;
	}
	return __real_posix_fallocate64(fd, offset, bytes);
}

static void a_full_folder_is_passed_over(void **state)
{
	struct storage *storage = storage_new(0);
	assert_int_equal(setenv("TMPDIR", ".", 1), 0);
	full_folders = 1;
	uint64_t *array = storage_resize(storage, NULL, MIB, sizeof *array);
	assert_int_equal(full_folders, 0);
	fill(array, 0, MIB);
	full_folders = 2; /* where it is, and $TMPDIR */
	array = storage_resize(storage, array, 2 * MIB, sizeof *array);
	assert_int_equal(full_folders, 0);
	check(array, MIB);
	full_folders = 1;
	assert_non_null(storage_alloc(storage, 3 * MIB));
	assert_int_equal(storage_memory_bytes(storage), 0);
	assert_null(storage_problem(storage));
	storage_release(storage, array);
	storage_free(storage);
	unsetenv("TMPDIR");
	(void)state;
}

static void many_arrays_need_few_descriptors(void **state)
{
	enum {
		ARRAYS = 100
	};
	struct storage *storage = storage_new(0);
	struct rlimit limit, few;
	uint64_t *arrays[ARRAYS] = {0};
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = 90;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (size_t count = 0; count < MIB / 4; count += MIB / 8) /* a MiB each, then two */
		for (int i = 0; i < ARRAYS; i++) {
			arrays[i] = storage_resize(storage, arrays[i], count + MIB / 8, sizeof **arrays);
			fill(arrays[i], count, count + MIB / 8);
		}
	assert_int_equal(storage_memory_bytes(storage), 0);
	assert_null(storage_problem(storage));
	for (int i = 0; i < ARRAYS; i++) {
		check(arrays[i], MIB / 4);
		storage_release(storage, arrays[i]);
	}
	assert_int_equal(storage_file_bytes(storage), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	storage_free(storage);
	(void)state;
}

/* What a model of a few events of each kind says, as one number. */
static uint64_t sum_of(uint64_t limit_bytes, bool *is_spilled)
{
	struct model model;
	uint64_t sum = 0;
	model_init(&model, limit_bytes);
	uint32_t process = model_add_process(&model), track = model_add_track(&model, process, TRACK_THREAD);
	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t turned = (i * 7919u) % 100000;
		model_span_complete(&model, track, 10 * (int64_t)i, 5, SPAN_OP, 1);
		model_span_arg(&model, &(struct span_arg){.track = track, .row = turned, .key = 2, .u64 = i});
		model_add_memory(&model,
		                 &(struct memory_event){.time_ns = turned, .address = 64 + i % 1000, .bytes = i});
		model_add_link(&model, &(struct model_link){.number = i, .from_row = i, .to_row = turned});
		model_add_mark(&model, track, turned, 3);
		model_add_sample(&model, &(struct sample){.time_ns = turned, .track = track, .weight = i});
		model_add_value(&model, process, 4, false, turned, i);
	}
	model_finish(&model);
	*is_spilled = storage_file_bytes(model.storage) > 0;
	assert_null(storage_problem(model.storage));
	for (uint32_t i = 0; i < 100000; i++) {
		const struct value_series *series = model.series[0];
		sum = sum * 31 + model.args[i].u64 + model.args[i].row;
		sum = sum * 31 + model.memory[i].address + model.memory[i].ends;
		sum = sum * 31 + model.links[i].to_row + (uint64_t)model.marks[i].time_ns + model.samples[i].weight;
		sum = sum * 31 + (uint64_t)series->value[i] + (uint64_t)series->time_ns[i];
	}
	model_release(&model);
	return sum;
}

static void every_kind_spills_and_says_the_same(void **state)
{
	bool is_spilled, is_spilled_again;
	uint64_t sum = sum_of(0, &is_spilled), again = sum_of(1, &is_spilled_again);
	assert_false(is_spilled);
	assert_true(is_spilled_again);
	assert_true(sum == again);
	(void)state;
}

/* A count of 8 bits stands for those of 32: 64, 128, and then 256, which is 0. */
static void a_capacity_that_cannot_be_doubled_is_out_of_memory(void **state)
{
	uint8_t *items = NULL, count = 0, capacity = 0;
	for (; count < 128; count++) {
		MEMORY_GROW(items, count, capacity, 64);
		assert_int_equal(capacity, count < 64 ? 64 : 128);
		items[count] = count;
	}
	for (int i = 0; i < count; i++)
		assert_int_equal(items[i], i);
	pid_t child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		MEMORY_GROW(items, count, capacity, 64);
		_exit(0);
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	free(items);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_capacity_that_cannot_be_doubled_is_out_of_memory),
		cmocka_unit_test(arrays_keep_their_contents),
		cmocka_unit_test(released_memory_is_taken_again),
		cmocka_unit_test(released_memory_is_shared),
		cmocka_unit_test(released_memory_is_within_the_limit),
		cmocka_unit_test(what_sorting_takes_comes_back),
		cmocka_unit_test(many_small_arrays_are_bounded_too),
		cmocka_unit_test(few_pages_of_files_stay_resident),
		cmocka_unit_test(without_room_it_stays_in_memory_and_says_so),
		cmocka_unit_test(a_full_folder_is_passed_over),
		cmocka_unit_test(many_arrays_need_few_descriptors),
		cmocka_unit_test(every_kind_spills_and_says_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
