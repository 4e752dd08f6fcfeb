/* SPDX-License-Identifier: Apache-2.0
 *
 * speedscope.h: shared by the files that turn speedscope's JSON into the model: shared frames, and profiles, each of
 * samples with weights or of frames that open and close. Keys may come in any order. py-spy writes the names of frames
 * last, so stacks are made of numbers and named at the end. An evented profile becomes samples, too: the open stack and
 * its duration.
 *
 * speedscope.c reads the document, speedscope_json.c its tokens, and speedscope_frames.c and speedscope_profiles.c its
 * two halves. speedscope_deliver.c delivers a profile to the model.
 */
#ifndef IMPORTERS_STACKS_SPEEDSCOPE_H
#define IMPORTERS_STACKS_SPEEDSCOPE_H

#include "base/json_stream.h"
#include "importers/stacks/stack_profile.h"

#define SPEEDSCOPE_FRAMES_MAX (8u << 20)
#define SPEEDSCOPE_NUMBER_MAX 2e18L /* the sum of two fits in 64 bits */

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
	/* samples: stacks and their weights; events: stacks and the times when they open */
	uint32_t *stacks;
	long double *values;
	uint32_t stack_count, value_count, stack_capacity, value_capacity;
	/* evented: the open stack, and the number of open frames beyond the deepest that is kept */
	uint32_t open, deeper;
	uint64_t offset;
};

struct speedscope {
	struct json_stream json;
	struct stack_profile profile;
	struct number_map stacks; /* key: caller and 1 + number of the frame */
	uint16_t *depths;         /* depths of the stacks, from first_stack on */
	uint32_t depth_capacity, first_stack;
	struct speedscope_frame *frames;
	uint32_t frame_count, frame_capacity, profile_count;
	uint32_t first_sample;
	struct number_map threads; /* thread ids in names of profiles */
	uint32_t unknown_units;    /* number of profiles with one */
	struct repair_count repairs[SPEEDSCOPE_REPAIRS];
};

/* ---- speedscope_json.c ---- */

void speedscope_note(struct speedscope *scope, enum speedscope_repair repair); /* at the place last read */
enum json_stream_token speedscope_next(struct speedscope *scope);
/* Copies the last token's text, cut to the size of `out`. */
void speedscope_copy_text(const struct speedscope *scope, char *out, size_t size);
/* Reads the next key of an object and the first token of its value. Returns false if the object or the file ends. */
bool speedscope_next_key(struct speedscope *scope, char *key, size_t size, enum json_stream_token *value);
/* Reads the first token of a list's next element. Returns false if the list or the file ends. */
bool speedscope_next_element(struct speedscope *scope, enum json_stream_token *value);
/* The following functions skip a value that does not have the wanted type. */
bool speedscope_is_begin(struct speedscope *scope, enum json_stream_token value, enum json_stream_token wanted);
bool speedscope_number(struct speedscope *scope, enum json_stream_token value, long double *number);
bool speedscope_index(struct speedscope *scope, enum json_stream_token value, uint32_t *index); /* index of a frame */
/* Returns the text with its escapes resolved; 0: it is not a text. */
uint32_t speedscope_text(struct speedscope *scope, enum json_stream_token value);

/* ---- speedscope_frames.c ---- */

void speedscope_read_frames(struct speedscope *scope);
/* Returns the stack of a call of `frame` (1 + its number; 0: frames beyond the limit) in `parent`. Names are added at
 * the end. */
uint32_t speedscope_stack(struct speedscope *scope, uint32_t parent, uint32_t frame);
bool speedscope_has_room(const struct speedscope *scope, uint32_t stack);
/* Removes outermost frames that only name the thread; the frames that they call become the outermost. */
void speedscope_drop_threads(struct speedscope *scope);
/* Replaces the numbers of frames by their names. */
void speedscope_name_frames(struct speedscope *scope);

/* ---- speedscope_profiles.c ---- */

void speedscope_read_profile(struct speedscope *scope);

/* ---- speedscope_deliver.c ---- */

/* name: the profile's, a string; 0: none. */
void speedscope_deliver(struct speedscope *scope, const struct speedscope_profile *one, uint32_t name);

/* Returns true if a file that starts with these bytes, decompressed, is speedscope's. */
bool speedscope_begins(const char *head, size_t length);

#endif
