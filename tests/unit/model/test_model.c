/* SPDX-License-Identifier: Apache-2.0
 *
 * The model: chunks, nesting, self times against a plain implementation, spill, what model_finish() fills in.
 */
#include "base/merge_sort.h"
#include "base/storage.h"
#include "model/model.h"
#include "model/number_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MAX_SPANS 400000u

static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 11) % limit;
}

static uint32_t add_thread(struct model *model)
{
	return model_add_track(model, model_add_process(model), TRACK_THREAD);
}

/* What the model is filled with where spans of a thread overlap. */
static void spans_may_overlap(void **state)
{
	struct model model;
	model_init(&model, 0);
	uint32_t track = add_thread(&model);
	const int64_t starts[] = {100, 110, 120, 130, 140};
	int64_t end_ns = 155;
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(model_span_begin(&model, track, starts[i], SPAN_RANGE, 1 + i), i);
		if (i == 1) /* a child that is over before anything overlaps */
			assert_true(model_span_end(&model, track, 115, 0));
	}
	/* open: 0, 2, 3, 4 */
	assert_int_equal(model_span_end_beneath(&model, track, 4, &end_ns, 0), MODEL_NONE);
	assert_int_equal(model_span_end_beneath(&model, track, 3, &end_ns, 0), 0);
	assert_int_equal(end_ns, 120);
	end_ns = 125; /* before the next one began: nothing is lost */
	assert_int_equal(model_span_end_beneath(&model, track, 2, &end_ns, 0), 2);
	assert_int_equal(end_ns, 125);
	assert_true(model_span_end(&model, track, 160, 0));
	assert_true(model_span_end(&model, track, 170, 0));
	assert_false(model_span_end(&model, track, 180, 0));
	model_finish(&model);
	const struct span_chunk *chunk = model.tracks[track]->chunks[0];
	const int64_t durations[] = {20, 5, 5, 40, 20};
	const uint32_t parents[] = {MODEL_NONE, 0, MODEL_NONE, MODEL_NONE, 3};
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(chunk->dur_ns[i], durations[i]);
		assert_int_equal(chunk->parent[i], parents[i]);
		assert_int_equal(chunk->flags[i], i == 0 ? SPAN_IS_CLIPPED : 0);
	}
	model_release(&model);
}

/* begin and end at random; the track has `count` spans in the end */
static void fill_randomly(struct model *model, uint32_t track, uint32_t count, uint32_t max_depth)
{
	int64_t now = 1000;
	uint32_t depth = 0;
	for (uint32_t begun = 0; begun < count || depth;) {
		now += random_below(5);
		bool begins = begun < count && (depth == 0 || (depth < max_depth && random_below(100) < 52));
		if (begins) {
			assert_int_equal(model_span_begin(model, track, now, SPAN_OP, 1 + begun % 7), begun);
			begun++;
			depth++;
		} else {
			assert_true(model_span_end(model, track, now, 0));
			depth--;
		}
	}
	assert_false(model_span_end(model, track, now, 0));
}

struct flat { /* what model_visit_spans() said */
	uint32_t count;
	int64_t start[MAX_SPANS], dur[MAX_SPANS], self[MAX_SPANS];
	uint32_t parent[MAX_SPANS], name[MAX_SPANS];
	uint16_t depth[MAX_SPANS];
};
static struct flat seen, seen_again;

static bool remember(void *context, const struct span_view *span)
{
	struct flat *flat = context;
	assert_int_equal(span->row, flat->count);
	flat->start[flat->count] = span->start_ns;
	flat->dur[flat->count] = span->dur_ns;
	flat->self[flat->count] = span->self_ns;
	flat->parent[flat->count] = span->parent;
	flat->name[flat->count] = span->name;
	flat->depth[flat->count++] = span->depth;
	return flat->count < MAX_SPANS;
}

static void check_tree(const struct flat *flat)
{
	static int64_t self[MAX_SPANS];
	int64_t sum = 0, roots = 0;
	for (uint32_t i = 0; i < flat->count; i++) {
		uint32_t parent = flat->parent[i];
		assert_true(flat->dur[i] >= 0);
		self[i] = flat->dur[i];
		if (i > 0)
			assert_true(flat->start[i] >= flat->start[i - 1]);
		if (parent == MODEL_NONE) {
			assert_int_equal(flat->depth[i], 0);
			roots += flat->dur[i];
			continue;
		}
		assert_true(parent < i);
		assert_int_equal(flat->depth[i], flat->depth[parent] + 1);
		assert_true(flat->start[i] >= flat->start[parent]);
		assert_true(flat->start[i] + flat->dur[i] <= flat->start[parent] + flat->dur[parent]);
		self[parent] -= flat->dur[i];
	}
	for (uint32_t i = 0; i < flat->count; i++) {
		assert_int_equal(flat->self[i], self[i]);
		assert_true(self[i] >= 0);
		sum += self[i];
	}
	assert_int_equal(sum, roots); /* roots do not overlap, so this is their union */
}

