/* SPDX-License-Identifier: Apache-2.0
 *
 * lean_record.h: for the files lean*.c only: a lean record. It takes the place of one of PyTorch's own records of 344
 * bytes (at::RecordFunction), and has only the fields that are read. These are its table of virtual functions, which
 * is ours, its callbacks, and the fields that our observer reads. So one comparison tells whether a record is lean,
 * and a virtual destructor finds us, too.
 *
 *     record + 0         the table
 *     record + 8         at::StepCallbacks: pairs of functions, a c10::SmallVector with room for four
 *     record + schema    the address of an operator's schema; otherwise of the text of the name (a std::variant)
 *     record + kind      a byte, 1: a schema, 0: a text
 *     record + sequence  see struct torch_layout
 *
 * x86-64 only: elsewhere C cannot name the register that passes the address of a C++ result.
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

struct lean_asked { /* std::optional of the callbacks */
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

/* In one cache line, because the caches lose this data between two operators. */
extern struct lean_places {
	torch_end *end;                                        /* end of our observer; at first an empty function */
	uintptr_t by_scope, by_scope_bytes;                    /* code of the constructor that takes a scope */
	int schema, kind, sequence, inputs;                    /* inputs -1: inputs are not read */
	void *(*ask)(struct lean_asked *asked, uint8_t scope); /* at::getStepCallbacksUnlessEmpty() */
	void (*destroy)(struct lean_record *record);           /* PyTorch's own destructor */
} lean_places __attribute__((aligned(64)));
_Static_assert(sizeof(struct lean_places) <= 64, "one line");
extern const void *lean_table[4]; /* table of lean records, after two words about the type; filled when all is proven */

enum lean_call { /* redirected functions: four in each library that makes records, the others in libtorch_cpu */
	LEAN_CONSTRUCT,
	LEAN_BEFORE,
	LEAN_END,
	LEAN_DESTROY,
	LEAN_SCOPE, /* the constructor that takes a scope */
	LEAN_EVALUATE,
	LEAN_CALLS
};

#define LEAN_LIBRARIES 3u /* the first one is libtorch_cpu, the others are optional */
extern struct lean_library {
	struct loaded loaded;
	struct slots slots[LEAN_CALLS];
	bool is_led; /* destructor calls of this library come to us: it may make lean records */
} lean_libraries[LEAN_LIBRARIES];

/* Call within calibration. Returns false if a needed function is missing. */
bool lean_record_find(void);
/* Returns PyTorch's own function; NULL: it has none. */
void *lean_record_function(enum lean_call call);
/* Returns the code size of the constructor that takes a scope; 0: unknown. */
size_t lean_record_scope_bytes(void);
/* Call before calibration makes records: `look` gets each record that is destroyed. At most two such functions. */
void lean_record_watch(void (*look)(const struct lean_record *record));
/* lean_record_expect() announces a callback of calibration, with inputs in scope FUNCTION. lean_record_look() then
 * checks the form of a record with this callback. */
void lean_record_expect(enum torch_scope scope, struct lean_pair pair);
void lean_record_look(const void *record, enum torch_scope scope);
/* Call after calibration, when no callback is left. Returns NULL if lean records can be made, otherwise the reason. */
const char *lean_record_prove(const struct torch_entry *entry, const struct torch_layout *layout);
/* true: lean records can be destroyed from now on; false: PyTorch destroys all records itself again. */
void lean_record_settle(bool is_wanted);

enum {
	NOT_BEGUN,
	BEGUN
}; /* in place of the thread's number, which is not read. BEGUN: our observer's start was called, its end is due */

static inline bool lean_record_is(const struct lean_record *record)
{
	return record->table == &lean_table[2];
}

/* Makes a record that is not active: no observer is called for it. */
static inline void lean_record_make(struct lean_record *record)
{
	record->table = &lean_table[2];
	record->callbacks.pairs = record->callbacks.local;
	record->callbacks.size = 0; /* at::RecordFunction::isActive() is then false */
	record->callbacks.capacity = 4;
	record->callbacks.thread = NOT_BEGUN;
	memset(&record->callbacks.scope, 0, 8);
}

/* Returns true if our observer is the only one to call. */
static inline bool lean_is_ours(const struct lean_callbacks *callbacks)
{
	return callbacks->size == 1 && callbacks->pairs[0].end == lean_places.end && !callbacks->needs_outputs &&
	       !callbacks->needs_ids;
}

#ifdef __x86_64__
/* is_schema: `word` is the address of a schema; otherwise of a text that lives as long as this call. */
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
