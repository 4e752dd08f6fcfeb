/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory: which free belongs to which allocation, what an allocation is for, levels, growth.
 */
#include "analysis/analysis_context.h"
#include "analysis/memory/growth.h"
#include "analysis/memory/memory_pool.h"
#include "model/memory_births.h"
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stepscope/stepscope.h>

#include <cmocka.h>

static struct model model;
static int64_t now;

/* ---- a process with one thread ------------------------------------------------------------------------------------------- */

static void begin_model(void)
{
	model_init(&model, 0);
	model_add_process(&model);
	model_add_track(&model, 0, TRACK_THREAD);
	now = 1000;
}

static uint32_t string(const char *text)
{
	return intern_add(&model.strings, text);
}

static void open_span(enum span_kind kind, const char *name)
{
	model_span_begin(&model, 0, now += 10, kind,
	                 kind == SPAN_PHASE ? intern_find(&model.strings, name) : string(name));
}

static void open_op(const char *name, int64_t sequence)
{
	uint32_t row = model_span_begin(&model, 0, now += 10, SPAN_OP, string(name));
	if (sequence >= 0)
		model_span_set_sequence(&model, 0, row, (uint64_t)sequence);
}

static void close_span(void)
{
	model_span_end(&model, 0, now += 10, 0);
}

static void put(uint64_t address, uint64_t bytes, int category, bool is_free)
{
	const struct memory_event event = {.time_ns = now += 1,
	                                   .address = address,
	                                   .bytes = bytes,
	                                   .row = model_span_innermost(&model, 0, NULL),
	                                   .device = STEPSCOPE_DEVICE_CPU,
	                                   .category = (uint8_t)category,
	                                   .is_free = is_free,
	                                   .has_bytes = !is_free};
	model_add_memory(&model, &event);
}

static void allocate(uint64_t address, uint64_t bytes)
{
	put(address, bytes, (int)STEPSCOPE_MEMORY_UNKNOWN, false);
}

static void release(uint64_t address)
{
	put(address, 0, 0, true);
}

static void own(uint64_t address, uint64_t bytes, int category)
{
	const struct memory_owner owner = {.time_ns = now += 1,
	                                   .address = address,
	                                   .bytes = bytes,
	                                   .device = STEPSCOPE_DEVICE_CPU,
	                                   .category = (uint8_t)category};
	model_add_owner(&model, &owner);
}

/* Of the n-th allocation at the address. */
static int category_of(uint64_t address, int number)
{
	for (uint32_t i = 0; i < model.memory_count; i++)
		if (!model.memory[i].is_free && model.memory[i].address == address && number-- == 0)
			return model.memory[i].category;
	return -1;
}

static struct model_step *begin_step(int64_t number)
{
	struct model_step step = {.number = number, .start_ns = now += 10, .has_detail = true, .has_memory = true};
	step.row = model_span_begin(&model, 0, now, SPAN_STEP, string("step"));
	struct model_step *kept = model_add_step(&model);
	*kept = step;
	return kept;
}

static void end_step(struct model_step *step)
{
	close_span();
	step->end_ns = now;
}

/* A step of one layer: its data at 0x100, two activations and a buffer of the operator, a gradient at 0x400. */
static void train(int64_t number, bool is_told)
{
	struct model_step *step = begin_step(number);
	open_op("aten::randn", -1);
	allocate(0x100, 64);
	close_span();
	open_span(SPAN_PHASE, "forward");
	open_op("aten::addmm", 2 * number);
	allocate(0x200, 32);
	open_op("aten::empty", -1);
	allocate(0x300, 1024);
	close_span();
	release(0x300);
	close_span();
	open_op("aten::mean", 2 * number + 1);
	allocate(0x500, 4);
	close_span();
	close_span();
	open_span(SPAN_PHASE, "backward");
	open_op("autograd::engine::evaluate_function: AddmmBackward0", 2 * number + 1);
	open_op("aten::mm", -1);
	allocate(0x300, 128); /* again */
	close_span();
	open_op("aten::mm", -1);
	allocate(0x400, 256);
	close_span();
	release(0x300);
	close_span();
	close_span();
	open_span(SPAN_ANNOTATION, "Optimizer.step#SGD.step");
	if (is_told) {
		own(0x4000, 256, STEPSCOPE_MEMORY_PARAMETER);
		own(0x400, 256, STEPSCOPE_MEMORY_GRADIENT);
	}
	close_span();
	release(0x400);
	release(0x500);
	release(0x200);
	release(0x100);
	end_step(step);
}

