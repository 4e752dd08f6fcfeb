/* SPDX-License-Identifier: Apache-2.0
 *
 * inputs.c: what is read in earnest are words at proven offsets of objects that PyTorch holds while the operator begins. Before they
 * are proven, every look is a system call that cannot fault.
 *
 *   record + inputs    {address of IValues, count}
 *   IValue             8 bytes payload, at 8 a 32-bit tag; 16 in all
 *   tensor + sizes     count, then up to five sizes in place, else a pointer to them
 *   tensor + keys      64 bits that tell what kind of tensor it is; 0: undefined
 *   list + begin       {address of IValues, end}
 */
#include "agents/torch/inputs.h"

#include "agents/torch/process.h"
#include "recorder/emit.h"

#include <stdio.h>
#include <string.h>

#define TENSORS 16
#define TENSOR_WORDS 32
#define RECORD_WORDS 64
#define LIST_WORDS 8
#define VALUE_BYTES 16
#define TENSORS_MAX 32 /* of an operator that are read */
#define LIST_MAX 64    /* of a list */
#define SIZES_MAX 8    /* of a tensor */
#define SIZES_IN_PLACE 5
#define WORDS_MAX 512
#define CACHE_LINES 512u
#define CACHE_WAYS 8u /* as many as a line of the processor's cache holds */

struct known_tensor {
	uint64_t words[TENSOR_WORDS];
	int64_t sizes[SIZES_IN_PLACE];
	int count;
	enum inputs_probe kind;
};

static struct {
	struct known_tensor tensors[TENSORS];
	int tensor_count;
	uint64_t first, second;       /* expected */
	uint64_t places, list_places; /* candidates, one bit per word */
	uint32_t tag, list_tag;
	int muls, cats; /* records that were looked at */
} probe;

static struct {
	bool is_known;
	unsigned inputs, sizes, keys, list_begin; /* bytes */
	uint32_t tensor_tag, list_tag;
	uint64_t untrusted; /* bits of keys */
} layout;

/* Hash of the sizes (40 of its bits) << 24 | symbol; the newest of a line comes first. */
static uint64_t cache[CACHE_LINES][CACHE_WAYS] __attribute__((aligned(64)));

/* ---- finding the places ---------------------------------------------------------------------------------------------- */

static bool read_words(uint64_t address, uint64_t *words, unsigned count)
{
	return process_read(address, words, count) == count;
}

void inputs_add_tensor(uint64_t tensor, enum inputs_probe kind, const int64_t *sizes, int count)
{
	struct known_tensor *known = &probe.tensors[probe.tensor_count];
	if (probe.tensor_count == TENSORS || count > SIZES_IN_PLACE)
		return;
	*known = (struct known_tensor){.kind = kind, .count = count};
	memcpy(known->sizes, sizes, (size_t)count * sizeof(*sizes));
	(void)process_read(tensor, known->words, TENSOR_WORDS);
	probe.tensor_count++;
}

void inputs_expect(uint64_t first, uint64_t second)
{
	probe.first = first;
	probe.second = second;
}

/* Do the IValues at `address` begin with the two expected tensors, both with one tag? */
static bool has_expected(uint64_t address, uint32_t *tag)
{
	uint64_t values[4];
	if (address % 8 != 0 || !read_words(address, values, 4) || values[0] != probe.first ||
	    values[2] != probe.second)
		return false;
	*tag = (uint32_t)values[1];
	return (uint32_t)values[1] == (uint32_t)values[3];
}

static void look_at_mul(const uint64_t *record)
{
	uint64_t found = 0;
	for (unsigned i = 0; i + 1 < RECORD_WORDS; i++) {
		uint32_t tag;
		if (record[i + 1] == 2 && has_expected(record[i], &tag)) {
			found |= 1ull << i;
			probe.tag = tag;
		}
	}
	probe.places &= found;
	probe.muls++;
}

