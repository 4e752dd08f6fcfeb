/* SPDX-License-Identifier: Apache-2.0 */
/* gpt: trains a small GPT on the CPU. Parses the command line, starts the ranks, prints errors; the training is
 * in trainer.c. */
#include "settings.h"
#include "trainer.h"

#include <stdio.h>
#include <stepscope/stepscope.h>

static void complain(const struct ranks *ranks, const struct failure *failure)
{
	if (ranks->size > 1 && ranks->children == NULL)
		fprintf(stderr, "gpt: rank %d: %s\n", ranks->rank, failure->text);
	else
		fprintf(stderr, "gpt: %s\n", failure->text);
}

static int train(const struct settings *settings, struct ranks *ranks, struct failure *failure)
{
	struct trainer trainer;
	/* Nothing of stepscope runs before the ranks are forked, so each of them records itself. */
	if (stepscope_init(NULL) != 0)
		fprintf(stderr, "gpt: not recording: %s\n", stepscope_error());
	openblas_set_num_threads((int)settings->blas_threads);
	int status = trainer_init(&trainer, settings, ranks, failure);
	if (status == 0)
		status = trainer_run(&trainer, failure);
	if (trainer_release(&trainer, failure) != 0)
		status = -1;
	return status;
}

static int launch(const struct settings *settings, struct failure *failure)
{
	struct ranks ranks;
	int role = ranks_start(&ranks, (int)settings->ranks, failure);
	int status = role;
	if (role == RANKS_RANK)
		status = train(settings, &ranks, failure);
	else if (role == RANKS_LAUNCHER)
		status = ranks_wait(&ranks, failure);
	if (status != 0)
		complain(&ranks, failure);
	ranks_release(&ranks);
	return status == 0 ? 0 : 1;
}

int main(int count, char **arguments)
{
	struct settings settings;
	struct failure failure = {0};
	int code = 2;
	if (settings_parse(&settings, count, arguments, &failure) != 0) {
		fprintf(stderr, "gpt: %s\n", failure.text);
	} else if (settings.help) {
		settings_print_help(stdout);
		code = 0;
	} else {
		code = launch(&settings, &failure);
	}
	settings_release(&settings);
	if (fflush(stdout) != 0 && code == 0) {
		fprintf(stderr, "gpt: cannot write to standard output\n");
		code = 1;
	}
	return code;
}
