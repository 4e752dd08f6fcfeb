/* SPDX-License-Identifier: Apache-2.0
 *
 * launch_config.c: see launch_config.h. A text is "name=value;name=value"; a value is one number, three with commas, or
 * a word. No function here trusts the text.
 */
#include "model/launch_config.h"

#include "base/memory.h"
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	enum launch_fact first;
	int count;
} number_names[] = {
	{"grid", LAUNCH_GRID_X, 3},
	{"block", LAUNCH_BLOCK_X, 3},
	{"registers", LAUNCH_REGISTERS, 1},
	{"shared_bytes", LAUNCH_SHARED_BYTES, 1},
	{"blocks_per_sm", LAUNCH_BLOCKS_PER_SM, 1},
	{"warps_per_sm", LAUNCH_WARPS_PER_SM, 1},
	{"occupancy", LAUNCH_OCCUPANCY, 1},
	{"queued_ns", LAUNCH_QUEUED, 1},
	{"bytes", LAUNCH_BYTES, 1},
	{"bytes_per_s", LAUNCH_BYTES_PER_SECOND, 1},
	{"graph", LAUNCH_GRAPH, 1},
	{"graph_node", LAUNCH_GRAPH_NODE, 1},
	{"in_count", LAUNCH_IN_COUNT, 1},
	{"out_count", LAUNCH_OUT_COUNT, 1},
	{LAUNCH_GROUP_RANKS_NAME, LAUNCH_GROUP_RANKS, 1},
};

static const char *const text_names[LAUNCH_TEXTS] = {
	[LAUNCH_COLLECTIVE] = "collective",
	[LAUNCH_DTYPE] = "dtype",
	[LAUNCH_GROUP] = "group",
	[LAUNCH_COPY_KIND] = "copy",
};

#define NAMES (sizeof(number_names) / sizeof(number_names[0]))

void launch_config_set(struct launch_config *config, enum launch_fact fact, double number)
{
	if (!isfinite(number) || number < 0)
		return;
	config->numbers[fact] = number;
	config->has_numbers |= 1u << fact;
}

void launch_config_set_text(struct launch_config *config, enum launch_text text, const char *value)
{
	char *out = config->texts[text];
	size_t length = 0;

	for (; value[length] && length < LAUNCH_TEXT_BYTES - 1; length++)
		out[length] = value[length] == ';' || (unsigned char)value[length] < ' ' ? '_' : value[length];
	out[length] = '\0';
	if (length)
		config->has_texts |= 1u << text;
}

bool launch_config_occupancy(const struct launch_config *config, double *ratio)
{
	*ratio = config->numbers[LAUNCH_OCCUPANCY];
	if (!launch_config_has(config, LAUNCH_OCCUPANCY) || *ratio > 1)
		return false;
	/* half a percent of the 64 warps that most multiprocessors hold; for those that hold 32, one percent */
	return *ratio > 0 ||
	       (launch_config_has(config, LAUNCH_WARPS_PER_SM) && config->numbers[LAUNCH_WARPS_PER_SM] < 0.64);
}

/* ---- to text ---- */

/* Writes the shortest text that reads back as the same number. */
static size_t put_number(char *out, size_t room, double number)
{
	int least = 7, most = 17; /* number of digits: more digits are never less exact */
	int length = snprintf(out, room, "%.6g", number);

	if (strtod(out, NULL) == number)
		return (size_t)length;
	while (least < most) {
		int digits = (least + most) / 2;

		snprintf(out, room, "%.*g", digits, number);
		if (strtod(out, NULL) == number)
			most = digits;
		else
			least = digits + 1;
	}
	return (size_t)snprintf(out, room, "%.*g", least, number);
}

size_t launch_config_write(const struct launch_config *config, char *out)
{
	size_t length = 0;

	for (size_t i = 0; i < NAMES; i++) {
		uint32_t all = ((1u << number_names[i].count) - 1) << number_names[i].first;

		if ((config->has_numbers & all) != all)
			continue;
		length += (size_t)snprintf(out + length, LAUNCH_CONFIG_BYTES - length, "%s%s=", length ? ";" : "",
		                           number_names[i].name);
		for (int part = 0; part < number_names[i].count; part++) {
			if (part)
				out[length++] = ',';
			length += put_number(out + length, LAUNCH_CONFIG_BYTES - length,
			                     config->numbers[(int)number_names[i].first + part]);
		}
	}
	for (int i = 0; i < LAUNCH_TEXTS; i++) {
		if (config->has_texts >> i & 1)
			length += (size_t)snprintf(out + length, LAUNCH_CONFIG_BYTES - length, "%s%s=%s",
			                           length ? ";" : "", text_names[i], config->texts[i]);
	}
	out[length] = '\0';
	return length;
}

/* ---- from text ---- */

static bool is_name(const char *text, size_t length, const char *name)
{
	return strlen(name) == length && !memcmp(text, name, length);
}

static void read_numbers(struct launch_config *config, const char *value, size_t row)
{
	double numbers[3];

	for (int part = 0; part < number_names[row].count; part++) {
		char *end;

		numbers[part] = strtod(value, &end);
		if (end == value || (part + 1 < number_names[row].count && *end != ','))
			return;
		value = end + 1;
	}
	for (int part = 0; part < number_names[row].count; part++)
		launch_config_set(config, number_names[row].first + (enum launch_fact)part, numbers[part]);
}

static void read_fact(struct launch_config *config, const char *name, size_t name_length, const char *value,
                      size_t length)
{
	char copy[128];

	if (length >= sizeof(copy))
		length = sizeof(copy) - 1;
	memcpy(copy, value, length);
	copy[length] = '\0';
	for (size_t i = 0; i < NAMES; i++) {
		if (is_name(name, name_length, number_names[i].name))
			read_numbers(config, copy, i);
	}
	for (int i = 0; i < LAUNCH_TEXTS; i++) {
		if (is_name(name, name_length, text_names[i]))
			launch_config_set_text(config, (enum launch_text)i, copy);
	}
}

bool launch_config_read(struct launch_config *config, const char *text)
{
	config->has_numbers = 0;
	config->has_texts = 0;
	while (*text) {
		size_t length = strcspn(text, ";");
		const char *equals = memchr(text, '=', length);

		if (equals)
			read_fact(config, text, (size_t)(equals - text), equals + 1,
			          length - (size_t)(equals + 1 - text));
		text += length;
		text += *text == ';';
	}
	return config->has_numbers || config->has_texts;
}

/* ---- cache ---- */

#define SLOTS 1024

struct launch_config_slot {
	uint32_t string; /* 0: empty */
	bool is_known;
	struct launch_config config;
};

const struct launch_config *launch_config_of(struct launch_configs *configs, const struct model *model, uint32_t string)
{
	struct launch_config_slot *slot;

	if (!string)
		return NULL;
	if (!configs->slots) {
		configs->slots = memory_resize(NULL, SLOTS, sizeof(*configs->slots));
		for (int i = 0; i < SLOTS; i++)
			configs->slots[i].string = 0;
	}
	slot = &configs->slots[string % SLOTS];
	if (slot->string != string) {
		slot->string = string;
		slot->is_known = launch_config_read(&slot->config, model_text(model, string));
	}
	return slot->is_known ? &slot->config : NULL;
}

void launch_configs_release(struct launch_configs *configs)
{
	free(configs->slots);
	configs->slots = NULL;
}
