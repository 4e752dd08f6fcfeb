/* SPDX-License-Identifier: Apache-2.0
 *
 * speedscope.h: shared by the files that turn speedscope's JSON into the model: shared frames, and profiles, each of samples with weights or
 * of frames that open and close. Keys may come in any order; py-spy writes the names of frames last, so stacks are made of numbers and named
 * in the end. An evented profile becomes samples, too: the stack that is open, and for how long.
 *
 * speedscope.c reads the document, speedscope_json.c the pieces that it is made of, speedscope_frames.c and speedscope_profiles.c its two
 * halves, and speedscope_deliver.c hands a profile to the model.
 */
#ifndef IMPORTERS_STACKS_SPEEDSCOPE_H
#define IMPORTERS_STACKS_SPEEDSCOPE_H

#include "base/json_stream.h"
#include "importers/stacks/stack_profile.h"

#define SPEEDSCOPE_FRAMES_MAX (8u << 20)
#define SPEEDSCOPE_NUMBER_MAX 2e18L /* sums of two fit */

struct speedscope_frame { /* strings */
	uint32_t name, file, line;
};

enum speedscope_repair {
	SPEEDSCOPE_CUT,
	SPEEDSCOPE_JSON,
	SPEEDSCOPE_FRAME,
	SPEEDSCOPE_WEIGHT,
	SPEEDSCOPE_CLOSE,
	SPEEDSCOPE_OPEN,
	SPEEDSCOPE_BACK,
	SPEEDSCOPE_LONG,
	SPEEDSCOPE_BOTH,
	SPEEDSCOPE_LARGE,
	SPEEDSCOPE_SURPLUS,
	SPEEDSCOPE_REPAIRS,
};

struct speedscope_profile {
	char unit[32];
	long double start, end;
	bool has_end, is_evented;
	/* samples: their stacks and weights; events: the stack that is open from a time on */
	uint32_t *stacks;
	long double *values;
	uint32_t stack_count, value_count, stack_capacity, value_capacity;
	uint32_t open, deeper; /* evented: the stack that is open, and how much deeper it is than what we keep */
	uint64_t offset;
};

struct speedscope {
	struct json_stream json;
	struct stack_profile profile;
	struct number_map stacks; /* by caller and 1 + number of the frame */
	uint16_t *depths;         /* of stacks, from first_stack on */
	uint32_t depth_capacity, first_stack;
	struct speedscope_frame *frames;
	uint32_t frame_count, frame_capacity, profile_count;
	uint32_t first_sample;
	struct number_map threads; /* ids that names of profiles say */
	uint32_t unknown_units;    /* profiles */
	struct repair_count repairs[SPEEDSCOPE_REPAIRS];
};

/* ---- speedscope_json.c ---- */

void speedscope_note(struct speedscope *scope, enum speedscope_repair repair); /* at the place that was read last */
enum json_stream_token speedscope_next(struct speedscope *scope);
/* What the last token says, as much of it as there is room for. */
void speedscope_copy_text(const struct speedscope *scope, char *out, size_t size);
/* In an object: its next key, which is followed by the value's first token. False: the object ends, or the file does. */
bool speedscope_next_key(struct speedscope *scope, char *key, size_t size, enum json_stream_token *value);
/* In a list: the first token of its next element. */
bool speedscope_next_element(struct speedscope *scope, enum json_stream_token *value);
/* A value that is not what is wanted is passed over. */
bool speedscope_is_begin(struct speedscope *scope, enum json_stream_token value, enum json_stream_token wanted);
bool speedscope_number(struct speedscope *scope, enum json_stream_token value, long double *number);
bool speedscope_index(struct speedscope *scope, enum json_stream_token value, uint32_t *index); /* of a frame */
/* The text with its escapes resolved; 0: it is none. */
uint32_t speedscope_text(struct speedscope *scope, enum json_stream_token value);

/* ---- speedscope_frames.c ---- */

void speedscope_read_frames(struct speedscope *scope);
/* The stack in which `frame` (1 + its number; 0: more frames than are kept) is called. Names come in the end. */
uint32_t speedscope_stack(struct speedscope *scope, uint32_t parent, uint32_t frame);
bool speedscope_has_room(const struct speedscope *scope, uint32_t stack);
/* Outermost frames that only say whose the stack is are taken away, and what they call is outermost. */
void speedscope_drop_threads(struct speedscope *scope);
/* Frames have numbers until here. */
void speedscope_name_frames(struct speedscope *scope);

/* ---- speedscope_profiles.c ---- */

void speedscope_read_profile(struct speedscope *scope);

/* ---- speedscope_deliver.c ---- */

/* name: the profile's, a string; 0: it has none. */
void speedscope_deliver(struct speedscope *scope, const struct speedscope_profile *one, uint32_t name);

/* Returns true if a file that starts with these bytes, decompressed, is speedscope's. */
bool speedscope_begins(const char *head, size_t length);

#endif
