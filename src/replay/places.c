/* SPDX-License-Identifier: Apache-2.0
 *
 * places.c: see places.h. Sequences are compared by the greedy algorithm of E. W. Myers (Algorithmica 1, 1986)
 * after common beginnings and ends. As a rule a step has one additional stretch.
 */
#include "replay/places.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/statistics.h"
#include "model/number_map.h"

#include <stdlib.h>
#include <string.h>

#define MOST_DIVERGING 32     /* steps with more, after which no step is compared but at its ends */
#define MOST_DIFFERENCES 2000 /* between two steps; with more they have nothing in common but their ends */

struct item_sequence { /* items of a step */
	uint32_t *items;
	uint64_t *words; /* what each item is */
	uint32_t count, capacity;
	uint64_t hash;
};

static uint64_t word_of_item(const struct replay_graph *graph, const struct replay_item *item)
{
	uint32_t work = item->work == REPLAY_NONE ? 0 : 1 + graph->works[item->work].name;

	return hash_two((uint64_t)item->kind << 33 | (uint64_t)item->is_end << 32 | item->name,
	                (uint64_t)item->thread << 32 | work);
}

static void sequence_add(struct item_sequence *sequence, uint32_t item, uint64_t word)
{
	if (sequence->count == sequence->capacity) {
		sequence->capacity = sequence->capacity ? 2 * sequence->capacity : 256;
		sequence->items = memory_resize(sequence->items, sequence->capacity, sizeof(*sequence->items));
		sequence->words = memory_resize(sequence->words, sequence->capacity, sizeof(*sequence->words));
	}
	sequence->items[sequence->count] = item;
	sequence->words[sequence->count++] = word;
	sequence->hash = hash_mix(sequence->hash, word);
}

/* The very first mark follows nothing, so it has no gap. */
static struct item_sequence *sequences_of(const struct replay_graph *graph)
{
	struct item_sequence *sequences = memory_resize(NULL, graph->step_count, sizeof(*sequences));

	memset(sequences, 0, graph->step_count * sizeof(*sequences));
	for (uint32_t i = 1; i < graph->item_count; i++)
		sequence_add(&sequences[graph->items[i].step], i, word_of_item(graph, &graph->items[i]));
	return sequences;
}

/* The sequence that most steps have; of several the first. */
static uint32_t most_common(const struct item_sequence *sequences, uint32_t count, uint32_t *alike)
{
	struct number_map firsts = {0}; /* by hash: the first step with it */
	uint32_t *counts = memory_resize(NULL, count, sizeof(*counts)), best = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t first = number_map_add(&firsts, sequences[i].hash, i);

		counts[i] = 0;
		counts[first]++;
	}
	for (uint32_t i = 0; i < count; i++)
		best = counts[i] > counts[best] ? i : best;
	*alike = counts[best];
	number_map_release(&firsts);
	free(counts);
	return best;
}

/* ---- comparing ---- */

struct sequence_pair {
	const uint64_t *usual, *other;
	int32_t usual_count, other_count;
	uint32_t *matches; /* of `other`: index in `usual` */
};

/* Fills the matches along the path that the furthest points of each round tell. rounds[d] has 2 d + 1 of them. */
static void walk_back(const struct sequence_pair *pair, int32_t *const *rounds, int32_t d)
{
	int32_t x = pair->usual_count, y = pair->other_count;

	for (; d >= 0; d--) {
		int32_t k = x - y, from_x = 0, from_y = 0;

		if (d > 0) {
			const int32_t *before = rounds[d - 1] + (d - 1);
			bool is_down = k == -d || (k != d && before[k - 1] < before[k + 1]);
			int32_t from_k = is_down ? k + 1 : k - 1;

			from_x = before[from_k];
			from_y = from_x - from_k;
		}
		while (x > from_x && y > from_y && x > 0 && y > 0 && pair->usual[x - 1] == pair->other[y - 1]) {
			x--;
			y--;
			pair->matches[y] = (uint32_t)x;
		}
		x = from_x;
		y = from_y;
	}
}

/* The furthest point on diagonal k after d differences, and along the equal items behind it. */
static int32_t furthest(const struct sequence_pair *pair, const int32_t *before, int32_t d, int32_t k)
{
	int32_t x = 0;

	if (d > 0)
		x = k == -d || (k != d && before[k - 1] < before[k + 1]) ? before[k + 1] : before[k - 1] + 1;
	while (x < pair->usual_count && x - k < pair->other_count && x - k >= 0 && pair->usual[x] == pair->other[x - k])
		x++;
	return x;
}

