/* SPDX-License-Identifier: Apache-2.0
 *
 * pickle_read.h: reads the data in a Python pickle of protocol 2 to 5: numbers, texts, tuples, lists and dictionaries.
 * It reads data only: it never imports, calls or builds anything. If an opcode would make Python do that, reading ends
 * with an error that names the opcode and its position.
 *
 *     struct pickle pickle;
 *     pickle_init(&pickle, (struct pickle_client){take, mine});
 *     status = pickle_read(&pickle, input, path, err);     STATUS_OK also when it is cut off: pickle.end
 *     ...pickle.result...
 *     pickle_release(&pickle);
 *
 * If a pickle breaks off, the result holds its complete parts: open containers keep the items read so far.
 *
 * A client may take the items of a container as they are read, so that large pickles need little memory. `take` gets
 * the items put into a list, or the keys and values in turn put into a dictionary. It calls pickle_take() to replace
 * the container by its own value. Texts are numbers of pickle.texts; only the first MiB of a longer text is kept.
 *
 * Memory is limited to 256 MiB plus 16 times the bytes of the (compressed) file. Memory that the client reports with
 * pickle_use() counts, too. A pickle that needs more is refused.
 */
#ifndef BASE_PICKLE_READ_H
#define BASE_PICKLE_READ_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/input_stream.h"
#include "base/intern.h"

#include <stdbool.h>
#include <stdint.h>

enum pickle_type {
	PICKLE_NONE,
	PICKLE_BOOL, /* i64 */
	PICKLE_INT,
	PICKLE_LARGE, /* an integer that does not fit i64 */
	PICKLE_FLOAT,
	PICKLE_TEXT,   /* number: index of pickle.texts */
	PICKLE_BYTES,  /* contents are not kept */
	PICKLE_OBJECT, /* number: index of pickle.objects */
	PICKLE_MARK,   /* internal */
};

struct pickle_value {
	uint32_t type; /* enum pickle_type */
	uint32_t number;
	union {
		int64_t i64;
		double f64;
	};
};

enum pickle_kind {
	PICKLE_LIST,
	PICKLE_DICTIONARY, /* items: keys and values in turn */
	PICKLE_TUPLE,
	PICKLE_TAKEN, /* by the client */
};

struct pickle_object {
	union {
		struct pickle_value *items;
		uint32_t taken; /* value set by pickle_take() */
	};
	uint32_t count;
	uint8_t kind;         /* enum pickle_kind */
	uint8_t capacity_log; /* capacity of items: 1 << this */
	uint8_t tag;          /* tag set by pickle_take() */
};

struct pickle;

struct pickle_client {
	/* (optional) Items are put into the object: a list, a dictionary, or an object taken before. Returns true if
	 * they need not be kept. */
	bool (*take)(void *context, struct pickle *pickle, uint32_t object, const struct pickle_value *items,
	             uint32_t count);
	void (*progress)(void *context); /* (optional) called from time to time */
	void *context;
};

enum pickle_end {
	PICKLE_COMPLETE,
	PICKLE_CUT,       /* the file ends within the pickle */
	PICKLE_MALFORMED, /* the next opcode is not valid */
	PICKLE_REFUSED,
};

struct pickle {
	struct pickle_client client;
	struct intern texts;
	struct pickle_object *objects;
	uint32_t object_count, object_capacity;
	struct pickle_value *stack;
	uint32_t stack_count, stack_capacity;
	uint64_t *memo; /* type << 32 | number; 0: empty */
	uint32_t memo_count, memo_capacity;
	uint64_t used_bytes;
	struct buffer text;
	/* the file */
	struct input_stream *input;
	uint8_t *window;
	size_t begin, window_end;
	uint64_t window_offset;
	struct error input_error; /* the read error, if reading failed before the end of the file */
	/* the outcome */
	enum pickle_end end;
	struct pickle_value result;
	uint64_t offset; /* of the current opcode, at the end: where reading stopped */
	uint8_t opcode;
	uint64_t cut_texts, odd_texts, refused_items; /* odd: texts that were not UTF-8; bad bytes became U+FFFD */
};

void pickle_init(struct pickle *pickle, struct pickle_client client);
void pickle_release(struct pickle *pickle);

/* Returns true if these first bytes may be a pickle of protocol 2 to 5. */
bool pickle_begins(const char *head, size_t length);

/* Reads the whole pickle. Fails if the pickle is refused; a read error of the file is in pickle->input_error. */
enum status pickle_read(struct pickle *pickle, struct input_stream *input, const char *path,
                        struct error *err) MUST_CHECK;

/* Adds memory that the client keeps for the pickle to its limit. */
static inline void pickle_use(struct pickle *pickle, uint64_t bytes)
{
	pickle->used_bytes += bytes;
}

/* Replaces the object by the client's value and frees its items. */
void pickle_take(struct pickle *pickle, uint32_t object, uint8_t tag, uint32_t taken, uint32_t count);

/* Returns NULL if the value is not of that kind. */
static inline const struct pickle_object *pickle_object(const struct pickle *pickle, const struct pickle_value *value,
                                                        enum pickle_kind kind)
{
	const struct pickle_object *object = value && value->type == PICKLE_OBJECT ? &pickle->objects[value->number]
	                                                                           : NULL;
	return object && object->kind == kind ? object : NULL;
}

/* Returns NULL if the value was not taken with that tag. */
static inline const struct pickle_object *pickle_taken(const struct pickle *pickle, const struct pickle_value *value,
                                                       uint8_t tag)
{
	const struct pickle_object *object = pickle_object(pickle, value, PICKLE_TAKEN);
	return object && object->tag == tag ? object : NULL;
}

/* Returns the value of a dictionary's key, or NULL if the key is not among its first 64. */
const struct pickle_value *pickle_find(const struct pickle *pickle, const struct pickle_object *dictionary,
                                       const char *key);
/* Returns NULL if the value is not a text. */
const char *pickle_text(const struct pickle *pickle, const struct pickle_value *value);

#endif
