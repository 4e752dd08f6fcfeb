/* SPDX-License-Identifier: Apache-2.0
 *
 * run_words.h: the English of `stepscope run` about the ends of processes and their recordings. All functions make
 * text from facts alone: the same facts give the same text. They append to `out`.
 */
#ifndef RUN_RUN_WORDS_H
#define RUN_RUN_WORDS_H

#include "base/buffer.h"
#include "run/run_closing.h"

#include <limits.h>

#define RUN_WORDS_BYTES (4 * PATH_MAX + 8192) /* no line is longer */

/* "was killed by SIGKILL, last step 17, last op 'matmul'" */
void run_words_end(struct buffer *out, const struct run_end *end);

/* "rank 3 (pid 4242) was killed by SIGKILL, last step 17, last op 'matmul'" */
void run_words_death(struct buffer *out, const struct run_end *end);

/* "process 4242 ran PyTorch unobserved: ...". Adds nothing if there is no such process. */
void run_words_unseen(struct buffer *out, const struct unseen_found *unseen);

enum closing_line {
	CLOSING_LINE_CAPTURED, /* or the reason why there is no recording */
	CLOSING_LINE_UNSEEN,
	CLOSING_LINE_REPORT,
	CLOSING_LINE_ADVICE,
	CLOSING_LINES
};

/* One of the closing lines, without its "stepscope: ". Returns false if this closing does not have the line. */
bool run_words_closing(struct buffer *out, const struct run_closing *closing, enum closing_line line);

#endif
