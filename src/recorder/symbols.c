/* SPDX-License-Identifier: Apache-2.0
 *
 * symbols.c: a hash table of 64-bit slots (hash << 32 | number) over an append-only area of entries. A lookup tries one
 * line of a small table first, then the large table. To add a name, a thread reserves room, writes the text, and
 * publishes the number in the slot by compare-and-swap. A thread that loses this race uses the winner's number; its own
 * entry stays, complete and unused.
 */
#include "recorder/symbols.h"

#include "base/hash.h"
#include "base/utf8.h"
#include "recorder/clock.h"

#include <sched.h>
#include <sys/mman.h>

#define AREA_BYTES (32u << 20)
#define SLOTS (SYMBOLS_MAX * 2)
#define FRONT_LINES 64u    /* lines of 8 slots, tried first (6 bits of the hash): the names of a start share one page */
#define MOST_AT_ONCE 4096u /* threads that may add a name at the same instant */
#define KEPT_FOR_FACTS 4096u
#define KEPT_FOR_FACTS_BYTES (4u << 20)
#define KEPT_FOR_NAMES (SYMBOLS_MAX / 2) /* reserved against inputs and frames of operators, which may be many */
#define KEPT_FOR_NAMES_BYTES (AREA_BYTES / 2)
#define KEPT_FOR_STAND_INS 256u
#define KEPT_FOR_STAND_INS_BYTES (64u << 10)
#define STAND_IN "(too many names)"

struct copies {
	struct pool *pool;
	int32_t running; /* threads that may be writing to the pool */
};

struct symbols {
	bool is_open;  /* the built-in names are in; atomic */
	uint8_t *area; /* struct stepscope_symbol + text, 8-byte aligned */
	uint64_t used; /* bytes, atomic */
	uint64_t *front, *slots;
	uint32_t *offsets;     /* number -> offset / 8 in area, atomic */
	uint32_t count;        /* numbers assigned, atomic */
	uint32_t passed;       /* highest number that the drainer skipped because its entry was incomplete; atomic */
	uint32_t late;         /* lowest skipped number whose entry was completed later; 0: none; atomic */
	bool is_full;          /* a name was refused, atomic */
	uint64_t kinds;        /* kinds of the names added, atomic */
	uint32_t left_behind;  /* inputs and frames up to this number belong to a parent */
	struct copies *copies; /* in a page that fork() clears: a child must not write to its parent's pool */
};
static struct symbols symbols;