/* Returns false if the sequences differ too much. */
static bool match(const struct sequence_pair *pair)
{
	int32_t most = pair->usual_count + pair->other_count, d;
	int32_t **rounds = NULL;
	bool is_over = false;

	most = most < MOST_DIFFERENCES ? most : MOST_DIFFERENCES;
	rounds = memory_resize(NULL, (size_t)most + 1, sizeof(int32_t *));
	for (d = 0; d <= most && !is_over; d++) {
		rounds[d] = memory_resize(NULL, 2 * (size_t)d + 1, sizeof(int32_t));
		for (int32_t k = -d; k <= d && !is_over; k += 2) {
			int32_t x = furthest(pair, d ? rounds[d - 1] + (d - 1) : NULL, d, k);

			rounds[d][d + k] = x;
			is_over = x >= pair->usual_count && x - k >= pair->other_count;
		}
	}
	if (is_over)
		walk_back(pair, rounds, d - 1);
	for (int32_t i = 0; i < d; i++)
		free(rounds[i]);
	free(rounds);
	return is_over;
}

static void compare(const struct item_sequence *usual, const struct item_sequence *other, uint32_t *matches,
                    uint32_t *diverging)
{
	uint32_t first = 0, last = 0, least = usual->count < other->count ? usual->count : other->count;

	for (uint32_t i = 0; i < other->count; i++)
		matches[i] = REPLAY_NONE;
	for (; first < least && usual->words[first] == other->words[first]; first++)
		matches[first] = first;
	for (; last < least - first && usual->words[usual->count - 1 - last] == other->words[other->count - 1 - last];
	     last++)
		matches[other->count - 1 - last] = usual->count - 1 - last;
	struct sequence_pair pair = {.usual = usual->words + first,
	                             .other = other->words + first,
	                             .usual_count = (int32_t)(usual->count - first - last),
	                             .other_count = (int32_t)(other->count - first - last),
	                             .matches = matches + first};
	if (pair.usual_count && pair.other_count && *diverging < MOST_DIVERGING) {
		*diverging += !match(&pair);
		for (int32_t i = 0; i < pair.other_count; i++)
			if (pair.matches[i] != REPLAY_NONE)
				pair.matches[i] += first;
	}
}

/* ---- medians ---- */

static void find_medians(struct replay_places *places, const struct replay_graph *graph)
{
	uint32_t *starts = memory_resize(NULL, places->place_count + 2, sizeof(*starts));
	double *values[2];

	memset(starts, 0, (places->place_count + 2) * sizeof(*starts));
	for (uint32_t i = 0; i < graph->item_count; i++)
		if (places->of_items[i] != REPLAY_NONE)
			starts[places->of_items[i] + 2]++;
	for (uint32_t p = 2; p < places->place_count + 2; p++)
		starts[p] += starts[p - 1];
	for (int k = 0; k < 2; k++)
		values[k] = memory_resize(NULL, graph->item_count + 1, sizeof(double));
	for (uint32_t i = 0; i < graph->item_count; i++) {
		if (places->of_items[i] == REPLAY_NONE)
			continue;
		uint32_t at = starts[places->of_items[i] + 1]++;
		values[0][at] = graph->items[i].gap_ns;
		values[1][at] = graph->items[i].end_ns - graph->items[i].start_ns;
	}
	for (uint32_t p = 0; p < places->place_count; p++) {
		uint32_t first = p ? starts[p] : 0, count = starts[p + 1] - first;

		places->places[p].count = count;
		for (int k = 0; k < 2 && count; k++)
			*(k ? &places->places[p].own_ns
			    : &places->places[p].gap_ns) = quantile_within(values[k] + first, count, 0.5);
	}
	free(values[0]);
	free(values[1]);
	free(starts);
}

/* ---- the whole ---- */

void replay_places_find(struct replay_places *places, const struct replay_graph *graph)
{
	struct item_sequence *sequences = sequences_of(graph);
	uint32_t usual, most = 0, diverging = 0;

	*places = (struct replay_places){.is_known = graph->step_count >= 3};
	usual = most_common(sequences, graph->step_count, &places->alike);
	places->place_count = sequences[usual].count;
	places->places = memory_resize(NULL, places->place_count + 1, sizeof(*places->places));
	memset(places->places, 0, (places->place_count + 1) * sizeof(*places->places));
	places->of_items = memory_resize(NULL, graph->item_count + 1, sizeof(*places->of_items));
	for (uint32_t i = 0; i < graph->item_count; i++)
		places->of_items[i] = REPLAY_NONE;
	for (uint32_t s = 0; s < graph->step_count; s++)
		most = sequences[s].count > most ? sequences[s].count : most;
	uint32_t *matches = memory_resize(NULL, most + 1, sizeof(*matches));
	for (uint32_t s = 0; s < graph->step_count; s++) {
		compare(&sequences[usual], &sequences[s], matches, &diverging);
		for (uint32_t i = 0; i < sequences[s].count; i++)
			places->of_items[sequences[s].items[i]] = matches[i];
	}
	find_medians(places, graph);
	for (uint32_t s = 0; s < graph->step_count; s++) {
		free(sequences[s].items);
		free(sequences[s].words);
	}
	free(sequences);
	free(matches);
}

void replay_places_release(struct replay_places *places)
{
	free(places->places);
	free(places->of_items);
	*places = (struct replay_places){0};
}