static void rows_are_found_in_their_chunks(void **state)
{
	struct model model;
	model_init(&model, 0);
	uint32_t track = add_thread(&model);
	for (uint32_t row = 0; row < 3 * CHUNK_ROWS; row++) {
		assert_int_equal(model_span_begin(&model, track, row, SPAN_RANGE, 1), row);
		assert_true(model_span_end(&model, track, row, 0));
	}
	const struct track *spans = model.tracks[track];
	uint32_t expected[] = {16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 65536, 65536};
	assert_int_equal(spans->chunk_count, 15);
	for (uint32_t i = 0, first = 0; i < 15; first += expected[i++]) {
		assert_int_equal(spans->chunks[i]->capacity, expected[i]);
		assert_int_equal(spans->chunks[i]->first_row, first);
	}
	for (uint32_t row = 0; row < spans->span_count; row++) {
		uint32_t index;
		struct span_chunk *chunk = track_chunk(spans, row, &index);
		assert_true(index < chunk->count);
		assert_int_equal(chunk->first_row + index, row);
		assert_int_equal(chunk->start_ns[index], row);
	}
	model_release(&model);
	(void)state;
}

static void self_times_equal_the_plain_way(void **state)
{
	static const uint32_t counts[] = {1, 2, 15, 16, 17, 1000, 65519, 65520, 65521, 200000};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct model model;
		model_init(&model, 0);
		uint32_t track = add_thread(&model);
		fill_randomly(&model, track, counts[i], 1 + random_below(200));
		model_finish(&model);
		seen.count = 0;
		model_visit_spans(&model, track, remember, &seen);
		assert_int_equal(seen.count, counts[i]);
		check_tree(&seen);
		assert_int_equal(model.ledger_count, 0);
		model_release(&model);
	}
	(void)state;
}

/* Complete spans among them, and ends of any level. */
static void overlapping_spans_make_a_tree(void **state)
{
	struct model model;
	model_init(&model, 0);
	uint32_t track = add_thread(&model), depth = 0;
	int64_t now = 1000;
	for (uint32_t i = 0; i < MAX_SPANS; i++) {
		uint32_t choice = random_below(10);
		now += random_below(5);
		if (choice < 5 && depth < 40) {
			assert_int_not_equal(model_span_begin(&model, track, now, SPAN_OP, 1), MODEL_NONE);
			depth++;
		} else if (choice < 6) {
			model_span_complete(&model, track, now, random_below(20), SPAN_OP, 2);
		} else if (choice < 8 || depth < 2) {
			assert_int_equal(model_span_end(&model, track, now, 0), depth > 0);
			depth -= depth > 0;
		} else {
			int64_t end_ns = now - random_below(3);
			uint32_t levels = 1 + random_below(depth - 1);
			assert_int_not_equal(model_span_end_beneath(&model, track, levels, &end_ns, 0), MODEL_NONE);
			depth--;
		}
	}
	model_finish(&model);
	seen.count = 0;
	model_visit_spans(&model, track, remember, &seen);
	assert_int_equal(seen.count, model.tracks[track]->span_count);
	check_tree(&seen);
	model_release(&model);
}

/* Nobody's file may take hours: rows that are moved again and again stay where they are. */
static void moving_rows_has_an_end(void **state)
{
	struct model model;
	model_init(&model, 0);
	uint32_t track = add_thread(&model), moved = 0;
	int64_t end_ns = 10000;
	for (uint32_t i = 0; i < 9000; i++)
		assert_int_equal(model_span_begin(&model, track, i, SPAN_OP, 1), i);
	while (model_span_end_beneath(&model, track, 8999 - moved, &end_ns, 0) != MODEL_NONE)
		moved++;
	assert_true(moved > 64 && moved < 200);
	model_finish(&model);
	model_release(&model);
}

