/* SPDX-License-Identifier: Apache-2.0
 *
 * layout.c: keeps copies of the first bytes of the given records, and the results of the exported functions at that
 * moment. A system call makes the copies, so that a read beyond the end of anything cannot fault.
 */
#include "agents/torch/layout.h"

#include "agents/torch/inputs.h"
#include "agents/torch/lean_record.h"
#include "agents/torch/process.h"

#include <string.h>

#define IMAGE_WORDS 64
#define IMAGES 32
#define LEAST_IMAGES 3 /* images that must agree */

struct image {
	uint64_t words[IMAGE_WORDS];
	unsigned word_count;
	int64_t sequence; /* the next one, as PyTorch returns it */
	uint64_t forward; /* thread that ran the newest add */
	const char *name;
	enum torch_scope scope;
};

static struct {
	const struct torch_entry *entry;
	struct image images[IMAGES];
	unsigned count; /* atomic; may be more than IMAGES */
	uint64_t forward;
	uint64_t handles[2];
	int depth;                    /* number of open operators, atomic */
	char text[INPUTS_TEXT_BYTES]; /* inputs of the newest outermost operator */
} probe;

static void layout_take(const void *record, const char *name, enum torch_scope scope)
{
	lean_record_look(record, scope);
	unsigned at = __atomic_fetch_add(&probe.count, 1, __ATOMIC_RELAXED);
	if (at >= IMAGES)
		return;
	struct image *image = &probe.images[at];
	image->word_count = process_read_words((uint64_t)(uintptr_t)record, image->words, IMAGE_WORDS);
	image->sequence = probe.entry->sequence_peek();
	if (scope == TORCH_SCOPE_FUNCTION)
		probe.forward = probe.entry->thread_id();
	image->forward = probe.forward;
	image->name = name;
	image->scope = scope;
}

TORCH_START_BODY static void look_at_function(const void *record)
{
	const char *name = probe.entry->name(record);
	bool is_outermost = __atomic_fetch_add(&probe.depth, 1, __ATOMIC_RELAXED) == 0;
	inputs_look_at(record, name);
	if (inputs_are_known() && is_outermost)
		inputs_text(record, probe.text, sizeof(probe.text));
	if (strcmp(name, "aten::add") == 0)
		layout_take(record, name, TORCH_SCOPE_FUNCTION);
}
TORCH_START(start_layout_function, look_at_function)

TORCH_START_BODY static void look_at_backward(const void *record)
{
	const char *name = probe.entry->name(record);
	if (strcmp(name, "AddBackward0") == 0)
		layout_take(record, name, TORCH_SCOPE_BACKWARD);
}
TORCH_START(start_layout_backward, look_at_backward)

static void end_function(const void *record, void *context)
{
	__atomic_fetch_sub(&probe.depth, 1, __ATOMIC_RELAXED);
}

static void end_backward(const void *record, void *context) {}

bool layout_probe_begin(const struct torch_entry *entry)
{
	static torch_start *const starts[2] = {start_layout_function, start_layout_backward};
	static void (*const ends[2])(const void *, void *) = {end_function, end_backward};
	static const enum torch_scope scopes[2] = {TORCH_SCOPE_FUNCTION, TORCH_SCOPE_BACKWARD};
	if (!entry->sequence_peek || !entry->thread_id)
		return false;
	probe.entry = entry;
	probe.count = 0;
	probe.depth = 0;
	for (unsigned i = 0; i < 2; i++) {
		struct torch_callback callback = {.start = starts[i], .end = ends[i], .probability = 1.0};
		callback.scopes[scopes[i]] = true;
		callback.needs_inputs = scopes[i] == TORCH_SCOPE_FUNCTION;
		lean_record_expect(scopes[i], (struct lean_pair){starts[i], ends[i]});
		probe.handles[i] = entry->add_global_callback(callback);
	}
	return true;
}

/* Returns the one word that fits in every image that counts; -1: none, several, or too few images. */
static int unique_place(bool (*fits)(const struct image *image, uint64_t word, bool *is_counted))
{
	int place = -1;
	for (unsigned word = 0; word < IMAGE_WORDS; word++) {
		unsigned counted = 0;
		bool is_good = true;
		for (unsigned i = 0; i < probe.count && i < IMAGES && is_good; i++) {
			const struct image *image = &probe.images[i];
			bool is_counted = false;
			is_good = fits(image, word < image->word_count ? image->words[word] : UINT64_MAX, &is_counted);
			counted += is_counted;
			is_good &= !is_counted || word < image->word_count;
		}
		if (!is_good || counted < LEAST_IMAGES)
			continue;
		if (place >= 0)
			return -1;
		place = (int)word * 8;
	}
	return place;
}

static bool fits_sequence(const struct image *image, uint64_t word, bool *is_counted)
{
	*is_counted = image->scope == TORCH_SCOPE_FUNCTION;
	return !*is_counted || (int64_t)word == image->sequence;
}

/* The adds ran in several threads, and another thread differentiated some of them: no other word follows that. */
static bool fits_forward_thread(const struct image *image, uint64_t word, bool *is_counted)
{
	*is_counted = image->scope == TORCH_SCOPE_BACKWARD;
	return !*is_counted || word == image->forward;
}

/* The schema of add lives as long as PyTorch. It starts with a std::string, which starts with the address of its text
 * in both ABIs. */
static bool fits_schema(const struct image *image, uint64_t word, bool *is_counted)
{
	uint64_t text = 0;
	*is_counted = image->scope == TORCH_SCOPE_FUNCTION;
	return !*is_counted ||
	       (word % 8 == 0 && process_read_words(word, &text, 1) == 1 && text == (uintptr_t)image->name);
}

/* A std::variant has its index after the larger of its members, a std::string. */
#define KIND_BEHIND 32

static int place_of_kind(int schema)
{
	unsigned at = (unsigned)(schema + KIND_BEHIND);
	bool is_good = schema >= 0 && at / 8 < IMAGE_WORDS;
	for (unsigned i = 0; i < probe.count && i < IMAGES && is_good; i++) {
		const struct image *image = &probe.images[i];
		is_good = at / 8 < image->word_count &&
		          (image->words[at / 8] & 0xff) == (image->scope == TORCH_SCOPE_FUNCTION);
	}
	return is_good ? (int)at : -1;
}

const char *layout_probe_inputs(void)
{
	return probe.text;
}

void layout_probe_end(struct torch_layout *layout)
{
	probe.entry->remove_callback(probe.handles[0]);
	probe.entry->remove_callback(probe.handles[1]);
	layout->sequence = unique_place(fits_sequence);
	layout->schema = unique_place(fits_schema);
	layout->kind = place_of_kind(layout->schema);
	layout->forward_thread = unique_place(fits_forward_thread);
}
