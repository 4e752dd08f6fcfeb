/* SPDX-License-Identifier: Apache-2.0 */
/* Everything the command line can say, and what it means when it says nothing. One table (settings.c) holds the
 * options, their limits and their help. */
#ifndef TRAINER_SETTINGS_H
#define TRAINER_SETTINGS_H

#include "failure.h"

#include <stdbool.h>
#include <stdio.h>

/* Deliberate faults, for checking what a profiler says about them. 0 is off, except where said. */
struct faults {
	long slow_loader_ms, slow_loader_every;
	long slow_loader_rank; /* only of this one; -1 is all */
	long sync_checkpoint_every;
	long leak_kb;
	long slow_thread_ms;
	long nan_step; /* -1 is off */
	long straggler_rank, straggler_ms;
	long slow_step_percent;
};

struct settings {
	long steps, layers, width, heads, context, rows, accumulate;
	double learning_rate;
	long seed;
	char **data; /* points into the command line; none given: the text beside the sources */
	int data_count;
	char *out, *stamps, *resume;
	long evaluate_every, checkpoint_every;
	long workers, blas_threads, loader_threads, queue, ranks;
	struct faults faults;
	bool quiet, help;
};

/* Fills the settings from the command line, or says what is wrong with it. */
int settings_parse(struct settings *settings, int count, char **arguments, struct failure *failure);
void settings_release(struct settings *settings);

void settings_print_help(FILE *out);

#endif
