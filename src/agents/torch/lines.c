/* SPDX-License-Identifier: Apache-2.0
 *
 * lines.c: most operators are called by operators. While one runs, the Python frame that called it stands still. So
 * all operators that it calls, without Python in between, have the same innermost frame and the same stack: one
 * comparison. Others walk outwards: to that frame if it is below them, otherwise to the root. Known frames are found
 * in two caches, by code object and instruction.
 *
 *     memo    the newest whole stacks, outermost frame first: new stacks mostly differ in their last frames
 *     nodes   (caller's symbol, code object, instruction) -> symbol, for the rest
 *
 * A code object's address may be reused. So deaths of code objects are counted, in front of the type's own function
 * that ends them. A cached entry counts only while the count is unchanged. Otherwise the text is made again, which
 * finds the same symbol if nothing changed.
 */
#include "agents/torch/lines.h"

#include "agents/torch/process.h"
#include "agents/torch/thread.h"
#include "base/hash.h"
#include "base/time_now.h"
#include "pyframes/frames.h"
#include "recorder/emit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

#define LEVELS 6u /* nested stacks that are remembered; if there are more, each operator walks */
#define STACK_REACH 16384u
#define MEMOS 64u
#define NODES 8192u
#define TYPE_DEALLOC 48u /* of PyTypeObject, in all versions */
#define STORY_FRAMES 64u

struct lines_level {
	uint64_t thread_state;
	uint64_t frame; /* innermost one; 0: it may have moved on since */
	uint32_t symbol, depth;
};

struct open_stacks {
	uint32_t count, memo;
	uint32_t beyond; /* 1 + depth of the outermost record without a level; 0: none */
	struct lines_level levels[LEVELS];
};
_Static_assert(sizeof(struct open_stacks) <= sizeof(((struct torch_thread *)0)->lines), "room for it");
#define open_stacks (*(struct open_stacks *)(void *)torch_thread->lines)

struct memo {
	uint32_t is_busy; /* atomic */
	uint32_t count, root;
	uint64_t deaths;
	struct {
		uint64_t code;
		int32_t offset;
		uint32_t symbol;
	} frames[PYFRAMES_MAX];
};

/* Read and written like a sequence lock: an odd version is being written. Acquire loads and release stores keep the
 * other fields between the two accesses to the version. */
struct node {
	uint32_t version, symbol;
	uint64_t code;
	int32_t offset;
	uint32_t caller;
	uint64_t deaths;
};

static struct {
	struct pyframes_layout layout;
	uint64_t code_type;
	void *(*thread_state)(void);
	void (*end_code)(void *code);
	bool is_found, is_checked, is_wrong, is_over;
	uint32_t next_memo; /* atomic */
	uint32_t unknown;   /* symbol of the frame that stands for unknown frames; 0: not made yet; atomic */
	uint64_t deaths;    /* of code objects, atomic */
	uint64_t lost;      /* atomic */
} lines;

static struct memo memos[MEMOS] __attribute__((aligned(64)));
static struct node nodes[NODES] __attribute__((aligned(64)));
static const struct pyframes_memory own_memory;

static void count_code_end(void *code)
{
	__atomic_fetch_add(&lines.deaths, 1, __ATOMIC_SEQ_CST);
	lines.end_code(code);
}

/* ---- symbols ----------------------------------------------------------------------------------------------------- */

static uint32_t put_number(char *to, uint32_t number)
{
	char digits[10];
	uint32_t count = 0, length = 0;
	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		to[length++] = digits[--count];
	to[length++] = 0;
	return length;
}

/* Makes the symbol of a frame. Its text: caller's symbol, line, name and file, with a NUL between them. */
static uint32_t make_symbol(uint32_t caller, uint32_t line, const char *name, const char *file)
{
	char text[PYFRAMES_FILE_BYTES + PYFRAMES_NAME_BYTES + 32];
	uint32_t length = put_number(text, caller);
	length += put_number(text + length, line);
	size_t name_length = strlen(name) + 1, file_length = strlen(file);
	memcpy(text + length, name, name_length);
	memcpy(text + length + name_length, file, file_length);
	return emit_symbol(STEPSCOPE_SYMBOL_FRAME, text, length + (uint32_t)(name_length + file_length));
}

static uint32_t unknown_symbol(void)
{
	uint32_t symbol = __atomic_load_n(&lines.unknown, __ATOMIC_RELAXED);
	if (symbol)
		return symbol;
	symbol = make_symbol(0, 0, "", "");
	__atomic_store_n(&lines.unknown, symbol, __ATOMIC_RELAXED);
	return symbol;
}

