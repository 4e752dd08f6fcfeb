/* SPDX-License-Identifier: Apache-2.0
 *
 * stack_profile.h: a profile of stacks on its way into the model. Frames become model.stacks; each weight of a stack
 * becomes a row of model.samples. The name of a sample is the unit of its weight:
 *     time      nanoseconds
 *     bytes     bytes
 *     samples   how often it was seen, or whatever else the file counts
 *
 * Memory is limited: if a file has too many different frames, a stack ends in "(more frames)" and keeps its weight.
 */
#ifndef IMPORTERS_STACKS_STACK_PROFILE_H
#define IMPORTERS_STACKS_STACK_PROFILE_H

#include "base/buffer.h"
#include "importers/stacks/stack_frames.h"
#include "importers/text_lines.h"

#define STACK_PROFILE_DEPTH 4096u                 /* frames of a stack */
#define STACK_PROFILE_SAMPLES (16u << 20)         /* per file */
#define STACK_PROFILE_TRACKS 1000000u             /* threads per file */
#define STACK_PROFILE_TEXTS ((uint64_t)512 << 20) /* bytes of different texts */

struct stack_profile {
	struct model *model;
	const char *path;
	struct number_map frames;    /* stack_frames.h */
	struct number_map samples;   /* stack_profile_add(): row of a track's stack */
	struct number_map tracks;    /* key: process, and string of the thread's name */
	struct number_map processes; /* by string of the name */
	struct buffer text;
	uint64_t text_bytes; /* total of different texts */
	uint64_t cut;        /* stacks that end in "(more frames)" */
	uint64_t left_out;   /* samples beyond the maximum */
	uint64_t trackless;  /* samples of threads beyond the maximum */
	uint64_t textless;   /* texts beyond the maximum */
};

void stack_profile_init(struct stack_profile *profile, struct model *model, const char *path);
void stack_profile_release(struct stack_profile *profile);
/* Returns a text of the file as a string of the model, as valid UTF-8. 0: the text is empty, or there are too many
 * texts. */
uint32_t stack_profile_text(struct stack_profile *profile, const char *text, size_t length);
/* Like stack_profile_text(), for the text in profile->text, which is valid UTF-8. */
uint32_t stack_profile_text_of(struct stack_profile *profile);
/* Returns the process or thread with that name (a string, 0: the file does not state one), created by the first call.
 * MODEL_NONE: there are too many threads. */
uint32_t stack_profile_process(struct stack_profile *profile, uint32_t name, int64_t pid);
uint32_t stack_profile_track(struct stack_profile *profile, uint32_t process, uint32_t name, int64_t tid);
/* Adds another thread, even if the name exists. */
uint32_t stack_profile_new_track(struct stack_profile *profile, uint32_t process, uint32_t name, int64_t tid);
/* Returns true if another frame may be added at this depth. If not, call stack_profile_cut(). */
bool stack_profile_has_room(const struct stack_profile *profile, uint32_t depth);
uint32_t stack_profile_cut(struct stack_profile *profile, uint32_t stack);
/* Adds a sample with a time. Returns false if there are too many, or its track is MODEL_NONE. */
bool stack_profile_sample(struct stack_profile *profile, const struct sample *sample);
/* Like stack_profile_sample(), for a file without times: adds to the sample of the same track and stack. */
bool stack_profile_add(struct stack_profile *profile, const struct sample *sample);
/* Adds losses to the ledger, and the fact trace.format, from which reports know the limits of such a file. weights: the
 * meaning of the numbers, if the file does not state it; otherwise NULL. */
void stack_profile_finish(struct stack_profile *profile, const char *format, const char *weights);

/* Of struct importer, `reasons`. */
extern const char *const stack_profile_reasons[];

#endif
