/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_gaps.c: see kineto_gaps.h. Gaps form a tree: each follows one other. A joined gap has the successors of its
 * second part.
 */
#include "importers/kineto/kineto_gaps.h"

#include "importers/kineto/kineto_event.h"

#define SCORE_ENOUGH 12 /* surplus of equal values over different ones */
#define TRIES_MAX 200
#define JOINED_LESS 2 /* successors of a gap that are reserved for new ones */

/* Inserts the gap before those that are not longer, as it may begin like them. If there are too many, the shortest is
 * dropped. */
static void add_next(struct kineto_gaps *gaps, uint16_t last, uint16_t number)
{
	uint16_t *next = gaps->list[last].next;
	int i = 0;
	while (i < KINETO_GAP_NEXT - 1 && next[i] && gaps->list[next[i]].length > gaps->list[number].length)
		i++;
	memmove(next + i + 1, next + i, (size_t)(KINETO_GAP_NEXT - 1 - i) * sizeof *next);
	next[i] = number;
}

void kineto_gap_add(struct kineto_gaps *gaps, const struct kineto_gap *gap)
{
	bool is_full = gaps->count == KINETO_GAPS - 1;
	if (gaps->last == KINETO_GAP_LOST)
		return;
	if (gap && is_full) { /* starts over: this is not made for files of many layouts */
		gaps->count = 0;
		memset(gaps->list[0].next, 0, sizeof gaps->list[0].next);
	}
	if (!gap || is_full) {
		gaps->last = KINETO_GAP_LOST;
		return;
	}
	uint16_t number = (uint16_t)++gaps->count;
	gaps->list[number] = *gap;
	add_next(gaps, gaps->last, number);
	gaps->before = gaps->last;
	gaps->last = number;
}

/* ---- constant values ---- */

/* Returns true if the gaps fit into one, and the value needs no repair or other check. */
static bool kineto_gaps_may_join(const struct kineto_gap *first, const struct kineto_gap *second, size_t length,
                                 const struct kineto_value *value)
{
	return value->type != VALUE_NONE && value->type != VALUE_BARE && !(value->flags & TEXT_HAS_CONTROL) &&
	       !memchr(first->constant, '\0', length) && first->length + length + second->length <= KINETO_GAP_BYTES &&
	       first->member_count + second->member_count <= KINETO_GAP_MEMBERS &&
	       !(first->args_end && second->args_begin) && !(first->args_begin && second->args_begin) &&
	       !(first->args_end && second->args_end);
}

/* Joins the first gap, the value after it, and the second gap. */
static void kineto_gaps_join(struct kineto_gap *joined, const struct kineto_gap *first, const struct kineto_gap *second,
                             const char *text, const struct kineto_value *value)
{
	uint8_t behind = (uint8_t)(first->length + first->constant_length);
	*joined = *first;
	memcpy(joined->text + first->length, first->constant, first->constant_length);
	memcpy(joined->text + behind, second->text, second->length);
	joined->length = (uint8_t)(behind + second->length);
	joined->mask = joined->length < 16 ? (1u << joined->length) - 1 : 0xffff;
	joined->set |= second->set;
	joined->is_end = second->is_end;
	joined->args_begin = second->args_begin ? (uint8_t)(second->args_begin + behind) : first->args_begin;
	joined->args_end = second->args_end ? (uint8_t)(second->args_end + behind) : first->args_end;
	joined->is_settled = false;
	joined->score = joined->tries = joined->constant_length = 0;
	memcpy(joined->next, second->next, sizeof joined->next);
	struct kineto_gap_member *last = &joined->members[joined->member_count - 1];
	last->value = *value;
	last->value_at = (uint8_t)(first->length + (value->at - text));
	if (last->place == EVENT_VALUES - 1)
		joined->member_count--;
	for (uint8_t i = 0; i < second->member_count; i++) {
		struct kineto_gap_member *member = &joined->members[joined->member_count++];
		*member = second->members[i];
		member->key_at = (uint8_t)(member->key_at + behind);
		member->value_at = (uint8_t)(member->value_at + behind);
	}
}

/* Adds the joined gap before the last gap, which stays for other values. If the last gap is itself joined, it is
 * replaced: the gap it was made of stayed. */
static void add_joined(struct kineto_gaps *gaps, uint16_t number, const char *text, const struct kineto_value *value)
{
	struct kineto_gap joined, *last = &gaps->list[gaps->last];
	kineto_gaps_join(&joined, last, &gaps->list[number], text, value);
	if (last->is_joined) {
		*last = joined;
		gaps->last = KINETO_GAP_LOST; /* the gap before the next one no longer exists */
		return;
	}
	joined.is_joined = true;
	gaps->list[++gaps->count] = joined;
	add_next(gaps, gaps->before, (uint16_t)gaps->count);
}

static bool kineto_gaps_has_room(const struct kineto_gaps *gaps)
{
	return gaps->count < KINETO_GAPS * 3 / 4 && !gaps->list[gaps->before].next[KINETO_GAP_NEXT - JOINED_LESS];
}

void kineto_gap_learn(struct kineto_gaps *gaps, uint16_t number, const char *text, size_t length,
                      const struct kineto_value *value)
{
	struct kineto_gap *last = &gaps->list[gaps->last];
	bool is_same = length == last->constant_length && memcmp(last->constant, text, length) == 0;
	last->is_settled = ++last->tries == TRIES_MAX || length > sizeof last->constant;
	if (is_same && ++last->score == SCORE_ENOUGH) {
		last->score = last->tries = 0;
		if (gaps->before == KINETO_GAP_LOST)
			return;
		last->is_settled = (!last->is_joined && !kineto_gaps_has_room(gaps)) ||
		                   !kineto_gaps_may_join(last, &gaps->list[number], length, value);
		if (!last->is_settled)
			add_joined(gaps, number, text, value);
	} else if (!is_same && (!last->score || !--last->score) && length <= sizeof last->constant) {
		memcpy(last->constant, text, length);
		last->constant_length = (uint8_t)length;
	}
}
