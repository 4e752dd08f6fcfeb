/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: tables of options and faults, and a parser that knows only what the tables say. */
#include "settings.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum option_kind {
	OPTION_NUMBER,
	OPTION_RATE,
	OPTION_TEXT,
	OPTION_PATHS,
	OPTION_FAULT,
	OPTION_FLAG
};

struct option {
	const char *name, *word, *help;
	enum option_kind kind;
	size_t offset;
	long least, most;
};

#define AT(member) offsetof(struct settings, member)

/* clang-format off */
static const struct option options[] = {
	{ "steps", "N", "optimizer steps (80)", OPTION_NUMBER, AT(steps), 1, 100000000 },
	{ "layers", "N", "layers of the model (4)", OPTION_NUMBER, AT(layers), 1, 256 },
	{ "dim", "N", "width of the model (128)", OPTION_NUMBER, AT(width), 1, 16384 },
	{ "heads", "N", "attention heads, must divide --dim (4)", OPTION_NUMBER, AT(heads), 1, 1024 },
	{ "context", "N", "tokens per sequence (128)", OPTION_NUMBER, AT(context), 1, 65536 },
	{ "batch", "N", "sequences per micro-batch (8)", OPTION_NUMBER, AT(rows), 1, 65536 },
	{ "micro-batch", "N", "the same as --batch", OPTION_NUMBER, AT(rows), 1, 65536 },
	{ "accumulate", "N", "micro-batches per step (2)", OPTION_NUMBER, AT(accumulate), 1, 65536 },
	{ "lr", "RATE", "largest learning rate (0.003)", OPTION_RATE, AT(learning_rate), 0, 0 },
	{ "seed", "N", "seed of weights and batches (1)", OPTION_NUMBER, AT(seed), 0, LONG_MAX },
	{ "data", "PATH...", "text files or folders of *.txt (the text beside the sources)", OPTION_PATHS, 0, 0, 0 },
	{ "out", "DIR", "folder for checkpoints (none: no checkpoints)", OPTION_TEXT, AT(out), 0, 0 },
	{ "resume", "FILE", "go on from a checkpoint", OPTION_TEXT, AT(resume), 0, 0 },
	{ "evaluate-every", "N", "validate every N steps, 0 is never (20)", OPTION_NUMBER, AT(evaluate_every), 0, LONG_MAX },
	{ "checkpoint-every", "N", "save every N steps, 0 is never (25)", OPTION_NUMBER, AT(checkpoint_every), 0, LONG_MAX },
	{ "workers", "N", "threads that share the attention heads (1)", OPTION_NUMBER, AT(workers), 1, 256 },
	{ "threads", "N", "threads inside OpenBLAS (1)", OPTION_NUMBER, AT(blas_threads), 1, 256 },
	{ "loader-threads", "N", "threads that read and tokenize text (1)", OPTION_NUMBER, AT(loader_threads), 1, 64 },
	{ "queue", "N", "micro-batches prepared ahead (4)", OPTION_NUMBER, AT(queue), 1, 4096 },
	{ "ranks", "N", "data parallel processes (1)", OPTION_NUMBER, AT(ranks), 1, 64 },
	{ "stamps", "FILE", "write our own times per step as JSON", OPTION_TEXT, AT(stamps), 0, 0 },
	{ "fault", "NAME=VALUES", "cause a fault, see below; may be given several times", OPTION_FAULT, 0, 0, 0 },
	{ "quiet", NULL, "print nothing but errors", OPTION_FLAG, AT(quiet), 0, 0 },
	{ "help", NULL, "print this", OPTION_FLAG, AT(help), 0, 0 },
};

struct fault {
	const char *name, *word, *help;
	size_t first, second; /* where the values go; second is 0 when there is one value */
	long least;           /* of the first value */
};

