/* SPDX-License-Identifier: Apache-2.0
 *
 * speedscope.c: the importer of speedscope's own JSON, which py-spy, pyinstrument and many others write.
 */
#include "importers/stacks/speedscope.h"

#include "importers/importer.h"

#include <stdlib.h>
#include <string.h>

static const char *const sentences[SPEEDSCOPE_REPAIRS] = {
	[SPEEDSCOPE_CUT] = "the file is cut off; its complete part is read",
	[SPEEDSCOPE_JSON] = "the file is not JSON from here on; the part before is read",
	[SPEEDSCOPE_FRAME] = "frames without a name in the file, or with an invalid number",
	[SPEEDSCOPE_WEIGHT] = "samples with an unreadable or negative weight were left out",
	[SPEEDSCOPE_CLOSE] = ("closed frames that are not innermost; the frames inside them close too, or nothing "
                              "closes"),
	[SPEEDSCOPE_OPEN] = "frames that never close; they last until the end of their profile",
	[SPEEDSCOPE_BACK] = "events without a time, or earlier than the event before, get its time",
	[SPEEDSCOPE_LONG] = "texts of more than 4096 bytes were cut",
	[SPEEDSCOPE_BOTH] = "samples or weights of a profile that also has events were left out",
	[SPEEDSCOPE_LARGE] = "numbers above 2e18 (2e9 seconds) count as 2e18",
	[SPEEDSCOPE_SURPLUS] = "weights without a sample were left out",
};

/* Keeps the alphabetically first value of several files, because files come in any order. */
static void speedscope_add_fact(struct model *model, const char *key, const char *value)
{
	const char *known = model_meta(model, MODEL_NONE, key);
	if (!known || strcmp(value, known) < 0)
		model_add_meta(model, MODEL_NONE, key, value);
}

static void read_document(struct speedscope *scope)
{
	struct model *model = scope->profile.model;
	enum json_stream_token value;
	char key[32];
	if (speedscope_next(scope) != STREAM_OBJECT_BEGIN)
		return;
	while (speedscope_next_key(scope, key, sizeof key, &value)) {
		if (strcmp(key, "shared") == 0 && value == STREAM_OBJECT_BEGIN)
			speedscope_read_frames(scope);
		else if (strcmp(key, "profiles") == 0 && value == STREAM_ARRAY_BEGIN)
			while (speedscope_next_element(scope, &value)) {
				if (speedscope_is_begin(scope, value, STREAM_OBJECT_BEGIN))
					speedscope_read_profile(scope);
			}
		else if (strcmp(key, "name") == 0)
			speedscope_add_fact(model, "trace.name", model_text(model, speedscope_text(scope, value)));
		else if (strcmp(key, "exporter") == 0)
			speedscope_add_fact(model, "trace.exporter", model_text(model, speedscope_text(scope, value)));
		else
			json_stream_skip(&scope->json, value);
	}
}

static void speedscope_finish(struct speedscope *scope)
{
	struct model *model = scope->profile.model;
	const struct json_stream *json = &scope->json;
	if (json->error.status != STATUS_OK)
		repair_note(&scope->repairs[json->is_unterminated ? SPEEDSCOPE_CUT : SPEEDSCOPE_JSON],
		            json->window_offset + json->begin);
	speedscope_drop_threads(scope);
	speedscope_name_frames(scope);
	for (int i = 0; i < SPEEDSCOPE_REPAIRS; i++)
		repair_report(&scope->repairs[i], model, scope->profile.path, sentences[i]);
	if (scope->unknown_units)
		model_add_ledger(model, LEDGER_OTHER, MODEL_NONE, file_name_of(scope->profile.path),
		                 scope->unknown_units,
		                 "profiles have an unknown unit; each such unit is kept separate");
	stack_profile_finish(&scope->profile, "speedscope", NULL);
}

/* Skips a byte order mark, which is not JSON. */
static enum status pass_mark(struct input_stream *input, struct error *err)
{
	const char *head;
	char mark[3];
	size_t length;
	enum status status = input_peek(input, &head, &length, err);
	if (status != STATUS_OK || length < 3 || memcmp(head, "\xef\xbb\xbf", 3) != 0)
		return status;
	return input_read(input, mark, sizeof mark, &length, err);
}

static enum status speedscope_load_input(struct input_stream *input, const char *path,
                                         const struct model_filter *filter, struct model *model, struct error *err)
{
	struct speedscope scope = {0};
	enum status status = pass_mark(input, err);
	if (status == STATUS_OK)
		status = json_stream_init(&scope.json, input, err);
	if (status != STATUS_OK)
		return status;
	stack_profile_init(&scope.profile, model, path);
	scope.first_stack = model->stacks_count;
	scope.first_sample = model->samples_count;
	read_document(&scope);
	if (model->samples_count > scope.first_sample)
		speedscope_finish(&scope);
	else if (scope.json.error.status != STATUS_OK)
		status = error_set(err, STATUS_INPUT, "'%s' has no readable samples: %s", path, scope.json.error.text);
	else if (scope.repairs[SPEEDSCOPE_WEIGHT].count)
		status = error_set(err, STATUS_INPUT, "'%s' has no readable samples: %s", path,
		                   "no sample has a weight from 0 to 2e18");
	else if (scope.repairs[SPEEDSCOPE_LARGE].count)
		status = error_set(err, STATUS_INPUT, "'%s' has no readable samples: %s", path,
		                   "the times exceed 2e9 seconds");
	else
		status = error_set(err, STATUS_INPUT, "'%s' has no samples: its %u profiles are empty", path,
		                   scope.profile_count);
	number_map_release(&scope.stacks);
	number_map_release(&scope.threads);
	free(scope.depths);
	free(scope.frames);
	stack_profile_release(&scope.profile);
	json_stream_release(&scope.json);
	return status;
}

static size_t count_blanks(const char *text, size_t length)
{
	size_t blanks = 0;
	while (blanks < length && text[blanks] && strchr(" \t\r\n", text[blanks]))
		blanks++;
	return blanks;
}

bool speedscope_begins(const char *head, size_t length)
{
	static const char *const signs[] = {"speedscope.app/file-format", "\"exporter\":\"speedscope@",
	                                    "\"exporter\": \"speedscope@", "\"shared\":{\"frames\"",
	                                    "\"shared\": {\"frames\""};
	size_t at = length >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	at += count_blanks(head + at, length - at);
	bool is_found = false;
	for (size_t i = 0; at < length && head[at] == '{' && i < sizeof signs / sizeof *signs && !is_found; i++)
		is_found = memmem(head, length, signs[i], strlen(signs[i])) != NULL;
	return is_found;
}

/* Recognises speedscope's own keys near the start. A file without them is taken for a trace. */
static bool speedscope_recognises(const char *path, bool is_directory, const char *head, size_t length)
{
	struct input_stream *input;
	struct error ignored;
	bool is_found = false;
	if (is_directory || length == 0 || input_open(path, &input, &ignored) != STATUS_OK)
		return false;
	if (input_peek(input, &head, &length, &ignored) == STATUS_OK)
		is_found = speedscope_begins(head, length);
	input_close(input);
	return is_found;
}

static bool speedscope_takes(const char *name, const char *head, size_t length)
{
	return speedscope_begins(head, length < INPUT_HEAD_BYTES ? length : INPUT_HEAD_BYTES);
}

const struct importer importer_speedscope = {
	.name = "speedscope",
	.kind = "a stack profile (speedscope)",
	.recognises = speedscope_recognises,
	.begins = speedscope_takes,
	.load_input = speedscope_load_input,
	.is_rank = true,
	.reasons = stack_profile_reasons,
};
