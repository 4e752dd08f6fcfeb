/* SPDX-License-Identifier: Apache-2.0
 *
 * launch_config.h: the facts known of a launch of device work, as one text in the column `inputs` of the span. Equal
 * launches share one string. Example: "grid=7,1,1;block=128,1,1;registers=32;shared_bytes=0;blocks_per_sm=0.05", or for
 * a copy "bytes=1024;bytes_per_s=4.2e9". The text has no entry for a fact that was not recorded.
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
	LAUNCH_BLOCKS_PER_SM, /* blocks of the grid divided by the device's multiprocessors */
	LAUNCH_WARPS_PER_SM,
	LAUNCH_OCCUPANCY, /* estimated; 1 is full */
	LAUNCH_QUEUED,    /* ns in the queue, as the trace says */
	LAUNCH_BYTES,     /* of a copy or a fill */
	LAUNCH_BYTES_PER_SECOND,
	LAUNCH_GRAPH,       /* number of the graph that it is part of */
	LAUNCH_GRAPH_NODE,  /* its node in the graph */
	LAUNCH_IN_COUNT,    /* of a collective: elements sent by this rank */
	LAUNCH_OUT_COUNT,   /* elements received by it */
	LAUNCH_GROUP_RANKS, /* size of its process group */
	LAUNCH_NUMBERS,
};

enum launch_text {
	LAUNCH_COLLECTIVE, /* "allreduce" */
	LAUNCH_DTYPE,      /* "Float" */
	LAUNCH_GROUP,      /* name of its process group */
	LAUNCH_COPY_KIND,  /* only if a copy's name does not contain it: "HtoD" */
	LAUNCH_TEXTS,
};

#define LAUNCH_GROUP_RANKS_NAME "group_ranks" /* in the text */
#define LAUNCH_TEXT_BYTES 64                  /* longer texts are cut */
#define LAUNCH_CONFIG_BYTES 1024              /* enough for every text that launch_config_write() makes */

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

/* Returns the estimated occupancy, or false if it is unknown. PyTorch writes whole percents, and also writes 0 if it
 * could not estimate one. So 0 is believed only for launches with so few warps that it rounds to 0. A value above 1 is
 * unknown. */
bool launch_config_occupancy(const struct launch_config *config, double *ratio);

/* Ignores a number that is negative or not finite. */
void launch_config_set(struct launch_config *config, enum launch_fact fact, double number);
/* Replaces control characters and ';' by '_'. Ignores an empty text. */
void launch_config_set_text(struct launch_config *config, enum launch_text text, const char *value);

/* Writes a terminated text and returns its length, which is 0 if nothing is known. `out` has LAUNCH_CONFIG_BYTES. */
size_t launch_config_write(const struct launch_config *config, char *out);

/* Clears and fills the config. Returns false if the text holds no known fact. Ignores facts with other names. */
bool launch_config_read(struct launch_config *config, const char *text);

/* A cache of texts already read, by string. Many launches share one text, and parsing it costs more than using it.
 *
 *     struct launch_configs configs = {0};
 *     const struct launch_config *config = launch_config_of(&configs, model, inputs); // valid until the next call
 *     launch_configs_release(&configs);
 */
struct launch_configs {
	struct launch_config_slot *slots;
};

struct model;

/* Returns NULL if nothing is known of the launch. */
const struct launch_config *launch_config_of(struct launch_configs *configs, const struct model *model,
                                             uint32_t string);
void launch_configs_release(struct launch_configs *configs);

#endif
