/* SPDX-License-Identifier: Apache-2.0
 *
 * inputs.c: recording reads only words at proven offsets of objects that PyTorch holds while the operator starts. The
 * words are hashed as they are read; only new inputs become a text.
 */
#include "agents/torch/inputs.h"

#include "agents/torch/inputs_layout.h"
#include "agents/torch/inputs_text.h"
#include "base/hash.h"
#include "recorder/emit.h"

#include <stepscope/stepscope.h>

#define CACHE_LINES 4096u /* a program whose sizes change from batch to batch reuses thousands of inputs */
#define CACHE_WAYS 8u     /* the number that a cache line holds */
#define FRONT_PLACES 512u /* one page: inputs that each step repeats stay near while tensors pass through the caches */
#define VARIANTS 4096u
#define VARIANTS_MAX 16u   /* texts that differ in values only, in each stage; the first stage keeps all values */
#define VARIANTS_STAGES 5u /* then those of which 8, 4, 2, 1 were seen at most; after the last none */
#define SKETCHES 1024u

/* The first words that are hashed for an input. */
#define HEAD_NONE 0x100u     /* an input that is not read */
#define HEAD_VALUE 0x200u    /* + its tag */
#define HEAD_LIST 0x10000u   /* + length */
#define HEAD_TENSOR 0x20000u /* + number of sizes + type << 8 */

#define SEED HASH_FACTOR

struct hashes {
	uint64_t base, values; /* of inputs without values, and of the values alone; SEED: no values */
};

/* Hash (40 of its bits) << 24 | symbol; the newest of a line comes first. */
static uint64_t cache[CACHE_LINES][CACHE_WAYS] __attribute__((aligned(64)));
static uint64_t front[FRONT_PLACES] __attribute__((aligned(4096))); /* the entry last found at each place */
static uint8_t variants[VARIANTS]; /* by hash without values; shared places only make the maximum smaller */
/* For each value, a bit for each content that was seen, at a place that depends on the content. Shared places only
 * leave out more values. */
static uint64_t sketches[SKETCHES][VALUES_APART];
static uint32_t newest; /* newest symbol made for inputs */
static bool is_full;

/* The upper half of a product depends on all bits of its factor, the lower half does not, so the halves are swapped. A
 * rotation is cheaper than the shift and the xor of hash_mix(). */
static inline uint64_t inputs_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * HASH_TEXT_FACTOR;
	return hash >> 32 | hash << 32;
}

/* Finishes a hash for a look-up, which ignores some bits. */
static inline uint64_t inputs_finish(struct hashes hashes)
{
	uint64_t hash = (hashes.base ^ hashes.values) * HASH_TEXT_FACTOR;
	return hash ^ hash >> 32;
}

/* For sizes and strides that are not in place: rare. */
static __attribute__((noinline)) uint64_t hash_deep(uint64_t hash, uint64_t sizes, uint64_t depth, bool has_strides)
{
	uint64_t words = has_strides ? 2 * depth : depth;
	for (unsigned i = 0; i < words; i++)
		hash = inputs_mix(hash, load(sizes, 8 * i));
	return hash;
}

/* Returns the sum of the words, each times a different random number, so that the processor need not wait for one
 * product before the next. Two tensors share a sum as rarely as with one inputs_mix() per word, which takes twice the
 * instructions. */
static inline uint64_t sum_in_place(uint64_t sizes, uint64_t depth, bool has_strides)
{
	static const uint64_t weights[2][SIZES_IN_PLACE] = {
		{0x9fb21c651e98df25u, 0xc2b2ae3d27d4eb4fu, 0x165667b19e3779f9u, 0xd6e8feb86659fd93u,
	         0xa0761d6478bd642fu},
		{0xe7037ed1a0b428dbu, 0x8ebc6af09c88c6e3u, 0x589965cc75374cc3u, 0x1d8e4e27c47d124fu,
	         0xeb44accab455d165u}};
	uint64_t sum = 0;
	for (unsigned i = 0; i < depth; i++) {
		sum += load(sizes, 8 * i) * weights[0][i];
		if (has_strides)
			sum += load(sizes, 8 * (SIZES_IN_PLACE + i)) * weights[1][i];
	}
	return sum;
}