static void complete_spans_nest_and_are_cut(void **state)
{
	struct model model;
	model_init(&model, 0);
	uint32_t track = add_thread(&model);
	int64_t start = 0;
	for (uint32_t i = 0; i < 150000; i++) {
		start += random_below(10);
		model_span_complete(&model, track, start, random_below(60), SPAN_KERNEL, 1);
	}
	model_finish(&model);
	seen.count = 0;
	model_visit_spans(&model, track, remember, &seen);
	assert_int_equal(seen.count, 150000);
	check_tree(&seen);
	model_release(&model);

	model_init(&model, 0);
	track = add_thread(&model);
	model_span_complete(&model, track, 0, 100, SPAN_OP, 1);
	model_span_complete(&model, track, 50, 100, SPAN_OP, 2);
	model_span_complete(&model, track, 100, 10, SPAN_OP, 3);
	const struct span_chunk *chunk = model.tracks[track]->chunks[0];
	assert_int_equal(chunk->parent[1], 0);
	assert_int_equal(chunk->dur_ns[1], 50);
	assert_int_equal(chunk->flags[1], SPAN_IS_CLIPPED);
	assert_int_equal(chunk->parent[2], MODEL_NONE);
	model_release(&model);
	(void)state;
}

static void begun_and_complete_spans_may_mix(void **state)
{
	struct model model;
	model_init(&model, 0);
	uint32_t track = add_thread(&model);
	int64_t now = 0;
	uint32_t depth = 0;
	for (uint32_t i = 0; i < 100000; i++) {
		now += random_below(8);
		uint32_t what = random_below(3);
		if (what == 0) {
			model_span_begin(&model, track, now, SPAN_OP, 1);
			depth++;
		} else if (what == 1) {
			assert_int_equal(model_span_end(&model, track, now, 0), depth > 0);
			depth -= depth > 0;
		} else {
			model_span_complete(&model, track, now - random_below(20), random_below(100), SPAN_OP, 2);
		}
	}
	model_finish(&model);
	seen.count = 0;
	model_visit_spans(&model, track, remember, &seen);
	check_tree(&seen);
	model_release(&model);
	(void)state;
}

static void starts_and_ends_never_go_back(void **state)
{
	struct model model;
	model_init(&model, 0);
	uint32_t track = add_thread(&model);
	model_span_begin(&model, track, 100, SPAN_OP, 1);
	model_span_begin(&model, track, 40, SPAN_OP, 1);
	model_span_end(&model, track, 90, 0);
	model_span_end(&model, track, 50, 0);
	const struct span_chunk *chunk = model.tracks[track]->chunks[0];
	assert_int_equal(chunk->start_ns[1], 100);
	assert_int_equal(chunk->dur_ns[1], 0);
	assert_int_equal(chunk->dur_ns[0], 0);
	model_release(&model);
	(void)state;
}

static void open_spans_end_with_their_process(void **state)
{
	struct model model;
	model_init(&model, 0);
	uint32_t track = add_thread(&model);
	model.processes[0].first_ns = 5;
	model.processes[0].last_ns = 5000;
	enum span_kind kind = SPAN_OTHER;
	assert_int_equal(model_span_innermost(&model, track, &kind), MODEL_NONE);
	model_span_begin(&model, track, 10, SPAN_PHASE, 2);
	model_span_begin(&model, track, 20, SPAN_OP, 9);
	assert_int_equal(model_span_innermost(&model, track, &kind), 1);
	assert_int_equal(kind, SPAN_OP);
	model_finish(&model);
	const struct span_chunk *chunk = model.tracks[track]->chunks[0];
	assert_int_equal(chunk->dur_ns[0], 4990);
	assert_int_equal(chunk->dur_ns[1], 4980);
	assert_int_equal(chunk->flags[0], SPAN_IS_OPEN);
	assert_int_equal(chunk->phase[1], 2);
	assert_int_equal(chunk->max_end_ns, 5000);
	assert_int_equal(model.ledger_count, 1);
	assert_int_equal(model.ledger[0].kind, LEDGER_OPEN_SPANS);
	assert_int_equal(model.ledger[0].count, 2);
	model_release(&model);
	(void)state;
}

static void deep_nesting_is_counted_not_stored(void **state)
{
	struct model model;
	model_init(&model, 0);
	uint32_t track = add_thread(&model);
	for (int i = 0; i < 10100; i++)
		model_span_begin(&model, track, i, SPAN_OP, 1);
	for (int i = 0; i < 10100; i++)
		assert_true(model_span_end(&model, track, 20000 + i, 0));
	assert_false(model_span_end(&model, track, 99999, 0));
	assert_int_equal(model.tracks[track]->span_count, 10000);
	model_finish(&model);
	assert_int_equal(model.ledger_count, 1);
	assert_int_equal(model.ledger[0].count, 100);
	model_release(&model);
	(void)state;
}