/* ---- pairs ----------------------------------------------------------------------------------------------------------------- */

static struct memory_pool pool;

static void keep_pool(void *context, const struct memory_pool *replayed)
{
	pool = *replayed;
}

static void replay(void)
{
	const struct analysis_options options = {.by = BY_NAME};
	struct analysis_context context;
	analysis_context_init(&context, &model, &options);
	memory_pools_each(&context, &(struct memory_visitor){.end = keep_pool});
	analysis_context_release(&context);
}

static void frees_of_older_memory_are_counted_and_change_nothing(void **state)
{
	begin_model();
	release(0x10);
	put(0x20, 100, STEPSCOPE_MEMORY_ACTIVATION, false);
	release(0x10);
	release(0x20);
	release(0x20);
	model_finish(&model);
	replay();
	assert_int_equal(pool.unknown_frees, 3);
	assert_true(pool.now == 0 && pool.peak == 100);
	model_release(&model);
}

static void an_address_that_is_allocated_again_was_freed(void **state)
{
	begin_model();
	put(0x20, 100, STEPSCOPE_MEMORY_ACTIVATION, false);
	put(0x20, 10, STEPSCOPE_MEMORY_GRADIENT, false);
	model_finish(&model);
	replay();
	assert_int_equal(pool.lost_frees, 1);
	assert_true(pool.now == 10 && pool.peak == 100);
	assert_true(pool.levels[STEPSCOPE_MEMORY_ACTIVATION].now == 0);
	assert_int_equal(model.memory[0].partner, 1);
	assert_int_equal(model.memory[1].ends, 0);
	model_release(&model);
}

static void what_only_an_owner_told_of_was_there_before(void **state)
{
	begin_model();
	open_op("aten::mm", -1);
	close_span();
	put(0x20, 100, STEPSCOPE_MEMORY_ACTIVATION, false);
	own(0x50, 1000, STEPSCOPE_MEMORY_PARAMETER);
	own(0x50, 1000, STEPSCOPE_MEMORY_PARAMETER);
	own(0x60, 0, STEPSCOPE_MEMORY_PARAMETER); /* of unknown size */
	release(0x20);
	model_finish(&model);
	replay();
	assert_true(pool.found == 1000 && pool.peak == 1100 && pool.now == 1000);
	assert_true(model.memory[0].is_found && model.memory[0].time_ns == model.processes[0].first_ns);
	model_release(&model);
}

/* A step in which memory is not recorded. */
static void pass_step(int64_t number)
{
	struct model_step *step = begin_step(number);
	step->has_memory = false;
	now += 1000;
	end_step(step);
}

/* What a step makes and leaves for the next one to free: a loss, and a gradient of the parameter that is there all the time. */
static void leave(int64_t number, uint64_t at, bool is_told)
{
	struct model_step *step = begin_step(number);
	put(at, 4, STEPSCOPE_MEMORY_ACTIVATION, false);
	allocate(at + 0x10, 256);
	if (is_told) {
		own(0x4000, 256, STEPSCOPE_MEMORY_PARAMETER);
		own(at + 0x10, 256, STEPSCOPE_MEMORY_GRADIENT);
		own(0x5000, 256, STEPSCOPE_MEMORY_GRADIENT); /* this one stays */
	}
	end_step(step);
}

static int64_t levels[8];
static uint32_t level_count;

static void keep_level(void *context, const struct memory_pool *replayed, uint32_t step)
{
	levels[level_count++] = (int64_t)replayed->now;
}

