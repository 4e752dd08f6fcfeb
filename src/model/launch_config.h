/* SPDX-License-Identifier: Apache-2.0
 *
 * launch_config.h: what is known of the launch of a device's work, as one text in the column `inputs` of its span, so that launches
 * that are alike share one string. "grid=7,1,1;block=128,1,1;registers=32;shared_bytes=0;blocks_per_sm=0.05", or of a copy
 * "bytes=1024;bytes_per_s=4.2e9". What was not recorded is not in the text.
 *
 *     struct launch_config config = {0};
 *     launch_config_set(&config, LAUNCH_REGISTERS, 32);
 *     launch_config_set_text(&config, LAUNCH_COLLECTIVE, "allreduce");
 *     char text[LAUNCH_CONFIG_BYTES];
 *     model_span_set_inputs(model, track, row, intern_add_n(&model->strings, text, launch_config_write(&config, text)));
 *
 *     if (launch_config_read(&config, model_text(model, inputs)) && launch_config_has(&config, LAUNCH_BYTES))
 *             ...config.numbers[LAUNCH_BYTES]
 */
#ifndef MODEL_LAUNCH_CONFIG_H
#define MODEL_LAUNCH_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum launch_fact {
	LAUNCH_GRID_X, /* blocks; x, y and z come together */
	LAUNCH_GRID_Y,
	LAUNCH_GRID_Z,
	LAUNCH_BLOCK_X, /* threads */
	LAUNCH_BLOCK_Y,
	LAUNCH_BLOCK_Z,
	LAUNCH_REGISTERS,     /* per thread */
	LAUNCH_SHARED_BYTES,  /* per block */
	LAUNCH_BLOCKS_PER_SM, /* blocks of the grid over multiprocessors of the device */
	LAUNCH_WARPS_PER_SM,
	LAUNCH_OCCUPANCY, /* estimated, 1: all */
	LAUNCH_QUEUED,    /* ns in the queue, as the trace says it */
	LAUNCH_BYTES,     /* of a copy or a fill */
	LAUNCH_BYTES_PER_SECOND,
	LAUNCH_GRAPH,       /* number of the graph it is a part of */
	LAUNCH_GRAPH_NODE,  /* and its node */
	LAUNCH_IN_COUNT,    /* of a collective: elements this rank gives */
	LAUNCH_OUT_COUNT,   /* and gets */
	LAUNCH_GROUP_RANKS, /* size of its process group */
	LAUNCH_NUMBERS,
};

enum launch_text {
	LAUNCH_COLLECTIVE, /* "allreduce" */
	LAUNCH_DTYPE,      /* "Float" */
	LAUNCH_GROUP,      /* name of its process group */
	LAUNCH_COPY_KIND,  /* where a copy's name does not say it: "HtoD" */
	LAUNCH_TEXTS,
};

#define LAUNCH_GROUP_RANKS_NAME "group_ranks" /* in the text */
#define LAUNCH_TEXT_BYTES 64                  /* longer texts are cut */
#define LAUNCH_CONFIG_BYTES 1024              /* room for every text that launch_config_write() makes */

struct launch_config {
	uint32_t has_numbers, has_texts; /* bits by enum launch_fact, enum launch_text */
	double numbers[LAUNCH_NUMBERS];
	char texts[LAUNCH_TEXTS][LAUNCH_TEXT_BYTES];
};

static inline bool launch_config_has(const struct launch_config *config, enum launch_fact fact)
{
	return config->has_numbers >> fact & 1;
}

static inline const char *launch_config_text(const struct launch_config *config, enum launch_text text) /* NULL: none */
{
	return config->has_texts >> text & 1 ? config->texts[text] : NULL;
}

/* The estimated occupancy. PyTorch writes whole percents, and 0 also where it could not estimate one: 0 is believed only of launches with
 * so few warps that it rounds to 0. Above 1 it is none. */
bool launch_config_occupancy(const struct launch_config *config, double *ratio);

/* What is no finite number, or negative, is taken as not recorded. */
void launch_config_set(struct launch_config *config, enum launch_fact fact, double number);
/* Control characters and ';' become '_'; "" is none. */
void launch_config_set_text(struct launch_config *config, enum launch_text text, const char *value);

/* Terminates; returns the length, 0 when nothing is known. out: LAUNCH_CONFIG_BYTES. */
size_t launch_config_write(const struct launch_config *config, char *out);

/* Clears and fills it. False when the text is none of these: nothing is known then. Facts with other names are left out. */
bool launch_config_read(struct launch_config *config, const char *text);

/* What was read lately, by string: many launches share one text, and reading it takes longer than all else that is done with it.
 *
 *     struct launch_configs configs = {0};
 *     const struct launch_config *config = launch_config_of(&configs, model, inputs); // valid until the next call
 *     launch_configs_release(&configs);
 */
struct launch_configs {
	struct launch_config_slot *slots;
};

struct model;

/* NULL: nothing is known of it. */
const struct launch_config *launch_config_of(struct launch_configs *configs, const struct model *model,
                                             uint32_t string);
void launch_configs_release(struct launch_configs *configs);

#endif