/* The first input is a list: its payload leads to an object that holds the begin and the end of the values. */
static void look_at_cat(const uint64_t *record)
{
	uint64_t found = 0;
	for (unsigned i = 0; i + 1 < RECORD_WORDS; i++) {
		uint64_t values[2], list[LIST_WORDS];
		if (!(probe.places >> i & 1) || !read_words(record[i], values, 2) ||
		    !read_words(values[0], list, LIST_WORDS))
			continue;
		for (unsigned k = 0; k + 1 < LIST_WORDS; k++) {
			uint32_t tag;
			if (list[k + 1] == list[k] + 2 * VALUE_BYTES && has_expected(list[k], &tag) &&
			    tag == probe.tag) {
				found |= 1ull << k;
				probe.list_tag = (uint32_t)values[1];
			}
		}
	}
	probe.list_places &= found;
	probe.cats++;
}

void inputs_look_at(const void *record, const char *name)
{
	uint64_t words[RECORD_WORDS] = {0};
	if (!probe.first)
		return;
	(void)process_read((uint64_t)(uintptr_t)record, words, RECORD_WORDS);
	if (probe.muls + probe.cats == 0)
		probe.places = probe.list_places = UINT64_MAX;
	if (strcmp(name, "aten::mul") == 0)
		look_at_mul(words);
	else if (strcmp(name, "aten::cat") == 0)
		look_at_cat(words);
}

static bool one_bit(uint64_t bits, unsigned *place)
{
	if (bits == 0 || (bits & (bits - 1)) != 0)
		return false;
	*place = (unsigned)__builtin_ctzll(bits) * 8;
	return true;
}

static bool has_sizes_at(const struct known_tensor *tensor, unsigned word)
{
	if (tensor->words[word] != (uint64_t)tensor->count)
		return false;
	return memcmp(&tensor->words[word + 1], tensor->sizes, (size_t)tensor->count * 8) == 0;
}

/* The keys are the same for tensors that differ only in size and type, and not for one on another device or of another layout. */
static bool has_keys_at(unsigned word)
{
	uint64_t plain = 0;
	for (int i = 0; i < probe.tensor_count; i++) {
		uint64_t keys = probe.tensors[i].words[word];
		if (probe.tensors[i].kind == INPUTS_PLAIN) {
			if (keys == 0 || (plain && keys != plain))
				return false;
			plain = keys;
		}
	}
	for (int i = 0; i < probe.tensor_count; i++) {
		uint64_t keys = probe.tensors[i].words[word];
		if (probe.tensors[i].kind != INPUTS_PLAIN && (keys == plain || keys == 0))
			return false;
		if (probe.tensors[i].kind == INPUTS_META && (keys & plain) == 0)
			return false;
	}
	return plain != 0;
}

static uint64_t places_of_sizes(void)
{
	uint64_t places = 0;
	for (unsigned word = 0; word + 1 + SIZES_IN_PLACE < TENSOR_WORDS; word++) {
		bool fits = true;
		for (int i = 0; i < probe.tensor_count && fits; i++)
			fits = probe.tensors[i].kind != INPUTS_PLAIN || has_sizes_at(&probe.tensors[i], word);
		places |= fits ? 1ull << word : 0;
	}
	return places;
}

static uint64_t places_of_keys(void)
{
	uint64_t places = 0;
	for (unsigned word = 0; word < TENSOR_WORDS; word++)
		places |= has_keys_at(word) ? 1ull << word : 0;
	return places;
}

/* Bits above those that name a device; of them, all that no plain tensor has. Gradients and inference mode are the two bits that
 * tensors to be trusted may have in addition: the tensors of the probe have gradients where the bits below differ. */
static uint64_t untrusted_bits(uint64_t plain)
{
	uint64_t meta = 0;
	for (int i = 0; i < probe.tensor_count; i++)
		if (probe.tensors[i].kind == INPUTS_META)
			meta = probe.tensors[i].words[layout.keys / 8];
	uint64_t common = plain & meta;
	uint64_t lowest = common & -common;
	return ~(lowest - 1) & ~plain;
}

