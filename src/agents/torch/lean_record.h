/* SPDX-License-Identifier: Apache-2.0
 *
 * lean_record.h: for the files lean*.c only: a lean record. It lies where PyTorch would have built one of its own of 344 bytes
 * (at::RecordFunction), and has of it what is read: its table of virtual functions, which is ours, who is called, and what our observer reads.
 * So "is it lean" is one comparison, and a virtual destructor finds us, too.
 *
 *   record + 0         the table
 *   record + 8         at::StepCallbacks: pairs of functions, a c10::SmallVector with room for four
 *   record + schema    where the schema of an operator lies; else the text of the name (a std::variant)
 *   record + kind      a byte, 1: a schema, 0: a text
 *   record + sequence  see struct torch_layout
 *
 * x86-64 only: C cannot name where others pass the address of what C++ returns.
 */
#ifndef AGENTS_TORCH_LEAN_RECORD_H
#define AGENTS_TORCH_LEAN_RECORD_H

#include "agents/torch/layout.h"
#include "agents/torch/slots.h"

#include <string.h>

typedef void torch_end(const void *record, void *context);

struct lean_pair { /* at::StepCallbacks::StartEndPair */
	torch_start *start;
	torch_end *end;
};

struct lean_callbacks { /* at::StepCallbacks */
	struct lean_pair *pairs;
	uint32_t size, capacity;
	struct lean_pair local[4];
	uint64_t thread;
	uint8_t scope, needs_inputs, needs_outputs, needs_ids, padding[4];
};

struct lean_asked { /* std::optional of it */
	struct lean_callbacks callbacks;
	uint8_t is_any, padding[7];
};

struct lean_record {
	const void *table;
	struct lean_callbacks callbacks;
};
_Static_assert(sizeof(struct lean_callbacks) == 96 && sizeof(struct lean_asked) == 104 &&
                       sizeof(struct lean_record) == 104,
               "as in 2.3 to 2.14");

/* In one line of the processor's cache: between two operators it forgets what lies where. */
extern struct lean_places {
	torch_end *end;                                        /* of our observer, or nobody's */
	uintptr_t by_scope, by_scope_bytes;                    /* code of the constructor that takes a scope */
	int schema, kind, sequence, inputs;                    /* inputs -1: none are read */
	void *(*ask)(struct lean_asked *asked, uint8_t scope); /* at::getStepCallbacksUnlessEmpty() */
	void (*destroy)(struct lean_record *record);           /* PyTorch's own */
} lean_places __attribute__((aligned(64)));
_Static_assert(sizeof(struct lean_places) <= 64, "one line");
extern const void
	*lean_table[4]; /* what lean records begin with: behind the two that tell the type; filled when all is proven */

enum lean_call { /* of functions that are led; the first four by each library that makes records, the others by libtorch_cpu */
	LEAN_CONSTRUCT,
	LEAN_BEFORE,
	LEAN_END,
	LEAN_DESTROY,
	LEAN_SCOPE, /* the constructor that takes one */
	LEAN_EVALUATE,
	LEAN_CALLS
};

#define LEAN_LIBRARIES 3u /* the first one is libtorch_cpu, the others need not be there */
extern struct lean_library {
	struct loaded loaded;
	struct slots slots[LEAN_CALLS];
	bool is_led; /* what is destroyed in it comes to us: lean records may be made there */
} lean_libraries[LEAN_LIBRARIES];

/* Within calibration. False: not all that is needed is there. */
bool lean_record_find(void);
/* PyTorch's own; NULL: it has none. */
void *lean_record_function(enum lean_call call);
/* Code of the constructor that takes a scope; 0: not known. */
size_t lean_record_scope_bytes(void);
/* Before calibration's records: this looks at each that is destroyed. At most two of them. */
void lean_record_watch(void (*look)(const struct lean_record *record));
/* Calibration has this callback, with inputs in scope FUNCTION; then, of its records: is it as known? */
void lean_record_expect(enum torch_scope scope, struct lean_pair pair);
void lean_record_look(const void *record, enum torch_scope scope);
/* Behind it, when no callback is left; NULL: lean records can be made, else why not. */
const char *lean_record_prove(const struct torch_entry *entry, const struct torch_layout *layout);
/* From here on lean records can be destroyed; false: PyTorch destroys all itself again. */
void lean_record_settle(bool is_wanted);

enum {
	NOT_BEGUN,
	BEGUN
}; /* in place of the thread's number, which nothing reads: our observer was told, and is to be told of the end */

static inline bool lean_record_is(const struct lean_record *record)
{
	return record->table == &lean_table[2];
}

/* One that is not active: nobody is told anything of it. */
static inline void lean_record_make(struct lean_record *record)
{
	record->table = &lean_table[2];
	record->callbacks.pairs = record->callbacks.local;
	record->callbacks.size = 0; /* at::RecordFunction::isActive() */
	record->callbacks.capacity = 4;
	record->callbacks.thread = NOT_BEGUN;
	memset(&record->callbacks.scope, 0, 8);
}

/* Our observer, and nobody else, is to be told. */
static inline bool lean_is_ours(const struct lean_callbacks *callbacks)
{
	return callbacks->size == 1 && callbacks->pairs[0].end == lean_places.end && !callbacks->needs_outputs &&
	       !callbacks->needs_ids;
}

#ifdef __x86_64__
/* is_schema: `word` is the address of a schema, else of a text that lives as long as this call. */
static inline void lean_record_begin(struct lean_record *record, torch_start *start, uint64_t word, bool is_schema,
                                     int64_t sequence)
{
	void *context = NULL;
	char *bytes = (char *)record;
	memcpy(bytes + lean_places.schema, &word, sizeof(word));
	memcpy(bytes + lean_places.sequence, &sequence, sizeof(sequence));
	bytes[lean_places.kind] = is_schema;
	record->callbacks.thread = BEGUN;
	(void)start(&context, record);
}
#endif

#endif