static const struct fault faults[] = {
	{ "slow-loader", "MS", "every batch takes MS longer to load", AT(faults.slow_loader_ms), 0, 1 },
	{ "slow-loader-every", "K,MS", "every K-th batch takes MS longer to load", AT(faults.slow_loader_every), AT(faults.slow_loader_ms), 1 },
	{ "slow-loader-rank", "RANK,MS", "every batch of one of the --ranks takes MS longer to load", AT(faults.slow_loader_rank), AT(faults.slow_loader_ms), 0 },
	{ "sync-checkpoint", "K", "every K steps, wait until a checkpoint is on disk", AT(faults.sync_checkpoint_every), 0, 1 },
	{ "leak", "KB", "lose KB kilobytes in every step", AT(faults.leak_kb), 0, 1 },
	{ "slow-thread", "MS", "the last of the --workers loses MS in every step", AT(faults.slow_thread_ms), 0, 1 },
	{ "slow-step", "PERCENT", "every step takes PERCENT more CPU time, in its optimizer", AT(faults.slow_step_percent), 0, 1 },
	{ "nan", "STEP", "break a weight before step STEP", AT(faults.nan_step), 0, 0 },
	{ "straggler", "RANK,MS", "one of the --ranks computes MS longer in every step", AT(faults.straggler_rank), AT(faults.straggler_ms), 0 },
};
/* clang-format on */

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

void settings_print_help(FILE *out)
{
	fputs("Usage: gpt [options]\n\n"
	      "Trains a small GPT on text, on the CPU, and marks what it does for stepscope.\n\n"
	      "Options (defaults in parentheses):\n",
	      out);
	for (size_t i = 0; i < COUNT(options); i++) {
		const struct option *option = &options[i];
		char left[64];
		snprintf(left, sizeof(left), "--%s %s", option->name, option->word ? option->word : "");
		fprintf(out, "  %-24s %s\n", left, option->help);
	}
	fputs("\nFaults, for --fault:\n", out);
	for (size_t i = 0; i < COUNT(faults); i++) {
		char left[64];
		snprintf(left, sizeof(left), "%s=%s", faults[i].name, faults[i].word);
		fprintf(out, "  %-24s %s\n", left, faults[i].help);
	}
	fputs("\nExit code: 0 trained, 1 failed, 2 wrong command line.\n", out);
}

static void *member(struct settings *settings, size_t offset)
{
	return (char *)settings + offset;
}

/* A whole number up to `end`, which must follow it. */
static bool number_parse(const char *text, char end, long *value, const char **rest)
{
	char *stop;
	errno = 0;
	*value = strtol(text, &stop, 10);
	*rest = stop + 1;
	return stop != text && *stop == end && errno == 0;
}

static int number_set(struct settings *settings, const struct option *option, const char *text, struct failure *failure)
{
	const char *rest;
	long value;
	if (!number_parse(text, '\0', &value, &rest) || value < option->least || value > option->most)
		return failure_set(failure, "--%s '%s': expected a whole number from %ld to %ld", option->name, text,
		                   option->least, option->most);
	*(long *)member(settings, option->offset) = value;
	return 0;
}

static int rate_set(struct settings *settings, const struct option *option, const char *text, struct failure *failure)
{
	char *stop;
	double value = strtod(text, &stop);
	if (stop == text || *stop != '\0' || !(value > 0 && value <= 10))
		return failure_set(failure, "--%s '%s': expected a number above 0 and at most 10", option->name, text);
	*(double *)member(settings, option->offset) = value;
	return 0;
}

static int fault_values(struct settings *settings, const struct fault *fault, const char *text, struct failure *failure)
{
	const char *rest = text;
	long first = 0, second = 0;
	bool is_valid = number_parse(text, fault->second ? ',' : '\0', &first, &rest) && first >= fault->least;
	if (is_valid && fault->second)
		is_valid = number_parse(rest, '\0', &second, &rest) && second >= 1;
	if (!is_valid || first > 1000000000 || second > 1000000000)
		return failure_set(failure, "--fault %s='%s': expected %s=%s, whole numbers", fault->name, text,
		                   fault->name, fault->word);
	*(long *)member(settings, fault->first) = first;
	if (fault->second)
		*(long *)member(settings, fault->second) = second;
	return 0;
}

static int fault_set(struct settings *settings, const char *text, struct failure *failure)
{
	size_t length = strcspn(text, "=");
	for (size_t i = 0; i < COUNT(faults); i++) {
		const struct fault *fault = &faults[i];
		if (strlen(fault->name) != length || strncmp(fault->name, text, length) != 0)
			continue;
		if (text[length] != '=')
			return failure_set(failure, "--fault %s needs a value: %s=%s", text, text, fault->word);
		return fault_values(settings, fault, text + length + 1, failure);
	}
	return failure_set(failure, "unknown fault '%s'; --help lists them", text);
}