/* Two windows of two steps: nothing says that what the first one left is still there in the second. */
static void what_may_have_been_freed_unseen_is_not_alive(void **state)
{
	const struct analysis_options options = {.by = BY_NAME};
	struct analysis_context context;
	begin_model();
	leave(0, 0x100, true);
	release(0x100);
	release(0x110);
	leave(1, 0x200, true);
	for (int64_t i = 2; i < 5; i++)
		pass_step(i);
	release(0x300); /* made in between */
	release(0x310);
	leave(5, 0x400, false);
	release(0x400);
	release(0x410);
	leave(6, 0x500, false);
	model_finish(&model);
	level_count = 0;
	analysis_context_init(&context, &model, &options);
	memory_pools_each(&context, &(struct memory_visitor){.step_end = keep_level, .end = keep_pool});
	analysis_context_release(&context);
	assert_int_equal(level_count, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(levels[i], 256 + 256 + 260);
	assert_true(pool.peak == 256 + 256 + 260 && pool.found == 512);
	assert_true(pool.has_gaps && pool.unknown_frees == 2);
	model_release(&model);
}

static void what_is_told_of_behind_a_gap_is_alive_from_then_on(void **state)
{
	begin_model();
	leave(0, 0x100, true);
	pass_step(1);
	struct model_step *step = begin_step(2);
	own(0x110, 256, STEPSCOPE_MEMORY_GRADIENT);
	end_step(step);
	model_finish(&model);
	replay();
	assert_true(pool.now == 256 + 256 + 256 && pool.levels[STEPSCOPE_MEMORY_ACTIVATION].now == 0);
	model_release(&model);
}

/* The schedule of the program may stop a little behind the end of our step, and begin a little before one. */
static void a_gap_is_where_nothing_happens_for_longest(void **state)
{
	begin_model();
	leave(0, 0x100, true);
	struct model_step *step = begin_step(1);
	step->has_memory = false;
	release(0x100);
	release(0x110);
	put(0x120, 8, STEPSCOPE_MEMORY_ACTIVATION, false);
	now += 1000;
	put(0x130, 16, STEPSCOPE_MEMORY_ACTIVATION, false);
	end_step(step);
	leave(2, 0x500, false);
	model_finish(&model);
	replay();
	assert_true(pool.unknown_frees == 0 && pool.now == 256 + 256 + 260 + 16);
	model_release(&model);
}

/* ---- categories -------------------------------------------------------------------------------------------------------------- */

static void each_use_of_an_address_has_its_own_category(void **state)
{
	begin_model();
	for (int i = 0; i < 4; i++)
		train(i, true);
	model_finish(&model);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(category_of(0x100, i), STEPSCOPE_MEMORY_INPUT);
		assert_int_equal(category_of(0x200, i), STEPSCOPE_MEMORY_ACTIVATION);
		assert_int_equal(category_of(0x300, 2 * i), STEPSCOPE_MEMORY_TEMPORARY);
		assert_int_equal(category_of(0x300, 2 * i + 1), STEPSCOPE_MEMORY_AUTOGRAD);
		assert_int_equal(category_of(0x400, i), STEPSCOPE_MEMORY_GRADIENT);
		assert_int_equal(category_of(0x500, i), STEPSCOPE_MEMORY_ACTIVATION);
	}
	for (uint32_t i = 0; i < model.memory_count; i++)
		if (model.memory[i].is_free)
			assert_int_equal(model.memory[i].category, model.memory[model.memory[i].partner].category);
	model_release(&model);
}

static void gradients_are_known_by_their_like(void **state)
{
	begin_model();
	for (int i = 0; i < 6; i++)
		train(i, i < 2);
	model_finish(&model);
	for (int i = 0; i < 6; i++)
		assert_int_equal(category_of(0x400, i), STEPSCOPE_MEMORY_GRADIENT);
	model_release(&model);
	begin_model();
	for (int i = 0; i < 6; i++)
		train(i, false); /* nobody ever told: it may be one */
	model_finish(&model);
	assert_int_equal(category_of(0x400, 5), STEPSCOPE_MEMORY_OTHER);
	model_release(&model);
}

