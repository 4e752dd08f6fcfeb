/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays of graphs made by hand: what a step takes, with and without a part of it, is computed in the comments.
 */
#include "replay/places.h"
#include "replay/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define STEPS 4u
#define NEAR(a, b) assert_true((a) > (b)-0.01 && (a) < (b) + 0.01)

/* STEPS steps, each: begin, `host_ns` of host time, a launch of 10 ns, end. Its work takes `work_ns` and starts 2 ns after
 * the launch, or 1 ns after the work before. */
struct hand_graph {
	struct model model;
	struct replay_graph graph;
	struct replay_item items[3 * STEPS];
	struct replay_work works[STEPS];
	struct replay_step steps[STEPS];
	struct replay_stream stream;
	struct replay_thread thread;
	uint32_t of_stream[STEPS];
	struct plan_item planned[3 * STEPS];
	struct plan_work planned_works[STEPS];
	double ends_ns[STEPS], batches_ns[3 * STEPS];
	struct replay_plan plan;
};

static void set_item(struct hand_graph *hand, uint32_t i, enum replay_kind kind, double gap_ns, double own_ns)
{
	hand->items[i] = (struct replay_item){.kind = (uint8_t)kind,
	                                      .gap_ns = gap_ns,
	                                      .own_ns = own_ns,
	                                      .follows = i ? i - 1 : REPLAY_NONE,
	                                      .work = REPLAY_NONE,
	                                      .target = REPLAY_NONE,
	                                      .around = REPLAY_NONE,
	                                      .step = (int32_t)(i / 3)};
	hand->planned[i] = (struct plan_item){.gap_ns = gap_ns, .own_ns = own_ns};
}

static void set_work(struct hand_graph *hand, uint32_t step, double work_ns)
{
	hand->works[step] = (struct replay_work){.dur_ns = work_ns,
	                                         .launch_ns = 2,
	                                         .stream_ns = 1,
	                                         .item = 3 * step + 1,
	                                         .place = step,
	                                         .collective = REPLAY_NONE,
	                                         .is_from_end = true};
	hand->planned_works[step] = (struct plan_work){work_ns, 2, 1};
	hand->of_stream[step] = step;
	hand->items[3 * step + 1].work = step;
}

static void hand_graph_init(struct hand_graph *hand, double host_ns, double work_ns)
{
	memset(hand, 0, sizeof(*hand));
	for (uint32_t step = 0; step < STEPS; step++) {
		set_item(hand, 3 * step, REPLAY_MARK, 0, 0);
		set_item(hand, 3 * step + 1, REPLAY_LAUNCH, host_ns, 10);
		set_item(hand, 3 * step + 2, REPLAY_MARK, 0, 0);
		hand->items[3 * step + 2].is_end = true;
		set_work(hand, step, work_ns);
		hand->steps[step] = (struct replay_step){.end_ns = 1};
	}
	hand->stream = (struct replay_stream){.works = hand->of_stream, .count = STEPS};
	hand->graph = (struct replay_graph){.model = &hand->model,
	                                    .has_device = true,
	                                    .threads = &hand->thread,
	                                    .thread_count = 1,
	                                    .streams = &hand->stream,
	                                    .stream_count = 1,
	                                    .steps = hand->steps,
	                                    .step_count = STEPS,
	                                    .items = hand->items,
	                                    .item_count = 3 * STEPS,
	                                    .works = hand->works,
	                                    .work_count = STEPS,
	                                    .depth = 1024};
	hand->plan = (struct replay_plan){.graph = &hand->graph,
	                                  .items = hand->planned,
	                                  .works = hand->planned_works,
	                                  .works_ns = hand->ends_ns,
	                                  .batches_ns = hand->batches_ns};
}

static double step_of(const struct hand_graph *hand)
{
	struct replay_run run;

	replay_run(&run, &hand->plan);
	double step_ns = run.step_ns;
	replay_run_release(&run);
	return step_ns;
}

static void the_slower_side_sets_the_pace(void **state)
{
	struct hand_graph hand;

	hand_graph_init(&hand, 90, 50); /* the host: 90 + 10 */
	NEAR(step_of(&hand), 100);
	hand_graph_init(&hand, 90, 150); /* the device: 150 + 1 */
	NEAR(step_of(&hand), 151);
	(void)state;
}

static void host_time_saves_nothing_where_the_device_is_busy(void **state)
{
	struct hand_graph hand;

	hand_graph_init(&hand, 90, 150);
	for (uint32_t step = 0; step < STEPS; step++)
		hand.planned[3 * step + 1].gap_ns = 0;
	NEAR(step_of(&hand), 151);
	hand_graph_init(&hand, 90, 50);
	for (uint32_t step = 0; step < STEPS; step++)
		hand.planned[3 * step + 1].gap_ns = 0;
	NEAR(step_of(&hand), 51); /* then the device sets the pace */
	(void)state;
}