static inline uint64_t hash_tensor(uint64_t hash, uint64_t tensor)
{
	uint64_t keys, depth = tensor_depth(tensor, &keys);
	if (depth >= DEPTH_MAX)
		return inputs_mix(hash, HEAD_NONE);
	uint64_t type = inputs_layout.has_types ? load(tensor, inputs_layout.type) & 0xff : 0;
	uint64_t head = HEAD_TENSOR + depth + (type << 8);
	bool has_strides = !(keys & inputs_layout.unstrided);
	uint64_t sizes = tensor_sizes(tensor, depth);
	if (depth > SIZES_IN_PLACE)
		return hash_deep(inputs_mix(hash, has_strides ? head : ~head), sizes, depth, has_strides);
	/* a tensor without strides differs from one with strides of 0 */
	return inputs_mix(hash, has_strides ? head + sum_in_place(sizes, depth, true)
	                                    : ~head + sum_in_place(sizes, depth, false));
}

static inline struct hashes hash_value(struct hashes hashes, uint64_t at, uint32_t tag)
{
	hashes.base = inputs_mix(hashes.base, HEAD_VALUE + tag);
	hashes.values = inputs_mix(hashes.values, value_bits(at, tag));
	return hashes;
}

static __attribute__((noinline)) struct hashes hash_list(struct hashes hashes, uint64_t list)
{
	uint64_t begin = load(list, inputs_layout.list_begin), end = load(list, inputs_layout.list_begin + 8);
	uint64_t count = (end - begin) / VALUE_BYTES;
	bool is_tensors = load(list, inputs_layout.list_begin + 24) == inputs_layout.tensor_list;
	hashes.base = inputs_mix(hashes.base,
	                         HEAD_LIST + (count > LIST_MAX ? LIST_MAX + 1 : count) + is_tensors * 256u);
	for (uint64_t at = begin; count <= LIST_MAX && at < end; at += VALUE_BYTES) {
		uint32_t tag = load_tag(at);
		if (is_tensors)
			hashes.base = hash_tensor(hashes.base, tag == inputs_layout.tensor_tag ? load(at, 0) : 0);
		else if (is_value(tag) && inputs_layout.has_values)
			hashes = hash_value(hashes, at, tag);
	}
	return hashes;
}

static inline struct hashes hash_inputs(uint64_t at, uint64_t count)
{
	struct hashes hashes = {SEED + count, SEED};
	for (uint64_t end = at + (count < INPUTS_MAX ? count : INPUTS_MAX) * VALUE_BYTES; at < end; at += VALUE_BYTES) {
		uint32_t tag = load_tag(at);
		if (tag == inputs_layout.tensor_tag)
			hashes.base = hash_tensor(hashes.base, load(at, 0));
		else if (tag == inputs_layout.list_tag)
			hashes = hash_list(hashes, load(at, 0));
		else if (inputs_layout.has_values && is_value(tag))
			hashes = hash_value(hashes, at, tag);
		else
			hashes.base = inputs_mix(hashes.base, HEAD_NONE);
	}
	return hashes;
}

/* ---- symbols ----------------------------------------------------------------------------------------------------- */

static inline uint64_t *inputs_line_of(uint64_t hash)
{
	return cache[hash & (CACHE_LINES - 1)];
}

/* Returns the symbol; 0: the entry has another hash, or is free. */
static inline uint32_t symbol_in(uint64_t entry, uint64_t hash)
{
	uint64_t symbol = entry ^ (hash >> 24 << 24);
	return symbol <= 0xffffff ? (uint32_t)symbol : 0;
}

static __attribute__((noinline)) uint32_t look_behind(uint64_t hash, uint64_t *place)
{
	const uint64_t *line = inputs_line_of(hash);
	for (unsigned i = 0; i < CACHE_WAYS; i++) {
		uint64_t entry = __atomic_load_n(&line[i], __ATOMIC_RELAXED);
		uint32_t symbol = symbol_in(entry, hash);
		if (!symbol)
			continue;
		__atomic_store_n(place, entry, __ATOMIC_RELAXED);
		return symbol;
	}
	return 0;
}

static inline uint32_t look_up(uint64_t hash)
{
	uint64_t *place = &front[hash % FRONT_PLACES];
	uint32_t symbol = symbol_in(__atomic_load_n(place, __ATOMIC_RELAXED), hash);
	return __builtin_expect(symbol != 0, 1) ? symbol : look_behind(hash, place);
}

static void tell_once(bool *is_told, const char *what)
{
	if (!__atomic_exchange_n(is_told, true, __ATOMIC_RELAXED))
		stepscope_metadata(what, "left out");
}