/* As with FSDP: what is behind the backward makes them. */
static void gradients_may_come_from_elsewhere(void **state)
{
	begin_model();
	for (int i = 0; i < 6; i++) {
		struct model_step *step = begin_step(i);
		open_op("aten::empty", -1);
		allocate(0x600, 512);
		close_span();
		open_span(SPAN_ANNOTATION, "Optimizer.step#SGD.step");
		if (i < 2)
			own(0x600, 512, STEPSCOPE_MEMORY_GRADIENT);
		close_span();
		release(0x600);
		end_step(step);
	}
	model_finish(&model);
	for (int i = 0; i < 6; i++)
		assert_int_equal(category_of(0x600, i), STEPSCOPE_MEMORY_GRADIENT);
	model_release(&model);
}

static void what_the_program_says_wins(void **state)
{
	begin_model();
	struct model_step *step = begin_step(0);
	open_op("aten::mm", 5);
	put(0x20, 100, STEPSCOPE_MEMORY_BUFFER, false);
	put(0x30, 100, STEPSCOPE_MEMORY_OTHER, false);
	own(0x30, 100, STEPSCOPE_MEMORY_GRADIENT);
	close_span();
	end_step(step);
	model_finish(&model);
	assert_int_equal(category_of(0x20, 0), STEPSCOPE_MEMORY_BUFFER);
	assert_int_equal(category_of(0x30, 0), STEPSCOPE_MEMORY_OTHER);
	model_release(&model);
}

static void what_is_kept_for_many_steps_is_no_input(void **state)
{
	begin_model();
	for (int i = 0; i < 8; i++) {
		train(i, true);
		struct model_step *step = begin_step(100 + i);
		open_op("aten::zeros", -1);
		allocate(0x9000 + 16 * (uint64_t)i, 16);
		close_span();
		end_step(step);
	}
	model_finish(&model);
	for (int i = 0; i < 8; i++)
		assert_int_equal(category_of(0x9000 + 16 * (uint64_t)i, 0), STEPSCOPE_MEMORY_OTHER);
	model_release(&model);
}

/* Made before the first step and freed in the second, by the script, or by a module, or a thread that sent it to others. */
static void data_is_freed_by_the_script(void **state)
{
	begin_model();
	model_add_track(&model, 0, TRACK_THREAD);
	open_op("aten::randn", -1);
	allocate(0x700, 64);
	close_span();
	open_op("aten::empty", -1);
	allocate(0x800, 1024);
	close_span();
	open_op("aten::cat", -1);
	allocate(0x900, 1024);
	close_span();
	train(0, true);
	struct model_step *step = begin_step(1);
	release(0x700);
	model_add_memory(&model, &(struct memory_event){.time_ns = now += 1,
	                                                .address = 0x900,
	                                                .track = 1,
	                                                .row = MODEL_NONE,
	                                                .device = STEPSCOPE_DEVICE_CPU,
	                                                .is_free = true});
	open_span(SPAN_MODULE, "DistributedDataParallel");
	open_span(SPAN_ANNOTATION, "DistributedDataParallel.forward");
	release(0x800);
	close_span();
	close_span();
	end_step(step);
	model_finish(&model);
	assert_int_equal(category_of(0x700, 0), STEPSCOPE_MEMORY_INPUT);
	assert_int_equal(category_of(0x800, 0), STEPSCOPE_MEMORY_OTHER);
	assert_int_equal(category_of(0x900, 0), STEPSCOPE_MEMORY_OTHER);
	model_release(&model);
}

static void make_data(uint64_t address, const char *operator)
{
	open_op(operator, - 1);
	allocate(address, 64);
	close_span();
}