static void spill_changes_nothing(void **state)
{
	uint64_t seed = random_state;
	for (int is_tiny = 0; is_tiny < 2; is_tiny++) {
		struct model model;
		random_state = seed;
		model_init(&model, is_tiny ? 100000 : 0);
		uint32_t tracks[3];
		for (int i = 0; i < 3; i++) {
			tracks[i] = add_thread(&model);
			fill_randomly(&model, tracks[i], 120000, 40);
			model_span_set_shape(&model, tracks[i], 77777, 5);
			model_span_set_sequence(&model, tracks[i], 77777, 6);
			model_span_set_inputs(&model, tracks[i], 77778, 7);
		}
		model_finish(&model);
		if (is_tiny) {
			assert_true(storage_memory_bytes(model.storage) <= 100000);
			assert_true(storage_file_bytes(model.storage) > 0);
		} else {
			assert_int_equal(storage_file_bytes(model.storage), 0);
		}
		struct flat *flat = is_tiny ? &seen_again : &seen;
		memset(flat, 0, sizeof *flat);
		model_visit_spans(&model, tracks[1], remember, flat);
		uint32_t index;
		const struct span_chunk *chunk = track_chunk(model.tracks[tracks[1]], 77777, &index);
		assert_int_equal(chunk->shape[index], 5);
		assert_int_equal(span_sequence(chunk, index), 6);
		assert_true(span_sequence(chunk, index + 1) == STEPSCOPE_NO_SEQUENCE);
		assert_int_equal(span_inputs(chunk, index), 0);
		assert_int_equal(span_inputs(chunk, index + 1), 7);
		assert_null(model.tracks[tracks[1]]->chunks[0]->sequence);
		assert_null(model.tracks[tracks[1]]->chunks[0]->inputs);
		model_release(&model);
	}
	assert_memory_equal(&seen, &seen_again, sizeof seen);
	(void)state;
}

static void columns_say_the_step(void **state)
{
	struct model model;
	model_init(&model, 0);
	uint32_t track = add_thread(&model), other = model_add_track(&model, 0, TRACK_THREAD);
	for (int64_t n = 2; n-- > 0;) { /* in the wrong order: model_finish() sorts */
		struct model_step *step = model_add_step(&model);
		step->number = 10 + n;
		step->start_ns = 100 + n * 100;
		step->end_ns = 180 + n * 100;
	}
	model_span_begin(&model, track, 90, SPAN_OP, 1);
	model_span_end(&model, track, 110, 0);
	model_span_begin(&model, track, 100, SPAN_OP, 1); /* raised to 110 */
	model_span_end(&model, track, 150, 0);
	model_span_begin(&model, track, 180, SPAN_OP, 1); /* at the end of step 10, outside */
	model_span_end(&model, track, 190, 0);
	model_span_begin(&model, other, 200, SPAN_STEP, 1);
	model_span_begin(&model, other, 280, SPAN_OP, 1); /* at the end of step 11, inside of its span */
	model_span_end(&model, other, 280, 0);
	model_span_end(&model, other, 280, 0);
	model_add_value(&model, 0, 9, true, 205, 2.5);
	model_add_value(&model, 0, 9, true, 105, 1.5);
	model_add_value(&model, 0, 9, true, 190, 9.5);
	model_finish(&model);
	assert_int_equal(model.steps[0].number, 10);
	const int32_t *step = model.tracks[track]->chunks[0]->step;
	assert_int_equal(step[0], -1);
	assert_int_equal(step[1], 0);
	assert_int_equal(step[2], -1);
	step = model.tracks[other]->chunks[0]->step;
	assert_int_equal(step[0], 1);
	assert_int_equal(step[1], 1);
	const struct value_series *series = model.series[0];
	assert_int_equal(series->count, 3);
	assert_int_equal(series->time_ns[0], 105);
	assert_true(series->value[1] == 9.5);
	assert_int_equal(series->step[0], 0);
	assert_int_equal(series->step[1], -1);
	assert_int_equal(series->step[2], 1);
	model_release(&model);
	(void)state;
}

static void frees_get_size_and_category_of_their_allocation(void **state)
{
	struct model model;
	model_init(&model, 0);
	add_thread(&model);
	const struct memory_event events[] = {
		{.time_ns = 30, .address = 0x1000, .device = 0, .is_free = true},
		{.time_ns = 10, .address = 0x1000, .bytes = 64, .device = 0, .category = 2, .has_bytes = true},
		{.time_ns = 20, .address = 0x1000, .bytes = 32, .device = -1, .category = 1, .has_bytes = true},
		{.time_ns = 40, .address = 0x1000, .device = 0, .is_free = true},
		{.time_ns = 50, .address = 0x1000, .device = -1, .is_free = true},
	};
	for (size_t i = 0; i < sizeof events / sizeof *events; i++)
		model_add_memory(&model, &events[i]);
	model_finish(&model);
	assert_int_equal(model.memory[2].time_ns, 30);
	assert_int_equal(model.memory[2].bytes, 64);
	assert_int_equal(model.memory[2].category, 2);
	assert_true(model.memory[2].has_bytes);
	assert_false(model.memory[3].has_bytes);
	assert_int_equal(model.memory[4].bytes, 32);
	model_release(&model);
	(void)state;
}

