/* SPDX-License-Identifier: Apache-2.0 */
/* One process's training run: everything it owns, and the loop.
 *
 *     trainer_init(&trainer, &settings, &ranks, &failure);
 *     trainer_run(&trainer, &failure);
 *     trainer_release(&trainer, &failure);      also after a failure
 */
#ifndef TRAINER_TRAINER_H
#define TRAINER_TRAINER_H

#include "adamw.h"
#include "checkpoint.h"
#include "corpus.h"
#include "engine.h"
#include "gpt.h"
#include "loader.h"
#include "rank_group.h"
#include "settings.h"
#include "stamps.h"

struct trainer {
	const struct settings *settings;
	struct ranks *ranks;
	struct engine engine;
	struct corpus corpus;
	struct gpt gpt;
	struct adamw adamw;
	struct loader loader;
	struct checkpoint checkpoint;
	struct batch validation;
	struct stamps stamps;
	long step;            /* steps done, those of the checkpoint we resumed from included */
	double learning_rate; /* of the current step */
	int64_t printed_ns;   /* when progress was last printed, ... */
	long printed_step;    /* ... and how many steps were done then */
	bool has_warned;
};

int trainer_init(struct trainer *trainer, const struct settings *settings, struct ranks *ranks,
                 struct failure *failure);

/* Trains until settings.steps steps are done; writes the stamps also when it fails. */
int trainer_run(struct trainer *trainer, struct failure *failure);

/* Stops the threads and frees everything. Fails when the last checkpoint could not be written. */
int trainer_release(struct trainer *trainer, struct failure *failure);

/* Messages of a run, trainer_report.c: facts for stepscope, progress for people. */
void trainer_describe(const struct trainer *trainer);
void trainer_report_step(struct trainer *trainer, const struct stamp *stamp);
void trainer_report_validation(const struct trainer *trainer, double loss);

#endif