static void *map_zeroed(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

static bool symbols_is_same(uint32_t number, uint8_t kind, const char *text, uint32_t length)
{
	const struct stepscope_symbol *symbol = (const struct stepscope_symbol *)(symbols.area +
	                                                                          8 * (uint64_t)symbols.offsets[number]);
	return symbol->kind == kind && symbol->length == length && memcmp(symbol + 1, text, length) == 0;
}

/* Returns the entry of a number, or NULL if it is not complete. A thread may be interrupted inside an insertion for
 * long, or forever. */
static const struct stepscope_symbol *entry_of(uint32_t number)
{
	/* before its offset is set, it refers to the first entry, which has another number */
	uint64_t at = 8 * (uint64_t)__atomic_load_n(&symbols.offsets[number], __ATOMIC_SEQ_CST);
	const struct stepscope_symbol *symbol = (const struct stepscope_symbol *)(symbols.area + at);
	return __atomic_load_n(&symbol->id, __ATOMIC_SEQ_CST) == number ? symbol : NULL;
}

/* Writes an entry into an area: the length first, so that a reader can step over an entry that was never completed. */
static void write_entry(uint8_t *at, uint32_t number, uint8_t kind, const char *text, uint32_t length)
{
	struct stepscope_symbol *symbol = (struct stepscope_symbol *)at;
	symbol->length = (uint16_t)length;
	symbol->kind = kind;
	symbol->flags = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	memcpy(symbol + 1, text, length);
	__atomic_store_n(&symbol->id, number, __ATOMIC_SEQ_CST);
}

static size_t entry_bytes(uint32_t length)
{
	return sizeof(struct stepscope_symbol) + ((length + 7u) & ~7u);
}

static void copy_to_pool(struct pool *pool, uint32_t number, uint8_t kind, const char *text, uint32_t length)
{
	size_t bytes = entry_bytes(length);
	uint64_t at = __atomic_load_n(&pool->header->symbols_used, __ATOMIC_RELAXED);
	do {
		if (at + bytes > __atomic_load_n(&pool->header->symbols_bytes, __ATOMIC_ACQUIRE))
			return; /* no room: only a kill before the next pass loses the name, and readers report it */
	} while (!__atomic_compare_exchange_n(&pool->header->symbols_used, &at, at + bytes, true, __ATOMIC_RELAXED,
	                                      __ATOMIC_RELAXED));
	write_entry(pool->symbols + at, number, kind, text, length);
}

/* Returns true for names that stand in for others, and for the closing facts. */
static bool is_last_word(uint8_t kind, const char *text, uint32_t length)
{
	static const char sentence[] = "capture", word[] = "captured"; /* with their NUL */
	if (kind == STEPSCOPE_SYMBOL_META)
		return (length >= sizeof(sentence) && memcmp(text, sentence, sizeof(sentence)) == 0) ||
		       (length >= sizeof(word) && memcmp(text, word, sizeof(word)) == 0);
	return length == sizeof(STAND_IN) - 1 && memcmp(text, STAND_IN, length) == 0;
}

static bool is_detail(uint8_t kind)
{
	return kind == STEPSCOPE_SYMBOL_INPUTS || kind == STEPSCOPE_SYMBOL_FRAME;
}

static bool is_left_behind(uint32_t number, uint8_t kind)
{
	return number <= symbols.left_behind && is_detail(kind);
}

/* Returns the divisor of the room that is reserved against details. A child whose parent filled the room for details
 * needs some for its own. */
static unsigned divisor(void)
{
	return symbols.left_behind ? 2 : 1;
}

/* Returns the number of entries that a name of this kind must leave free. The program's names leave room for facts,
 * which describe the recording. Facts leave room for the names that stand in. */
static uint32_t kept_numbers(uint8_t kind, bool is_last)
{
	bool is_fact = kind == STEPSCOPE_SYMBOL_META || kind == STEPSCOPE_SYMBOL_METRIC ||
	               kind == STEPSCOPE_SYMBOL_PHASE;
	return is_last ? 0
	               : KEPT_FOR_STAND_INS + (is_fact ? 0 : KEPT_FOR_FACTS) +
	                         (is_detail(kind) ? KEPT_FOR_NAMES / divisor() : 0);
}

/* A thread completes an entry and then checks if the drainer has skipped it. The drainer notes that it skips an entry
 * and then checks the entry again. So at least one of them sees the other. */
static void tell_if_passed(uint32_t number)
{
	if (__atomic_load_n(&symbols.passed, __ATOMIC_SEQ_CST) < number)
		return;
	uint32_t late = __atomic_load_n(&symbols.late, __ATOMIC_RELAXED);
	while ((late == 0 || late > number) &&
	       !__atomic_compare_exchange_n(&symbols.late, &late, number, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

static const struct stepscope_symbol *pass(uint32_t number)
{
	if (__atomic_load_n(&symbols.passed, __ATOMIC_RELAXED) < number)
		__atomic_store_n(&symbols.passed, number, __ATOMIC_SEQ_CST);
	return entry_of(number);
}

static uint32_t symbols_add(uint8_t kind, const char *text, uint32_t length)
{
	size_t bytes = entry_bytes(length);
	uint64_t at = __atomic_load_n(&symbols.used, __ATOMIC_RELAXED);
	uint32_t kept = kept_numbers(kind, is_last_word(kind, text, length));
	uint64_t room = AREA_BYTES - (kept ? KEPT_FOR_STAND_INS_BYTES : 0) -
	                (kept > KEPT_FOR_STAND_INS ? KEPT_FOR_FACTS_BYTES : 0) -
	                (is_detail(kind) ? KEPT_FOR_NAMES_BYTES / divisor() : 0);
	/* checked before room is reserved: an entry without a number would block the area forever */
	if (__atomic_load_n(&symbols.count, __ATOMIC_RELAXED) >= SYMBOLS_MAX - MOST_AT_ONCE - kept)
		return 0;
	do {
		if (at + bytes > room)
			return 0;
	} while (
		!__atomic_compare_exchange_n(&symbols.used, &at, at + bytes, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	uint32_t number = __atomic_add_fetch(&symbols.count, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&symbols.offsets[number], (uint32_t)(at / 8), __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&symbols.kinds, UINT64_C(1) << kind, __ATOMIC_RELAXED);
	write_entry(symbols.area + at, number, kind, text, length);
	tell_if_passed(number);
	__atomic_fetch_add(&symbols.copies->running, 1, __ATOMIC_SEQ_CST);
	struct pool *pool = __atomic_load_n(&symbols.copies->pool, __ATOMIC_SEQ_CST);
	if (pool)
		copy_to_pool(pool, number, kind, text, length);
	__atomic_fetch_sub(&symbols.copies->running, 1, __ATOMIC_RELEASE);
	return number;
}

static uint32_t intern(enum stepscope_symbol_kind kind, const char *text, uint32_t length)
{
	length = (uint32_t)utf8_cut(text, length, SYMBOLS_MAX_TEXT);
	uint32_t hash = (uint32_t)(hash_text((uint64_t)kind << 32, text, length) >> 32);
	uint32_t mine = 0;
	uint64_t *front = symbols.front + 8 * (uint64_t)(hash >> 26);
	for (uint32_t probe = 0;; probe++) {
		uint64_t *slot = probe < 8 ? front + probe : &symbols.slots[(hash + probe) & (SLOTS - 1)];
		uint64_t seen = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
		if (seen == 0) {
			if (mine == 0)
				mine = symbols_add((uint8_t)kind, text, length);
			if (mine == 0)
				return 0;
			if (__atomic_compare_exchange_n(slot, &seen, (uint64_t)hash << 32 | mine, false,
			                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				return mine;
		}
		if ((uint32_t)(seen >> 32) == hash && symbols_is_same((uint32_t)seen, (uint8_t)kind, text, length) &&
		    !is_left_behind((uint32_t)seen, (uint8_t)kind))
			return (uint32_t)seen;
	}
}

/* Returns true if a stand-in name is useful: a span without its name is still a span, but a value without its name says
 * nothing. */
static bool has_stand_in(enum stepscope_symbol_kind kind)
{
	return kind != STEPSCOPE_SYMBOL_TEXT && kind != STEPSCOPE_SYMBOL_META && kind != STEPSCOPE_SYMBOL_COUNTER &&
	       kind != STEPSCOPE_SYMBOL_METRIC;
}

uint32_t symbols_intern(enum stepscope_symbol_kind kind, const char *text, uint32_t length)
{
	if (!__atomic_load_n(&symbols.is_open, __ATOMIC_ACQUIRE))
		return 0;
	uint32_t number = intern(kind, text, length);
	if (__builtin_expect(number != 0, 1) || is_detail((uint8_t)kind))
		return number;
	__atomic_store_n(&symbols.is_full, true, __ATOMIC_RELAXED);
	return has_stand_in(kind) ? intern(kind, STAND_IN, sizeof(STAND_IN) - 1) : 0;
}

bool symbols_are_full(void)
{
	return __atomic_load_n(&symbols.is_full, __ATOMIC_RELAXED);
}

uint64_t symbols_kinds(void)
{
	return __atomic_load_n(&symbols.kinds, __ATOMIC_RELAXED);
}

static void add_builtins(void)
{
	static const struct {
		uint8_t kind;
		const char *text;
	} builtins[STEPSCOPE_BUILTIN_FIRST_FREE] = {
		[1] = {STEPSCOPE_SYMBOL_PHASE, "data"},          [2] = {STEPSCOPE_SYMBOL_PHASE, "forward"},
		[3] = {STEPSCOPE_SYMBOL_PHASE, "backward"},      [4] = {STEPSCOPE_SYMBOL_PHASE, "optimizer"},
		[5] = {STEPSCOPE_SYMBOL_PHASE, "communication"}, [6] = {STEPSCOPE_SYMBOL_PHASE, "checkpoint"},
		[7] = {STEPSCOPE_SYMBOL_PHASE, "evaluation"},    [8] = {STEPSCOPE_SYMBOL_MICRO_BATCH, "micro-batch"},
		[9] = {STEPSCOPE_SYMBOL_TEXT, "index"},          [10] = {STEPSCOPE_SYMBOL_TEXT, "shape"},
		[11] = {STEPSCOPE_SYMBOL_TEXT, "dtype"},         [12] = {STEPSCOPE_SYMBOL_TEXT, "flops"},
		[13] = {STEPSCOPE_SYMBOL_TEXT, "bytes"},         [14] = {STEPSCOPE_SYMBOL_TEXT, "reserved 14"},
		[15] = {STEPSCOPE_SYMBOL_TEXT, "reserved 15"},
	};
	for (uint32_t i = 1; i < STEPSCOPE_BUILTIN_FIRST_FREE; i++)
		intern(builtins[i].kind, builtins[i].text, (uint32_t)strlen(builtins[i].text));
}

bool symbols_start(void)
{
	if (symbols.is_open)
		return true;
	symbols.used = symbols.kinds = 0; /* a parent may have forked in the middle of this */
	symbols.count = 0;
	symbols.front = map_zeroed(8 * FRONT_LINES * sizeof(uint64_t));
	symbols.slots = map_zeroed(SLOTS * sizeof(uint64_t));
	symbols.offsets = map_zeroed(SYMBOLS_MAX * sizeof(uint32_t));
	symbols.area = map_zeroed(AREA_BYTES);
	symbols.copies = map_zeroed(4096);
	if (!symbols.front || !symbols.slots || !symbols.offsets || !symbols.area || !symbols.copies ||
	    madvise(symbols.copies, 4096, MADV_WIPEONFORK) != 0)
		return false;
	add_builtins(); /* first, because their numbers are fixed */
	__atomic_store_n(&symbols.is_open, true, __ATOMIC_RELEASE);
	return true;
}

void symbols_leave_details(void)
{
	symbols.left_behind = __atomic_load_n(&symbols.count, __ATOMIC_RELAXED);
}

void symbols_wipe(void)
{
	if (symbols.copies)
		*symbols.copies = (struct copies){0};
}

static bool wait_for_copies(void)
{
	int64_t start = clock_raw_ns();
	while (symbols.copies && __atomic_load_n(&symbols.copies->running, __ATOMIC_ACQUIRE) > 0) {
		if (clock_raw_ns() - start > 1000000000)
			return false;
		sched_yield();
	}
	return true;
}

void symbols_attach_pool(struct pool *pool, uint32_t written)
{
	/* from now on new names go to both; the loop copies the older ones, and a name copied twice does no harm */
	__atomic_store_n(&symbols.copies->pool, pool, __ATOMIC_SEQ_CST);
	uint32_t count = __atomic_load_n(&symbols.count, __ATOMIC_SEQ_CST);
	uint32_t late = __atomic_load_n(&symbols.late, __ATOMIC_SEQ_CST);
	for (uint32_t number = late && late <= written ? late : written + 1; number <= count; number++) {
		const struct stepscope_symbol *symbol = entry_of(number);
		if (symbol && !is_left_behind(number, symbol->kind))
			copy_to_pool(pool, number, symbol->kind, (const char *)(symbol + 1), symbol->length);
	}
}

bool symbols_detach_pool(void)
{
	if (!symbols.copies)
		return true; /* never started */
	__atomic_store_n(&symbols.copies->pool, NULL, __ATOMIC_SEQ_CST);
	return wait_for_copies();
}

/* A thread that adds a name increments `running` and then reads the pool. This function clears the pool and then reads
 * `running`, so at least one of them sees the other. A name that is added meanwhile is copied when the pool is attached
 * again. At each instant a rescue finds only whole names. */
void symbols_free_copies(uint32_t written)
{
	struct pool *pool = symbols.copies->pool;
	uint64_t used = pool ? __atomic_load_n(&pool->header->symbols_used, __ATOMIC_RELAXED) : 0;
	if (!written || !used || used <= pool->header->symbols_bytes / 2)
		return;
	__atomic_store_n(&symbols.copies->pool, NULL, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&symbols.copies->running, __ATOMIC_SEQ_CST) == 0) {
		used = __atomic_exchange_n(&pool->header->symbols_used, 0, __ATOMIC_SEQ_CST);
		memset(pool->symbols, 0, used);
	}
	symbols_attach_pool(pool, written);
}

uint32_t symbols_take_late(void)
{
	return __atomic_exchange_n(&symbols.late, 0, __ATOMIC_ACQUIRE);
}

size_t symbols_take(uint32_t *from, bool has_details, void *out, size_t maximum)
{
	uint32_t count = __atomic_load_n(&symbols.count, __ATOMIC_ACQUIRE);
	size_t length = 0;
	for (; *from < count; ++*from) {
		const struct stepscope_symbol *symbol = entry_of(*from + 1);
		if (!symbol)
			symbol = pass(*from + 1);
		if (!symbol || (is_detail(symbol->kind) && !has_details) || is_left_behind(*from + 1, symbol->kind))
			continue; /* no event uses it (yet), or it is in another file */
		size_t bytes = entry_bytes(symbol->length);
		if (length + bytes > maximum)
			break;
		memcpy((uint8_t *)out + length, symbol, bytes);
		length += bytes;
	}
	return length;
}
