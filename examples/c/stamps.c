/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps one stamp per step and writes them as JSON at the end. */
#include "stamps.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int stamps_init(struct stamps *stamps, long capacity, struct failure *failure)
{
	*stamps = (struct stamps){.capacity = capacity};
	stamps->stamps = calloc((size_t)capacity, sizeof(*stamps->stamps));
	if (stamps->stamps == NULL)
		return failure_memory(failure, (size_t)capacity * sizeof(*stamps->stamps));
	return 0;
}

void stamps_release(struct stamps *stamps)
{
	free(stamps->stamps);
	*stamps = (struct stamps){0};
}

struct stamp *stamps_next(struct stamps *stamps)
{
	return &stamps->stamps[stamps->count++];
}

/* JSON has no NaN. */
static void write_number(FILE *file, const char *name, double value)
{
	if (isfinite(value))
		fprintf(file, ", \"%s\": %.9g", name, value);
	else
		fprintf(file, ", \"%s\": null", name);
}

static void write_times(FILE *file, const struct stamp *s)
{
	fprintf(file,
	        "\"data_wait_ns\": %" PRId64 ", \"communication_ns\": %" PRId64 ", \"evaluation_ns\": %" PRId64
	        ", \"checkpoint_ns\": %" PRId64 ", \"tokens\": %" PRId64,
	        s->data_wait_ns, s->communication_ns, s->evaluation_ns, s->checkpoint_ns, s->tokens);
}

static void write_all(FILE *file, const struct stamps *stamps, int rank)
{
	struct stamp total = {0};
	int64_t step_ns = 0;
	fprintf(file, "{\"schema\": \"gpt.stamps/1\", \"rank\": %d, \"steps\": [", rank);
	for (long i = 0; i < stamps->count; i++) {
		const struct stamp *s = &stamps->stamps[i];
		fprintf(file, "%s\n  {\"step\": %ld, \"begin_ns\": %" PRId64 ", \"end_ns\": %" PRId64 ", ",
		        i > 0 ? "," : "", s->step, s->begin_ns, s->end_ns);
		write_times(file, s);
		write_number(file, "loss", s->loss);
		write_number(file, "gradient_norm", s->gradient_norm);
		fputc('}', file);
		step_ns += s->end_ns - s->begin_ns;
		total.data_wait_ns += s->data_wait_ns;
		total.communication_ns += s->communication_ns;
		total.evaluation_ns += s->evaluation_ns;
		total.checkpoint_ns += s->checkpoint_ns;
		total.tokens += s->tokens;
	}
	fprintf(file, "\n], \"totals\": {\"steps\": %ld, \"step_ns\": %" PRId64 ", ", stamps->count, step_ns);
	write_times(file, &total);
	fputs("}}\n", file);
}

int stamps_write(const struct stamps *stamps, const char *path, int rank, struct failure *failure)
{
	char name[4096];
	if (rank == 0)
		snprintf(name, sizeof(name), "%s", path);
	else
		snprintf(name, sizeof(name), "%s.%d", path, rank);
	FILE *file = fopen(name, "we");
	if (file == NULL)
		return failure_set(failure, "cannot create '%s': %s", name, strerror(errno));
	write_all(file, stamps, rank);
	int has_error = ferror(file);
	if (fclose(file) != 0 || has_error)
		return failure_set(failure, "cannot write '%s': %s", name, strerror(errno));
	return 0;
}