static void a_wait_makes_the_host_follow_the_device(void **state)
{
	struct hand_graph hand;

	hand_graph_init(&hand, 90, 150);
	for (uint32_t step = 0; step < STEPS; step++) { /* the mark at the end becomes a wait for all works */
		hand.items[3 * step + 2].kind = REPLAY_WAIT_ALL;
		hand.items[3 * step + 2].has_target = true;
		hand.planned[3 * step + 2].after_ns = 5;
	}
	NEAR(step_of(&hand), 90 + 10 + 2 + 150 + 5);
	for (uint32_t step = 0; step < STEPS; step++)
		hand.planned[3 * step + 2].is_free = true;
	NEAR(step_of(&hand), 151);
	(void)state;
}

static void a_launch_that_is_gone_takes_its_work_along(void **state)
{
	struct hand_graph hand;

	hand_graph_init(&hand, 90, 150);
	hand.planned[3 * 1 + 1].is_gone = true;
	struct replay_run run;
	replay_run(&run, &hand.plan);
	assert_false(run.is_of_device); /* a step has no work: the host's steps count */
	NEAR(run.step_ns, 90 + 0.75 * 10);
	replay_run_release(&run);
	(void)state;
}

static void launches_wait_for_room_in_the_queue(void **state)
{
	struct hand_graph hand;
	struct replay_run run;

	hand_graph_init(&hand, 0, 1000);
	hand.graph.depth = 2;
	hand.graph.has_device = false; /* the host's steps */
	replay_run(&run, &hand.plan);
	NEAR(run.ends_ns[0],
	     10); /* two launches have room, the third one waits for the start of the first work + 2000 */
	NEAR(run.ends_ns[1], 20);
	NEAR(run.ends_ns[2], 12 + 2000);
	replay_run_release(&run);
	(void)state;
}

static void a_collective_starts_when_the_last_rank_has_come(void **state)
{
	static struct hand_graph ranks[2];
	struct replay_plan plans[2];
	struct replay_run runs[2];

	for (int rank = 0; rank < 2; rank++) {
		hand_graph_init(&ranks[rank], rank ? 290 : 90, 20);
		for (uint32_t step = 0; step < STEPS; step++)
			ranks[rank].works[step].collective = step;
		ranks[rank].graph.collectives = STEPS;
		plans[rank] = ranks[rank].plan;
	}
	assert_true(replay_run_ranks(runs, plans, 2));
	NEAR(runs[0].step_ns, 300);
	NEAR(runs[1].step_ns, 300);
	NEAR(runs[0].ends_ns[0], 290 + 10 + 2 + 20);
	for (int rank = 0; rank < 2; rank++)
		replay_run_release(&runs[rank]);
	ranks[1].graph.collectives = STEPS - 1;
	assert_false(replay_run_ranks(runs, plans, 2));
	(void)state;
}

/* ---- the usual step ---- */

static void what_only_one_step_has_is_extra(void **state)
{
	struct hand_graph hand;
	struct replay_places places;

	hand_graph_init(&hand, 90, 50);
	hand.items[3 * 2 + 1].name = 7; /* another call in step 2 */
	hand.items[3 * 3 + 1].gap_ns = 5000;
	replay_places_find(&places, &hand.graph);
	assert_true(places.is_known);
	assert_int_equal(places.alike, 2); /* the first step lacks its first mark, which follows nothing */
	assert_true(replay_is_extra(&places, 3 * 2 + 1));
	assert_false(replay_is_extra(&places, 3 * 1 + 1));
	uint32_t place = places.of_items[3 * 3 + 1];
	assert_int_equal(place, places.of_items[3 * 1 + 1]);
	assert_int_equal(places.places[place].count, 3);
	NEAR(places.places[place].gap_ns, 90); /* the median of 90, 90 and 5000 */
	replay_places_release(&places);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_slower_side_sets_the_pace),
		cmocka_unit_test(host_time_saves_nothing_where_the_device_is_busy),
		cmocka_unit_test(a_wait_makes_the_host_follow_the_device),
		cmocka_unit_test(a_launch_that_is_gone_takes_its_work_along),
		cmocka_unit_test(launches_wait_for_room_in_the_queue),
		cmocka_unit_test(a_collective_starts_when_the_last_rank_has_come),
		cmocka_unit_test(what_only_one_step_has_is_extra),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
