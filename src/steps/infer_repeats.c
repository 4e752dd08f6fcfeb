/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_repeats.c: see infer_repeats.h.
 */
#include "steps/infer_repeats.h"

#include "base/memory.h"
#include "pytorch/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define REPEATS_MIN 3u

static bool is_of_pytorch(const char *name)
{
	static const char *const begins[] = {
		"nccl:", "gloo:", "mpi:", "ucc:", "enumerate(", "Optimizer.", "Torch-Compiled"};
	bool is_found = false;

	for (size_t i = 0; i < sizeof begins / sizeof *begins && !is_found; i++)
		is_found = pytorch_begins(name, begins[i]);
	return is_found;
}

/* Returns true if the text so far names what is counted as it comes. The number of a layer says which one. */
static bool counts_passes(const char *text, size_t length)
{
	static const char *const words[] = {"step", "iteration", "iter", "batch", "epoch", "request", "run", "loop"};

	while (length && !isalpha((unsigned char)text[length - 1]))
		length--;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t word = strlen(words[i]);

		if (length >= word && !strncasecmp(text + length - word, words[i], word))
			return true;
	}
	return false;
}

uint32_t repeats_name(struct model *model, uint32_t name)
{
	const char *at = model_text(model, name);
	bool is_counted = false, was_digit = false;
	char text[256];
	size_t length = 0;

	if (is_of_pytorch(at))
		return 0;
	for (; *at && length < sizeof text - 1; at++) {
		bool is_digit = isdigit((unsigned char)*at);

		if (is_digit && !was_digit)
			is_counted = counts_passes(text, length);
		if (!is_digit || !is_counted)
			text[length++] = *at;
		else if (!was_digit)
			text[length++] = '#';
		was_digit = is_digit;
	}
	text[length] = '\0';
	return *at ? name : intern_add(&model->strings, text);
}

static void add_repeat(struct repeat *repeat, int64_t start_ns, int64_t dur_ns)
{
	int64_t end_ns = start_ns + dur_ns;

	repeat->is_inside_itself |= repeat->count && start_ns < repeat->last_ns;
	repeat->first_ns = repeat->count ? repeat->first_ns : start_ns;
	repeat->last_ns = repeat->count && repeat->last_ns > end_ns ? repeat->last_ns : end_ns;
	repeat->count++;
	repeat->dur_ns += (uint64_t)dur_ns;
}

void repeats_add(struct repeats *repeats, uint32_t name, int64_t start_ns, int64_t dur_ns)
{
	uint32_t count = repeats->map.count;

	if (dur_ns < 0)
		return;
	add_repeat(&repeats->all, start_ns, dur_ns);
	if (!name)
		return;
	uint32_t found = number_map_add(&repeats->map, name, count);
	if (found == count) {
		if (!(found & (found + 1)))
			repeats->list = memory_resize(repeats->list, 2 * (size_t)found + 2, sizeof *repeats->list);
		repeats->list[found] = (struct repeat){0};
	}
	add_repeat(&repeats->list[found], start_ns, dur_ns);
}

/* Decides between two that take the same time, wherever they are in the file. */
static bool is_before(const struct model *model, uint32_t name, uint32_t other)
{
	return !other || strcmp(model_text(model, name), model_text(model, other)) < 0;
}

uint32_t repeats_find(const struct repeats *repeats, const struct model *model)
{
	const struct repeat *all = &repeats->all;
	uint64_t most_ns = 0;
	uint32_t best = 0;

	for (uint32_t i = 0; i < repeats->map.capacity; i++) {
		const struct number_map_slot *slot = &repeats->map.slots[i];
		const struct repeat *repeat = slot->value == NUMBER_MAP_NONE ? NULL : &repeats->list[slot->value];

		if (repeat && repeat->count >= REPEATS_MIN && !repeat->is_inside_itself &&
		    repeat->dur_ns >= (uint64_t)(all->last_ns - all->first_ns) / 2 &&
		    (repeat->dur_ns > most_ns ||
		     (repeat->dur_ns == most_ns && is_before(model, (uint32_t)slot->key, best)))) {
			most_ns = repeat->dur_ns;
			best = (uint32_t)slot->key;
		}
	}
	return best;
}

void repeats_release(struct repeats *repeats)
{
	free(repeats->list);
	number_map_release(&repeats->map);
}