static void what_a_model_is_called_with_is_input_when_it_is_nothing_else(void **state)
{
	begin_model();
	for (uint64_t address = 0x6000; address < 0x6040; address += 0x10)
		make_data(address, "aten::randn");
	for (uint64_t address = 0x6040; address < 0x6080; address += 0x10)
		make_data(address, "aten::zeros");
	make_data(0x6080, "aten::ones");
	make_data(0x6090, "aten::ones");
	for (int i = 0; i < 3; i++)
		train(i, true);
	own(0x6000, 0, STEPSCOPE_MEMORY_INPUT);
	own(0x6010, 0, STEPSCOPE_MEMORY_INPUT);
	own(0x6040, 0, STEPSCOPE_MEMORY_INPUT);
	own(0x6050, 0, STEPSCOPE_MEMORY_INPUT);
	own(0x6060, 64, STEPSCOPE_MEMORY_PARAMETER);
	own(0x6060, 64, STEPSCOPE_MEMORY_INPUT);
	own(0x6080, 0, STEPSCOPE_MEMORY_INPUT);
	model_finish(&model);
	for (uint64_t address = 0x6000; address < 0x6060; address += 0x10)
		assert_int_equal(category_of(address, 0), STEPSCOPE_MEMORY_INPUT);
	assert_int_equal(category_of(0x6060, 0), STEPSCOPE_MEMORY_PARAMETER);
	assert_int_equal(category_of(0x6070, 0), STEPSCOPE_MEMORY_OTHER); /* like a parameter as well */
	assert_int_equal(category_of(0x6080, 0), STEPSCOPE_MEMORY_INPUT);
	assert_int_equal(category_of(0x6090, 0), STEPSCOPE_MEMORY_OTHER); /* like a single one */
	model_release(&model);
}

static void an_activation_stays_one_when_a_model_is_called_with_it(void **state)
{
	begin_model();
	train(0, true);
	struct model_step *step = begin_step(1);
	open_op("aten::addmm", 5);
	allocate(0x200, 32);
	close_span();
	own(0x200, 0, STEPSCOPE_MEMORY_INPUT);
	open_op("aten::mean", 6);
	close_span();
	open_op("autograd::engine::evaluate_function: MeanBackward0", 6);
	close_span();
	end_step(step);
	model_finish(&model);
	assert_int_equal(category_of(0x200, 1), STEPSCOPE_MEMORY_ACTIVATION);
	model_release(&model);
}

static void data_that_was_there_before_is_input_unless_it_is_a_parameter(void **state)
{
	begin_model();
	own(0x50, 1000, STEPSCOPE_MEMORY_INPUT);
	own(0x60, 100, STEPSCOPE_MEMORY_INPUT);
	own(0x60, 100, STEPSCOPE_MEMORY_PARAMETER);
	own(0x70, 0, STEPSCOPE_MEMORY_INPUT); /* NumPy's */
	model_finish(&model);
	assert_int_equal(category_of(0x50, 0), STEPSCOPE_MEMORY_INPUT);
	assert_int_equal(category_of(0x60, 0), STEPSCOPE_MEMORY_PARAMETER);
	assert_int_equal(category_of(0x70, 0), -1);
	model_release(&model);
}

/* ---- growth -------------------------------------------------------------------------------------------------------------------- */

static void assert_verdict(const char *expected, uint32_t steps, double (*level)(uint32_t step))
{
	struct growth growth;
	struct arena arena;

	arena_init(&arena, 0);
	growth_init(&growth, steps);
	for (uint32_t i = 0; i < steps; i++)
		growth_add(&growth, i, level(i));
	assert_string_equal(growth_verdict(&growth, &arena), expected);
	growth_release(&growth);
	arena_release(&arena);
}

static double flat(uint32_t step)
{
	return 1e9;
}
static double leaking(uint32_t step)
{
	return 1e9 + 1048576.0 * step;
}
static double warming_up(uint32_t step)
{
	return step < 5 ? 1e8 * step : 5e8;
}
static double falling(uint32_t step)
{
	return 1e9 - 1024.0 * step;
}
static double jumping(uint32_t step)
{
	return 1e9 + (step * 2654435761u % 1000) * 1e6;
}
static double wobbling(uint32_t step)
{
	return 1e9 + (step * 2654435761u % 1000) * 10.0;
}

static double creeping(uint32_t step)
{
	return step / 10 * 4.0;
}

