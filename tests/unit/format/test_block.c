/* SPDX-License-Identifier: Apache-2.0
 *
 * test_block.c: words to columns and back: every type and length of event, any time, any cut of the input.
 */
#include "format/block.h"
#include "format/decode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define WORDS 16000

struct sample {
	uint64_t words[WORDS + 64];
	size_t count;
	struct {
		uint32_t head;
		uint64_t tick;
		uint64_t payload[15];
	} events[WORDS];
	uint32_t event_count;
	uint64_t base;
};

static struct sample sample;
static uint8_t out[BLOCK_MAX_EVENT_BYTES];
static uint64_t seed;

static uint32_t next_random(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

static void put(uint32_t type, uint32_t id, uint32_t count, uint64_t tick, const uint64_t *payload)
{
	uint32_t head = id << 8 | count << 4 | type;

	sample.words[sample.count++] = (uint64_t)head << 32 | (uint32_t)tick;
	memcpy(sample.words + sample.count, payload, count * 8);
	sample.count += count;
	if (type == STEPSCOPE_EVENT_TIME)
		return;
	sample.events[sample.event_count].head = head;
	sample.events[sample.event_count].tick = tick;
	memcpy(sample.events[sample.event_count++].payload, payload, count * 8);
}

/* Random events whose times go up by anything from nothing to minutes; TIME events where the low half would wrap. */
static void make_sample(uint64_t start, size_t words)
{
	uint64_t tick = start, base = start & ~(uint64_t)UINT32_MAX;

	sample.count = sample.event_count = 0;
	sample.base = base;
	while (sample.count + 20 < words) {
		uint64_t payload[15];
		uint32_t type = 1 + next_random(13), count = next_random(3) ? next_random(4) : next_random(16);
		for (int i = 0; i < 15; i++)
			payload[i] = next_random(2) ? next_random(1000) : seed * (uint64_t)i;
		if (next_random(3) == 0)
			payload[0] = next_random(2) ? UINT64_MAX : 1ull << 63;
		tick += next_random(20) ? next_random(3000) : (uint64_t)next_random(UINT32_MAX) << next_random(5);
		if ((tick - base) >> 32) {
			base = tick & ~(uint64_t)UINT32_MAX;
			put(STEPSCOPE_EVENT_TIME, 0, 1, base, &base);
		}
		put(type, next_random(2) ? next_random(250) : next_random(1u << 24), count, tick, payload);
	}
	sample.words[sample.count] = 0;
}

static struct encoder *new_encoder(void)
{
	return calloc(1, encoder_bytes());
}

/* Decodes out[] and compares with events [first, ...) of the sample; returns how many. */
static uint32_t check_block(uint32_t first, unsigned shift)
{
	struct decoder decoder = {0};
	struct stepscope_block block;

	memcpy(&block, out, sizeof(block));
	assert_int_equal(block.magic, STEPSCOPE_BLOCK_MAGIC);
	assert_true(decoder_run(&decoder, &block, out + sizeof(block)));
	for (uint32_t i = 0; i < block.events; i++) {
		const struct segment_event *event = &decoder.events[i];
		assert_int_equal(event->id << 8 | (uint32_t)event->payload_count << 4 | event->type,
		                 sample.events[first + i].head);
		assert_true(sample.events[first + i].tick - event->tick < 1ull << shift ||
		            event->tick - sample.events[first + i].tick < 1ull << shift);
		assert_memory_equal(event->payload, sample.events[first + i].payload, 8 * (size_t)event->payload_count);
	}
	assert_int_equal(block.first_tick, sample.events[first].tick);
	decoder_release(&decoder);
	return block.events;
}

static void events_come_back_as_they_were(void **state)
{
	struct encoder *encoder = new_encoder();

	for (int round = 0; round < 60; round++) {
		unsigned shift = (unsigned)round % 8;
		uint64_t base;
		make_sample((uint64_t)next_random(1u << 30) << 20, 200 + next_random(WORDS - 400));
		encoder_begin(encoder, 3, 1000, shift);
		base = sample.base;
		assert_int_equal(encoder_add(encoder, sample.words, sample.count + 1, &base), sample.count);
		assert_int_equal(encoder_words(encoder), sample.count);
		assert_true(encoder_finish(encoder, 0, out) <= sizeof(out));
		assert_int_equal(check_block(0, shift), sample.event_count);
	}
	free(encoder);
}

static void input_may_come_in_pieces(void **state)
{
	struct encoder *encoder = new_encoder();

	for (int round = 0; round < 60; round++) {
		uint64_t base;
		uint32_t checked = 0;
		size_t at = 0, visible = 0;
		make_sample(1ull << 40, 3000);
		base = sample.base;
		while (at < sample.count) {
			encoder_begin(encoder, 3, at, 0);
			visible += 1 + next_random(300);
			if (visible > sample.count)
				visible = sample.count;
			at += encoder_add(encoder, sample.words + at, visible - at,
			                  &base); /* stops before half an event */
			if (encoder_events(encoder) == 0)
				continue;
			assert_true(encoder_finish(encoder, 0, out) > 0);
			checked += check_block(checked, 0);
		}
		assert_int_equal(checked, sample.event_count);
	}
	free(encoder);
}

static void a_full_encoder_says_so(void **state)
{
	struct encoder *encoder = new_encoder();
	uint64_t words[2] = {(uint64_t)(STEPSCOPE_EVENT_BEGIN | 5 << 8) << 32, 0}, base = 0;
	uint32_t count = 0;

	encoder_begin(encoder, 1, 0, 0);
	while (!encoder_is_full(encoder)) {
		assert_int_equal(encoder_add(encoder, words, 1, &base), 1);
		count++;
	}
	assert_int_equal(encoder_add(encoder, words, 1, &base), 0);
	assert_false(encoder_add_event(encoder, 5u << 8 | STEPSCOPE_EVENT_BEGIN, 0, NULL));
	assert_in_range(count, ENCODER_MAX_WORDS - 16, ENCODER_MAX_WORDS);
	encoder_finish(encoder, 0, out);
	free(encoder);
}

static void time_that_runs_backwards_stands_still(void **state)
{
	struct encoder *encoder = new_encoder();
	struct decoder decoder = {0};
	struct stepscope_block block;

	encoder_begin(encoder, 1, 0, 0);
	encoder_add_event(encoder, 5u << 8 | STEPSCOPE_EVENT_BEGIN, 1000, NULL);
	encoder_add_event(encoder, STEPSCOPE_EVENT_END, 900, NULL);
	encoder_add_event(encoder, STEPSCOPE_EVENT_END, 1100, NULL);
	encoder_finish(encoder, 0, out);
	memcpy(&block, out, sizeof(block));
	assert_true(decoder_run(&decoder, &block, out + sizeof(block)));
	assert_int_equal(decoder.events[1].tick, 1000);
	assert_int_equal(decoder.events[2].tick, 1100);
	decoder_release(&decoder);
	free(encoder);
}

/* Nested ops of a model's layers with irregular lengths, as the drainer sees them: little more than a byte each. */
static void ordinary_events_take_few_bytes(void **state)
{
	struct encoder *encoder = new_encoder();
	uint64_t tick = 1ull << 33, bytes = 0, events = 0;
	const uint64_t none[15] = {0};

	seed = 11;
	for (int block = 0; block < 20; block++) {
		sample.count = sample.event_count = 0;
		for (uint32_t op = 0; sample.count < 8000; op++) {
			uint32_t name = 20 + op % 37;
			put(STEPSCOPE_EVENT_BEGIN, name, 0, tick += 300 + next_random(120), none);
			for (uint32_t inner = 0; inner < op % 3; inner++) {
				put(STEPSCOPE_EVENT_BEGIN, name + 1 + inner, 0, tick += 200 + next_random(60), none);
				put(STEPSCOPE_EVENT_END, 0, 0, tick += 40 * (name % 7 + 1) + next_random(64), none);
			}
			put(STEPSCOPE_EVENT_END, 0, 0, tick += 900 + next_random(200), none);
		}
		uint64_t base = sample.events[0].tick & ~(uint64_t)UINT32_MAX;
		encoder_begin(encoder, 1, 0, 3);
		encoder_add(encoder, sample.words, sample.count, &base);
		bytes += encoder_finish(encoder, 0, out);
		events += sample.event_count;
	}
	printf("# %.3f bytes per event\n", (double)bytes / (double)events);
	assert_true(bytes * 100 < events * 112);
	free(encoder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_come_back_as_they_were),
		cmocka_unit_test(input_may_come_in_pieces),
		cmocka_unit_test(a_full_encoder_says_so),
		cmocka_unit_test(time_that_runs_backwards_stands_still),
		cmocka_unit_test(ordinary_events_take_few_bytes),
	};
	seed = 4711;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