static int value_set(struct settings *settings, const struct option *option, char *text, struct failure *failure)
{
	switch (option->kind) {
	case OPTION_NUMBER:
		return number_set(settings, option, text, failure);
	case OPTION_RATE:
		return rate_set(settings, option, text, failure);
	case OPTION_PATHS:
		settings->data[settings->data_count++] = text;
		return 0;
	case OPTION_FAULT:
		return fault_set(settings, text, failure);
	case OPTION_TEXT:
		*(char **)member(settings, option->offset) = text;
		return 0;
	case OPTION_FLAG:
		break;
	}
	return failure_set(failure, "--%s takes no value", option->name);
}

static const struct option *option_find(const char *name, size_t length)
{
	for (size_t i = 0; i < COUNT(options); i++)
		if (strlen(options[i].name) == length && strncmp(options[i].name, name, length) == 0)
			return &options[i];
	return NULL;
}

/* Reads the option at arguments[*at] and its value, and moves *at behind them. */
static int option_read(struct settings *settings, int count, char **arguments, int *at, struct failure *failure)
{
	char *text = arguments[(*at)++];
	if (strcmp(text, "-h") == 0)
		text = "--help";
	size_t length = strcspn(text, "=");
	const struct option *option = strncmp(text, "--", 2) == 0 ? option_find(text + 2, length - 2) : NULL;
	if (option == NULL)
		return failure_set(failure, "unknown option '%.*s'; --help lists them", (int)length, text);
	if (text[length] == '=')
		return value_set(settings, option, text + length + 1, failure);
	if (option->kind == OPTION_FLAG) {
		*(bool *)member(settings, option->offset) = true;
		return 0;
	}
	if (*at == count)
		return failure_set(failure, "--%s needs a value: --%s %s", option->name, option->name, option->word);
	do {
		if (value_set(settings, option, arguments[(*at)++], failure) != 0)
			return -1;
	} while (option->kind == OPTION_PATHS && *at < count && arguments[*at][0] != '-');
	return 0;
}

/* What single options cannot know. */
static int settings_check(const struct settings *s, struct failure *failure)
{
	if (s->width % s->heads != 0)
		return failure_set(failure, "--heads %ld does not divide --dim %ld", s->heads, s->width);
	if (s->queue < s->loader_threads)
		return failure_set(failure, "--queue %ld is less than --loader-threads %ld", s->queue,
		                   s->loader_threads);
	if (s->faults.slow_thread_ms > 0 && s->workers < 2)
		return failure_set(failure, "--fault slow-thread needs --workers 2 or more");
	if (s->faults.sync_checkpoint_every > 0 && s->out == NULL)
		return failure_set(failure, "--fault sync-checkpoint needs --out DIR");
	if (s->faults.slow_loader_rank >= s->ranks)
		return failure_set(failure, "--fault slow-loader-rank=%ld: there is no such rank, see --ranks",
		                   s->faults.slow_loader_rank);
	if (s->faults.straggler_ms > 0 && s->faults.straggler_rank >= s->ranks)
		return failure_set(failure, "--fault straggler=%ld: there is no such rank, see --ranks",
		                   s->faults.straggler_rank);
	return 0;
}

int settings_parse(struct settings *settings, int count, char **arguments, struct failure *failure)
{
	*settings = (struct settings){
		.steps = 80,
		.layers = 4,
		.width = 128,
		.heads = 4,
		.context = 128,
		.rows = 8,
		.accumulate = 2,
		.learning_rate = 0.003,
		.seed = 1,
		.evaluate_every = 20,
		.checkpoint_every = 25,
		.workers = 1,
		.blas_threads = 1,
		.loader_threads = 1,
		.queue = 4,
		.ranks = 1,
		.faults = {.slow_loader_every = 1, .slow_loader_rank = -1, .nan_step = -1},
	};
	settings->data = calloc((size_t)count + 1, sizeof(*settings->data));
	if (settings->data == NULL)
		return failure_memory(failure, ((size_t)count + 1) * sizeof(*settings->data));
	for (int at = 1; at < count;)
		if (option_read(settings, count, arguments, &at, failure) != 0)
			return -1;
	return settings->help ? 0 : settings_check(settings, failure);
}

void settings_release(struct settings *settings)
{
	free(settings->data);
	settings->data = NULL;
}