static void growth_is_told_in_plain_words(void **state)
{
	assert_verdict("cannot tell: < 8 steps", 7, leaking);
	assert_verdict("grows by 1.00 MiB per step", 8, leaking);
	assert_verdict("grows by 1.00 MiB per step", 100000, leaking);
	assert_verdict("does not grow", 20, flat);
	assert_verdict("does not grow", 20, warming_up);
	assert_verdict("does not grow", 1000, wobbling);
	assert_verdict("shrinks by 1.00 KiB per step", 20, falling);
	assert_verdict("grows by less than 1 B per step", 1000, creeping);

	struct growth growth;
	struct arena arena;
	arena_init(&arena, 0);
	growth_init(&growth, 20);
	for (uint32_t i = 0; i < 20; i++)
		growth_add(&growth, i, jumping(i));
	assert_memory_equal(growth_verdict(&growth, &arena), "cannot tell: it varies", 22);
	growth_release(&growth);
	arena_release(&arena);
}

/* ---- work ---------------------------------------------------------------------------------------------------------------------- */

/* Rows that are looked at to learn what all allocations are from. */
static uint64_t work_on_births(void)
{
	struct births births = {.model = &model};
	for (uint32_t i = 0; i < model.memory_count; i++)
		(void)birth_of(&births, &model.memory[i]);
	uint64_t work = births.looked_at;
	births_release(&births);
	return work;
}

static void an_operator_with_very_many_inside_is_looked_at_once(void **state)
{
	(void)state;
	begin_model();
	open_op("aten::outer", 7);
	for (uint64_t i = 0; i < 50000; i++) {
		open_op("aten::inner", 7);
		allocate(0x1000 + i * 64, 64);
		close_span();
	}
	close_span();
	model_finish(&model);
	assert_true(work_on_births() < (uint64_t)4 * model.tracks[0]->span_count);
	model_release(&model);
}

static void operators_deep_in_each_other_are_looked_at_once(void **state)
{
	(void)state;
	begin_model();
	for (uint64_t i = 0; i < 9000; i++) {
		open_op("aten::deep", 7);
		allocate(0x1000 + i * 64, 64);
	}
	for (uint64_t i = 0; i < 20000; i++) {
		allocate(0x1000000 + i * 64, 64);
		open_op("aten::leaf", -1);
		close_span();
	}
	for (int i = 0; i < 9000; i++) { /* whether each made a node is to be seen behind it, and nowhere is */
		close_span();
		open_op("aten::leaf", -1);
		close_span();
	}
	model_finish(&model);
	assert_true(work_on_births() < (uint64_t)4 * model.tracks[0]->span_count);
	model_release(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frees_of_older_memory_are_counted_and_change_nothing),
		cmocka_unit_test(an_address_that_is_allocated_again_was_freed),
		cmocka_unit_test(what_only_an_owner_told_of_was_there_before),
		cmocka_unit_test(what_may_have_been_freed_unseen_is_not_alive),
		cmocka_unit_test(what_is_told_of_behind_a_gap_is_alive_from_then_on),
		cmocka_unit_test(a_gap_is_where_nothing_happens_for_longest),
		cmocka_unit_test(each_use_of_an_address_has_its_own_category),
		cmocka_unit_test(gradients_are_known_by_their_like),
		cmocka_unit_test(gradients_may_come_from_elsewhere),
		cmocka_unit_test(what_the_program_says_wins),
		cmocka_unit_test(what_is_kept_for_many_steps_is_no_input),
		cmocka_unit_test(data_is_freed_by_the_script),
		cmocka_unit_test(what_a_model_is_called_with_is_input_when_it_is_nothing_else),
		cmocka_unit_test(an_activation_stays_one_when_a_model_is_called_with_it),
		cmocka_unit_test(data_that_was_there_before_is_input_unless_it_is_a_parameter),
		cmocka_unit_test(growth_is_told_in_plain_words),
		cmocka_unit_test(an_operator_with_very_many_inside_is_looked_at_once),
		cmocka_unit_test(operators_deep_in_each_other_are_looked_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