/* Threads that call this at the same time may lose an entry. */
static uint32_t make_symbol(const void *record, uint64_t hash, uint32_t left_out)
{
	static bool is_told;
	char text[INPUTS_TEXT_BYTES];
	if (__atomic_load_n(&is_full, __ATOMIC_RELAXED))
		return 0;
	size_t length = inputs_write(record, left_out, text, sizeof(text));
	uint32_t symbol = emit_symbol(STEPSCOPE_SYMBOL_INPUTS, text, (uint32_t)length);
	if (!symbol && STEPSCOPE_ACTIVE_) {
		__atomic_store_n(&is_full, true, __ATOMIC_RELAXED);
		tell_once(&is_told, "torch.inputs that came when there was no room for more different ones");
	}
	if (!symbol)
		return 0;
	uint64_t *line = inputs_line_of(hash);
	for (unsigned i = CACHE_WAYS - 1; i > 0; i--)
		__atomic_store_n(&line[i], __atomic_load_n(&line[i - 1], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	__atomic_store_n(&line[0], (hash >> 24) << 24 | symbol, __ATOMIC_RELAXED);
	return symbol;
}

/* Returns a bit for each value to leave out: those with more different values than the stage allows. */
static uint32_t changing(uint64_t base, const uint64_t *values, unsigned count)
{
	unsigned stage = __atomic_load_n(&variants[base % VARIANTS], __ATOMIC_RELAXED) / VARIANTS_MAX;
	unsigned limit = stage ? VARIANTS_MAX >> stage : 64;
	uint64_t *seen = sketches[base % SKETCHES];
	uint32_t found = 0;
	for (unsigned i = 0; i < count; i++) {
		uint64_t bit = 1ull << (values[i] * SEED >> 58);
		uint64_t bits = __atomic_or_fetch(&seen[i], bit, __ATOMIC_RELAXED);
		found |= (uint32_t)((unsigned)__builtin_popcountll(bits) > limit) << i;
	}
	return found;
}

static uint64_t hash_others(uint64_t base, const uint64_t *values, unsigned count, uint32_t left_out)
{
	uint64_t hash = inputs_mix(~base, left_out);
	for (unsigned i = 0; i < count; i++)
		if (!(left_out >> i & 1))
			hash = inputs_mix(hash, values[i]);
	return hash;
}

/* Makes a text with values and counts it: values that change too often must not fill the table of names. */
static uint32_t make_counted(const void *record, uint64_t hash, uint32_t left_out, uint8_t *count)
{
	uint32_t symbol = make_symbol(record, hash, left_out);
	if (symbol > __atomic_load_n(&newest, __ATOMIC_RELAXED)) {
		__atomic_store_n(&newest, symbol, __ATOMIC_RELAXED);
		if (__atomic_load_n(count, __ATOMIC_RELAXED) < VARIANTS_STAGES * VARIANTS_MAX)
			__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	}
	return symbol;
}

/* Not inline: most calls do not need it. */
static __attribute__((noinline)) uint32_t unseen(const void *record, struct hashes hashes)
{
	static bool is_told;
	uint64_t values[VALUES_APART];
	if (hashes.values == SEED)
		return make_symbol(record, inputs_finish(hashes), 0);
	unsigned count = inputs_values(record, values);
	uint32_t left_out = changing(hashes.base, values, count);
	uint64_t hash = left_out ? hash_others(hashes.base, values, count, left_out) : inputs_finish(hashes);
	uint32_t symbol = left_out ? look_up(hash) : 0;
	if (symbol)
		return symbol;
	if (left_out)
		tell_once(&is_told, "torch.inputs whose values change from call to call");
	return make_counted(record, hash, left_out, &variants[hashes.base % VARIANTS]);
}

__attribute__((hot)) uint32_t inputs_symbol(const void *record)
{
	uint64_t values = load((uint64_t)(uintptr_t)record, inputs_layout.inputs);
	uint64_t count = load((uint64_t)(uintptr_t)record, inputs_layout.inputs + 8);
	if (count == 0)
		return 0;
	struct hashes hashes = hash_inputs(values, count);
	uint32_t symbol = look_up(inputs_finish(hashes));
	return __builtin_expect(symbol != 0, 1) ? symbol : unseen(record, hashes);
}

/* Writes only to lines that have entries: each page that is written costs the child a copy. */
void inputs_forget(void)
{
	__atomic_store_n(&is_full, false, __ATOMIC_RELAXED);
	memset(front, 0, sizeof(front));
	for (unsigned line = 0; line < CACHE_LINES; line++)
		if (cache[line][0])
			memset(cache[line], 0, sizeof(cache[line]));
}

void inputs_text(const void *record, char *text, size_t bytes)
{
	text[inputs_write(record, 0, text, bytes - 1)] = '\0';
}