bool inputs_solve(void)
{
	probe.first = 0;
	if (probe.muls < 2 || probe.cats < 1 || !one_bit(probe.places, &layout.inputs) ||
	    !one_bit(probe.list_places, &layout.list_begin) || !one_bit(places_of_sizes(), &layout.sizes) ||
	    !one_bit(places_of_keys(), &layout.keys))
		return false;
	layout.tensor_tag = probe.tag;
	layout.list_tag = probe.list_tag;
	for (int i = 0; i < probe.tensor_count; i++)
		if (probe.tensors[i].kind == INPUTS_PLAIN)
			layout.untrusted = untrusted_bits(probe.tensors[i].words[layout.keys / 8]);
	layout.is_known = layout.tensor_tag != layout.list_tag && layout.untrusted != 0;
	return layout.is_known;
}

bool inputs_are_known(void)
{
	return layout.is_known;
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

/* What was read, as numbers: per input a head and its sizes. */
#define HEAD_NONE 0x100u    /* no tensor, or one whose sizes are not to be had */
#define HEAD_LIST 0x200u    /* + count of the tensors that follow */
#define HEAD_TENSOR 0x1000u /* + count of sizes */

struct words {
	uint64_t list[WORDS_MAX];
	unsigned count, input_count;
};

static inline uint64_t load(uint64_t address, unsigned offset)
{
	uint64_t word;
	memcpy(&word, (const char *)(uintptr_t)address + offset, sizeof(word));
	return word;
}

static inline void add_word(struct words *words, uint64_t word)
{
	if (words->count < WORDS_MAX)
		words->list[words->count++] = word;
}

static inline void add_tensor(struct words *words, uint64_t tensor)
{
	uint64_t keys = tensor ? load(tensor, layout.keys) : 0;
	uint64_t count = keys && !(keys & layout.untrusted) ? load(tensor, layout.sizes) : UINT64_MAX;
	if (count >= 64) {
		add_word(words, HEAD_NONE);
		return;
	}
	uint64_t at = tensor + layout.sizes + 8;
	if (count > SIZES_IN_PLACE)
		at = load(at, 0);
	add_word(words, HEAD_TENSOR + count);
	for (unsigned i = 0; i < count && i < SIZES_MAX; i++)
		add_word(words, load(at, i * 8));
}

static void add_list(struct words *words, uint64_t list)
{
	uint64_t begin = load(list, layout.list_begin), end = load(list, layout.list_begin + 8);
	uint64_t count = (end - begin) / VALUE_BYTES;
	if (count == 0 || count > LIST_MAX || (uint32_t)load(begin, 8) != layout.tensor_tag) {
		add_word(words, HEAD_NONE);
		return;
	}
	add_word(words, HEAD_LIST + count);
	for (uint64_t i = 0; i < count; i++) {
		bool is_tensor = (uint32_t)load(begin + i * VALUE_BYTES, 8) == layout.tensor_tag;
		add_tensor(words, is_tensor ? load(begin + i * VALUE_BYTES, 0) : 0);
	}
}

static void read_inputs(const void *record, struct words *words)
{
	uint64_t values = load((uint64_t)(uintptr_t)record, layout.inputs);
	uint64_t count = load((uint64_t)(uintptr_t)record, layout.inputs + 8);
	unsigned tensors = 0;
	words->count = 0;
	words->input_count = (unsigned)count;
	for (uint64_t i = 0; i < count && i < 64; i++) {
		uint32_t tag = (uint32_t)load(values + i * VALUE_BYTES, 8);
		uint64_t payload = load(values + i * VALUE_BYTES, 0);
		if (tag == layout.tensor_tag && tensors++ < TENSORS_MAX)
			add_tensor(words, payload);
		else if (tag == layout.list_tag)
			add_list(words, payload);
		else
			add_word(words, HEAD_NONE);
	}
}

static unsigned put(char *text, size_t bytes, size_t at, const char *format, uint64_t number)
{
	int length = at < bytes ? snprintf(text + at, bytes - at, format, (long long)number) : 0;
	return length > 0 ? (unsigned)length : 0;
}

/* One tensor's sizes, from word `i` on; returns where the next one begins. */
static unsigned put_sizes(const struct words *words, unsigned i, char *text, size_t bytes, size_t *at)
{
	uint64_t head = words->list[i++];
	*at += put(text, bytes, *at, "[", 0);
	if (head >= HEAD_TENSOR) {
		uint64_t count = head - HEAD_TENSOR;
		for (unsigned k = 0; k < count && k < SIZES_MAX && i < words->count; k++)
			*at += put(text, bytes, *at, k ? ", %lld" : "%lld", words->list[i++]);
	}
	*at += put(text, bytes, *at, "]", 0);
	return i;
}

/* A list that is the only input gets a pair of brackets around it, so that it does not look like several inputs. */
static size_t write_text(const struct words *words, char *text, size_t bytes)
{
	bool is_one_list = words->input_count == 1 && words->list[0] > HEAD_LIST && words->list[0] < HEAD_TENSOR;
	size_t at = is_one_list ? put(text, bytes, 0, "[", 0) : 0;
	for (unsigned i = 0; i < words->count;) {
		uint64_t head = words->list[i];
		at += put(text, bytes, at, i ? " " : "", 0);
		if (head <= HEAD_LIST || head >= HEAD_TENSOR) {
			i = put_sizes(words, i, text, bytes, &at);
			continue;
		}
		i++;
		at += put(text, bytes, at, "[", 0);
		for (uint64_t k = 0; k < head - HEAD_LIST && i < words->count; k++) {
			at += put(text, bytes, at, k ? ", " : "", 0);
			i = put_sizes(words, i, text, bytes, &at);
		}
		at += put(text, bytes, at, "]", 0);
	}
	at += is_one_list ? put(text, bytes, at, "]", 0) : 0;
	return at < bytes ? at : bytes - 1;
}

void inputs_text(const void *record, char *text, size_t bytes)
{
	struct words words;
	read_inputs(record, &words);
	text[write_text(&words, text, bytes)] = '\0';
}

/* Not inline: the text is large, and most calls do without. Threads that do this at the same time may lose an entry. */
static __attribute__((noinline)) uint32_t new_symbol(const struct words *words, uint64_t hash, uint64_t *line)
{
	char text[INPUTS_TEXT_BYTES];
	uint32_t symbol = emit_symbol(STEPSCOPE_SYMBOL_INPUTS, text, (uint32_t)write_text(words, text, sizeof(text)));
	if (!symbol)
		return 0;
	for (unsigned i = CACHE_WAYS - 1; i > 0; i--)
		__atomic_store_n(&line[i], __atomic_load_n(&line[i - 1], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	__atomic_store_n(&line[0], (hash >> 24) << 24 | symbol, __ATOMIC_RELAXED);
	return symbol;
}

uint32_t inputs_symbol(const void *record)
{
	struct words words;
	read_inputs(record, &words);
	if (words.count == 0)
		return 0;
	uint64_t hash = 0x9e3779b97f4a7c15u;
	for (unsigned i = 0; i < words.count; i++) {
		hash = (hash ^ words.list[i]) * 0xff51afd7ed558ccdu;
		hash ^= hash >> 32;
	}
	uint64_t *line = cache[hash & (CACHE_LINES - 1)];
	for (unsigned i = 0; i < CACHE_WAYS; i++) {
		uint64_t seen = __atomic_load_n(&line[i], __ATOMIC_RELAXED);
		if (seen >> 24 == hash >> 24 && seen)
			return (uint32_t)(seen & 0xffffff);
	}
	return new_symbol(&words, hash, line);
}