static __attribute__((noinline)) uint32_t describe(uint32_t caller, const struct pyframes_frame *frame)
{
	struct pyframes_place place;
	uint32_t symbol = 0;
	if (pyframes_describe(&lines.layout, &own_memory, lines.code_type, frame, &place))
		symbol = make_symbol(caller, place.line, place.name, place.file);
	return symbol;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static uint32_t hash_node(uint32_t caller, const struct pyframes_frame *frame)
{
	uint64_t hash = hash_word(frame->code ^ (uint64_t)caller << 40) + (uint64_t)frame->offset;
	return (uint32_t)(hash_word(hash) >> 40);
}

static uint32_t read_node(struct node *node, uint32_t caller, const struct pyframes_frame *frame, uint64_t deaths)
{
	uint32_t version = __atomic_load_n(&node->version, __ATOMIC_ACQUIRE);
	bool is_it = !(version & 1) && __atomic_load_n(&node->code, __ATOMIC_ACQUIRE) == frame->code &&
	             __atomic_load_n(&node->offset, __ATOMIC_ACQUIRE) == (int32_t)frame->offset &&
	             __atomic_load_n(&node->caller, __ATOMIC_ACQUIRE) == caller &&
	             __atomic_load_n(&node->deaths, __ATOMIC_ACQUIRE) == deaths;
	uint32_t symbol = __atomic_load_n(&node->symbol, __ATOMIC_ACQUIRE);
	return is_it && __atomic_load_n(&node->version, __ATOMIC_RELAXED) == version ? symbol : 0;
}

static void write_node(struct node *node, uint32_t caller, const struct pyframes_frame *frame, uint64_t deaths,
                       uint32_t symbol)
{
	uint32_t version = __atomic_load_n(&node->version, __ATOMIC_RELAXED);
	if (version & 1 || !__atomic_compare_exchange_n(&node->version, &version, version + 1, false, __ATOMIC_ACQUIRE,
	                                                __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&node->code, frame->code, __ATOMIC_RELEASE);
	__atomic_store_n(&node->offset, (int32_t)frame->offset, __ATOMIC_RELEASE);
	__atomic_store_n(&node->caller, caller, __ATOMIC_RELEASE);
	__atomic_store_n(&node->deaths, deaths, __ATOMIC_RELEASE);
	__atomic_store_n(&node->symbol, symbol, __ATOMIC_RELEASE);
	__atomic_store_n(&node->version, version + 2, __ATOMIC_RELEASE);
}

static uint32_t symbol_of(uint32_t caller, const struct pyframes_frame *frame, uint64_t deaths)
{
	uint32_t at = hash_node(caller, frame) % NODES;
	uint32_t symbol = read_node(&nodes[at], caller, frame, deaths);
	if (!symbol)
		symbol = read_node(&nodes[at ^ 1], caller, frame, deaths);
	if (symbol)
		return symbol;
	symbol = describe(caller, frame);
	bool is_taken = __atomic_load_n(&nodes[at].deaths, __ATOMIC_RELAXED) == deaths;
	if (symbol)
		write_node(&nodes[at ^ is_taken], caller, frame, deaths, symbol);
	return symbol;
}

/* ---- walks ------------------------------------------------------------------------------------------------------- */

/* Returns the symbol of frames [0, count), innermost first, called by `symbol`; 0 if one of them has no symbol. */
static uint32_t lines_follow(uint32_t symbol, const struct pyframes_frame *frames, unsigned count, uint64_t deaths)
{
	while (count--) {
		symbol = symbol_of(symbol, &frames[count], deaths);
		if (!symbol)
			return 0;
	}
	return symbol;
}

static uint32_t follow_memo(struct memo *memo, uint32_t root, const struct pyframes_frame *frames, unsigned count,
                            uint64_t deaths)
{
	unsigned same = 0;
	uint32_t symbol = root;
	if (memo->deaths == deaths && memo->root == root) {
		unsigned most = count < memo->count ? count : memo->count;
		for (const struct pyframes_frame *frame = &frames[count - 1]; same < most; same++, frame--)
			if (memo->frames[same].code != frame->code ||
			    memo->frames[same].offset != (int32_t)frame->offset)
				break;
		symbol = same ? memo->frames[same - 1].symbol : root;
	}
	memo->deaths = deaths;
	memo->root = root;
	memo->count = same;
	for (; same < count; same++) {
		const struct pyframes_frame *frame = &frames[count - 1 - same];
		symbol = symbol_of(symbol, frame, deaths);
		if (!symbol)
			return 0;
		memo->frames[same].code = frame->code;
		memo->frames[same].offset = (int32_t)frame->offset;
		memo->frames[same].symbol = symbol;
		memo->count = same + 1;
	}
	return symbol;
}

/* Follows a stack from the root, with the memo of this thread. Another thread may share the memo, and may be using
 * it. */
static uint32_t follow_from_root(uint32_t root, const struct pyframes_frame *frames, unsigned count, uint64_t deaths)
{
	if (!open_stacks.memo)
		open_stacks.memo = 1 + __atomic_fetch_add(&lines.next_memo, 1, __ATOMIC_RELAXED) % MEMOS;
	struct memo *memo = &memos[open_stacks.memo - 1];
	if (__atomic_exchange_n(&memo->is_busy, 1, __ATOMIC_ACQUIRE))
		return lines_follow(root, frames, count, deaths);
	uint32_t symbol = follow_memo(memo, root, frames, count, deaths);
	__atomic_store_n(&memo->is_busy, 0, __ATOMIC_RELEASE);
	return symbol;
}

/* Returns the symbol of the stack whose innermost frame is `frame`. `below`: the innermost known stack that is further
 * out, or NULL. */
static uint32_t stack_symbol(uint64_t frame, const struct lines_level *below)
{
	struct pyframes_frame frames[PYFRAMES_MAX];
	uint64_t until = below ? below->frame : 0, deaths = __atomic_load_n(&lines.deaths, __ATOMIC_SEQ_CST),
		 at = frame;
	unsigned count = pyframes_walk_own(&lines.layout, &at, until, frames, PYFRAMES_MAX);
	uint32_t symbol = 0;
	if (count == 0)
		return 0; /* no Python frame further in */
	if (at && at == until)
		symbol = lines_follow(below->symbol, frames, count, deaths);
	else
		symbol = follow_from_root(at ? unknown_symbol() : 0, frames, count, deaths);
	if (symbol)
		return symbol;
	__atomic_fetch_add(&lines.lost, 1, __ATOMIC_RELAXED);
	return unknown_symbol(); /* not 0: that would mean the stack of the record around it */
}

/* A record in the local variables of our caller is over before the caller returns, so the frame below stands still.
 * Python objects (record_function) hold other records, which stay open while Python goes on. */
static bool is_on_stack(const void *record)
{
	return (uintptr_t)record - (uintptr_t)__builtin_frame_address(0) < STACK_REACH;
}

static __attribute__((noinline)) uint32_t begin_stack(const void *record, uint32_t depth, uint64_t thread_state,
                                                      uint64_t frame, const struct lines_level *below)
{
	uint32_t symbol = frame ? stack_symbol(frame, below) : 0;
	bool has_room = open_stacks.count < LEVELS && !open_stacks.beyond;
	if (!has_room && !open_stacks.beyond)
		open_stacks.beyond = depth + 1;
	if (has_room)
		open_stacks.levels[open_stacks.count++] = (struct lines_level){
			thread_state, is_on_stack(record) ? frame : 0, symbol, depth};
	return symbol;
}

uint32_t lines_begin(const void *record, uint32_t depth)
{
	if (__builtin_expect(__atomic_load_n(&lines.is_over, __ATOMIC_RELAXED), 0) || (!torch_thread && !thread_make()))
		return 0;
	const struct lines_level *below = open_stacks.count ? &open_stacks.levels[open_stacks.count - 1] : NULL;
	if (below && below->frame) {
		uint64_t frame = pyframes_innermost(&lines.layout, below->thread_state);
		return frame == below->frame && !open_stacks.beyond
		               ? 0
		               : begin_stack(record, depth, below->thread_state, frame, below);
	}
	uint64_t thread_state = (uint64_t)(uintptr_t)lines.thread_state();
	if (!thread_state)
		return 0; /* a thread without Python */
	return begin_stack(record, depth, thread_state, pyframes_innermost(&lines.layout, thread_state), NULL);
}

uint32_t lines_here(void)
{
	if (__builtin_expect(__atomic_load_n(&lines.is_over, __ATOMIC_RELAXED), 0) || (!torch_thread && !thread_make()))
		return 0;
	const struct lines_level *below = open_stacks.count ? &open_stacks.levels[open_stacks.count - 1] : NULL;
	uint64_t thread_state = (uint64_t)(uintptr_t)lines.thread_state();
	uint64_t frame = thread_state ? pyframes_innermost(&lines.layout, thread_state) : 0;
	return frame ? stack_symbol(frame, below && below->frame ? below : NULL) : 0;
}

void lines_end(uint32_t depth)
{
	if (!torch_thread)
		return;
	if (open_stacks.beyond > depth)
		open_stacks.beyond = open_stacks.beyond == depth + 1 ? 0 : open_stacks.beyond - 1;
	uint32_t level = open_stacks.count;
	while (level && open_stacks.levels[level - 1].depth > depth)
		open_stacks.levels[--level].depth--;
	if (!level || open_stacks.levels[level - 1].depth != depth)
		return;
	for (; level < open_stacks.count; level++)
		open_stacks.levels[level - 1] = open_stacks.levels[level];
	open_stacks.count--;
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

bool lines_find(char *problem, size_t problem_bytes)
{
	const char *(*version)(void);
	if (lines.is_found)
		return true;
	*(void **)&version = dlsym(RTLD_DEFAULT, "Py_GetVersion");
	*(void **)&lines.thread_state = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
	char *code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
	if (!version || !lines.thread_state || !code_type) {
		snprintf(problem, problem_bytes, "cannot find the Python interpreter's functions in this process");
		return false;
	}
	const struct pyframes_layout *layout = pyframes_layout_find(version(), problem, problem_bytes);
	if (!layout)
		return false;
	lines.layout = *layout;
	lines.code_type = (uint64_t)(uintptr_t)code_type;
	void (**end_code)(void *) = (void (**)(void *))(void *)(code_type + TYPE_DEALLOC);
	lines.end_code = *end_code;
	lines.deaths = 1;
	__atomic_store_n(end_code, count_code_end, __ATOMIC_RELEASE);
	lines.is_found = true;
	return true;
}

/* Before the proof no address is trusted. */
static bool read_safely(void *context, uint64_t address, void *to, size_t bytes)
{
	(void)context;
	return process_copy(address, to, bytes);
}

static bool tell_difference(const char *ours, const char *story, char *problem, size_t problem_bytes)
{
	lines.is_wrong = true;
	snprintf(problem, problem_bytes, "a stack was read as '%.*s', but this Python reports '%.*s'",
	         (int)strcspn(ours, "\n"), ours, (int)strcspn(story, "\n"), story);
	return false;
}

bool lines_check(const char *story, char *problem, size_t problem_bytes)
{
	struct pyframes_memory memory = {.read = read_safely};
	struct pyframes_frame frames[STORY_FRAMES];
	struct pyframes_place place;
	enum pyframes_end end;
	if (!lines.is_found || lines.is_wrong)
		return false;
	uint64_t thread_state = (uint64_t)(uintptr_t)lines.thread_state();
	unsigned count = pyframes_walk(&lines.layout, &memory, thread_state, frames, STORY_FRAMES, &end);
	if (count == 0 || end == PYFRAMES_BROKEN)
		return tell_difference("nothing", story, problem, problem_bytes);
	for (unsigned i = 0; i < count; i++) {
		char ours[PYFRAMES_FILE_BYTES + PYFRAMES_NAME_BYTES + 32] = "nothing";
		if (pyframes_describe(&lines.layout, &memory, lines.code_type, &frames[i], &place))
			snprintf(ours, sizeof(ours), "%u %s\n%s\n", place.line, place.name, place.file);
		size_t length = strlen(ours);
		if (strncmp(story, ours, length) != 0)
			return tell_difference(ours, story, problem, problem_bytes);
		story += length;
	}
	if (end == PYFRAMES_ROOT && *story)
		return tell_difference("the end", story, problem, problem_bytes);
	lines.is_checked = unknown_symbol() != 0;
	return true;
}

bool lines_are_known(void)
{
	return lines.is_found && lines.is_checked && !lines.is_wrong && !lines.is_over;
}

double lines_measure(void)
{
	enum {
		ROUNDS = 5,
		READS = 200
	};
	struct pyframes_frame frames[PYFRAMES_MAX];
	double best_ns = 0;
	if (!torch_thread && !thread_make())
		return 0;
	uint64_t at = pyframes_innermost(&lines.layout, (uint64_t)(uintptr_t)lines.thread_state());
	unsigned count = pyframes_walk_own(&lines.layout, &at, 0, frames, PYFRAMES_MAX);
	for (int round = 0; round < ROUNDS && count; round++) {
		int64_t start_ns = time_now_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < READS; i++)
			(void)stack_symbol(pyframes_innermost(&lines.layout, (uint64_t)(uintptr_t)lines.thread_state()),
			                   NULL);
		double ns = (double)(time_now_ns(CLOCK_MONOTONIC) - start_ns) / READS / count;
		best_ns = round == 0 || ns < best_ns ? ns : best_ns;
	}
	return best_ns;
}

void lines_forget(void)
{
	__atomic_fetch_add(&lines.deaths, 1, __ATOMIC_SEQ_CST); /* makes all cached entries invalid */
	__atomic_store_n(&lines.unknown, 0, __ATOMIC_RELAXED);
	if (torch_thread)
		open_stacks.count = open_stacks.beyond = 0;
}

void lines_stop(void)
{
	__atomic_store_n(&lines.is_over, true, __ATOMIC_SEQ_CST);
}

uint64_t lines_lost(void)
{
	return __atomic_load_n(&lines.lost, __ATOMIC_RELAXED);
}