static void facts_are_replaced_and_ledger_entries_add_up(void **state)
{
	struct model model;
	model_init(&model, 0);
	add_thread(&model);
	assert_null(model_meta(&model, 0, "program"));
	model_add_meta(&model, 0, "program", "a");
	model_add_meta(&model, 0, "program", "b");
	model_add_meta(&model, MODEL_NONE, "other", "c");
	assert_string_equal(model_meta(&model, 0, "program"), "b");
	assert_null(model_meta(&model, 0, "other"));
	assert_string_equal(model_meta(&model, MODEL_NONE, "other"), "c");
	assert_int_equal(model.meta_count, 2);
	model_add_ledger(&model, LEDGER_DROPPED, 0, "begin", 3, "dropped");
	assert_int_equal(model_add_ledger(&model, LEDGER_DROPPED, 0, "begin", 4, "dropped")->count, 7);
	model_add_ledger(&model, LEDGER_DROPPED, 1, "begin", 4, "dropped");
	assert_int_equal(model.ledger_count, 2);
	assert_string_equal(model_text(&model, 7), "evaluation");
	assert_string_equal(span_kind_name(SPAN_MICRO_BATCH), "micro-batch");
	model_release(&model);
	(void)state;
}

static int compare_keys(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;
	return (*a > *b) - (*a < *b);
}

static void sorting_is_right_and_stable(void **state)
{
	static uint32_t pairs[50000][2];
	for (uint32_t count = 0; count < 50000; count = count * 3 + 1) {
		for (uint32_t i = 0; i < count; i++) {
			pairs[i][0] = random_below(100);
			pairs[i][1] = i;
		}
		merge_sort(pairs, count, sizeof *pairs, compare_keys);
		for (uint32_t i = 1; i < count; i++)
			assert_true(pairs[i - 1][0] < pairs[i][0] ||
			            (pairs[i - 1][0] == pairs[i][0] && pairs[i - 1][1] < pairs[i][1]));
	}
	(void)state;
}

static void a_number_map_finds_what_is_in_it(void **state)
{
	struct number_map map = {0};
	static uint32_t values[5000];
	memset(values, 0xff, sizeof values);
	assert_int_equal(number_map_find(&map, 1), NUMBER_MAP_NONE);
	for (uint32_t i = 0; i < 200000; i++) {
		uint32_t key = random_below(5000), what = random_below(4);
		if (what == 0) {
			values[key] = i;
			number_map_set(&map, (uint64_t)key << 40 | key, i);
		} else if (what == 1) {
			values[key] = values[key] == NUMBER_MAP_NONE ? i : values[key];
			assert_int_equal(number_map_add(&map, (uint64_t)key << 40 | key, i), values[key]);
		} else {
			values[key] = NUMBER_MAP_NONE;
			number_map_remove(&map, (uint64_t)key << 40 | key);
		}
		key = random_below(5000);
		assert_int_equal(number_map_find(&map, (uint64_t)key << 40 | key), values[key]);
	}
	number_map_release(&map);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_found_in_their_chunks),
		cmocka_unit_test(self_times_equal_the_plain_way),
		cmocka_unit_test(spans_may_overlap),
		cmocka_unit_test(overlapping_spans_make_a_tree),
		cmocka_unit_test(moving_rows_has_an_end),
		cmocka_unit_test(complete_spans_nest_and_are_cut),
		cmocka_unit_test(begun_and_complete_spans_may_mix),
		cmocka_unit_test(starts_and_ends_never_go_back),
		cmocka_unit_test(open_spans_end_with_their_process),
		cmocka_unit_test(deep_nesting_is_counted_not_stored),
		cmocka_unit_test(spill_changes_nothing),
		cmocka_unit_test(columns_say_the_step),
		cmocka_unit_test(frees_get_size_and_category_of_their_allocation),
		cmocka_unit_test(facts_are_replaced_and_ledger_entries_add_up),
		cmocka_unit_test(sorting_is_right_and_stable),
		cmocka_unit_test(a_number_map_finds_what_is_in_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
