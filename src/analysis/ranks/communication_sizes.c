/* SPDX-License-Identifier: Apache-2.0
 *
 * communication_sizes.c: see communication_sizes.h.
 */
#include "analysis/ranks/communication_sizes.h"

#include "analysis/ranks/collective_calls.h"
#include "model/device_names.h"
#include "pytorch/names.h"

#include <stepscope/format.h>
#include <string.h>

static double bytes_of_dtype(const char *dtype)
{
	static const struct {
		const char *begin;
		double bytes;
	} list[] = {{"Float8", 1}, {"Float", 4}, {"BFloat16", 2}, {"Half", 2}, {"Double", 8}, {"Long", 8},
	            {"Int", 4},    {"Short", 2}, {"Byte", 1},     {"Char", 1}, {"Bool", 1},   {"ComplexFloat", 8}};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (!strncmp(dtype, list[i].begin, strlen(list[i].begin)))
			return list[i].bytes;
	return 0;
}

static void take_name(struct communication_size *size, const char *name)
{
	const char *collective = collective_of_name(name);

	if (collective && !size->collective[0])
		size->collective = collective;
}

/* Returns true if the ranks get more than each gives. For these nccl-tests count the result: the parts of all ranks. */
static bool is_sized_by_output(const char *collective)
{
	return !strcmp(collective, "allgather") || !strcmp(collective, "gather");
}

static void take_config(struct communication_size *size, const struct launch_config *config)
{
	const char *collective = launch_config_text(config, LAUNCH_COLLECTIVE);
	const char *dtype = launch_config_text(config, LAUNCH_DTYPE);
	double element = dtype ? bytes_of_dtype(dtype) : 0;
	enum launch_fact count = LAUNCH_IN_COUNT;

	if (collective)
		take_name(size, collective);
	if (dtype)
		memcpy(size->dtype, dtype, strlen(dtype) + 1);
	if (launch_config_has(config, LAUNCH_GROUP_RANKS) && config->numbers[LAUNCH_GROUP_RANKS] < 1e9)
		size->ranks = (uint32_t)config->numbers[LAUNCH_GROUP_RANKS];
	if (is_sized_by_output(size->collective))
		count = LAUNCH_OUT_COUNT;
	if (!launch_config_has(config, count) || element <= 0)
		return;
	size->has_bytes = true;
	size->bytes = config->numbers[count] * element;
}

/* ---- the operator's facts, in the form of a launch's ---- */

static void sizes_read_arg(struct launch_config *config, const struct model *model, const struct span_arg *arg)
{
	static const struct {
		const char *key;
		enum launch_fact fact;
	} numbers[] = {{"In msg nelems", LAUNCH_IN_COUNT},
	               {"Out msg nelems", LAUNCH_OUT_COUNT},
	               {PYTORCH_GROUP_SIZE, LAUNCH_GROUP_RANKS}};
	const char *key = model_text(model, arg->key);

	if (arg->type == STEPSCOPE_ARG_SYMBOL && !strcmp(key, "Collective name"))
		launch_config_set_text(config, LAUNCH_COLLECTIVE, model_text(model, arg->text));
	if (arg->type == STEPSCOPE_ARG_SYMBOL && !strcmp(key, "dtype"))
		launch_config_set_text(config, LAUNCH_DTYPE, model_text(model, arg->text));
	for (size_t i = 0; arg->type == STEPSCOPE_ARG_I64 && i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!strcmp(key, numbers[i].key))
			launch_config_set(config, numbers[i].fact, (double)arg->i64);
}

static void take_args(struct communication_size *size, const struct model *model, uint32_t track, uint32_t row)
{
	struct launch_config config = {0};

	for (uint32_t i = model_first_arg(model, track, row);
	     i < model->args_count && model->args[i].track == track && model->args[i].row == row; i++)
		sizes_read_arg(&config, model, &model->args[i]);
	if (config.has_texts >> LAUNCH_COLLECTIVE & 1)
		take_config(size, &config);
}

/* ---- spans around the launch ---- */

#define AROUND_LEVELS 16 /* the annotation is close, but there may be many frames of Python around it */

void communication_size_of_inputs(struct communication_size *size, const char *inputs)
{
	const char *reason;
	double bytes;

	if (size->has_bytes || !collective_bytes(inputs, &bytes, &reason))
		return;
	if (is_sized_by_output(size->collective))
		bytes *= size->ranks; /* 0 if they are unknown: then there are no bytes */
	size->has_bytes = bytes > 0;
	size->bytes = bytes;
}

static void take_around(struct communication_size *size, const struct model *model, const struct launch *launch)
{
	const struct track *track = model->tracks[launch->track];

	if (launch->operation != MODEL_NONE)
		take_args(size, model, launch->track, launch->operation);
	uint32_t row = launch->row;
	for (int level = 0; row != MODEL_NONE && row != launch->operation && level < AROUND_LEVELS; level++) {
		uint32_t i;
		const struct span_chunk *chunk = track_chunk(track, row, &i);
		const char *name = model_text(model, chunk->name[i]);

		if (!strncmp(name, "nccl:", 5) || !strncmp(name, "rccl:", 5)) {
			take_name(size, name + 5);
			if (span_inputs(chunk, i))
				communication_size_of_inputs(size, model_text(model, span_inputs(chunk, i)));
		}
		row = chunk->parent[i];
	}
}

void communication_size_find(struct communication_size *size, const struct model *model,
                             const struct launches *launches, struct launch_configs *configs, uint32_t track,
                             uint32_t row)
{
	const struct launch *launch = launches_of(launches, track, row);
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(model->tracks[track], row, &i);
	const struct launch_config *config = launch_config_of(configs, model, span_inputs(chunk, i));

	*size = (struct communication_size){.collective = ""};
	if (config)
		take_config(size, config);
	if (launch && launch->track != MODEL_NONE && !size->has_bytes)
		take_around(size, model, launch);
	take_name(size, model_text(model, chunk->name[i]));
}

double communication_bus_factor(const struct communication_size *size)
{
	static const char *const parts[] = {"allgather", "reducescatter", "alltoall", "gather", "scatter"};
	double ranks = size->ranks;

	if (!strcmp(size->collective, "allreduce"))
		return 2 * (ranks - 1) / ranks;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(size->collective, parts[i]))
			return (ranks - 1) / ranks; /* a rank's own part does not cross a link */
	return 1;
}
