/* SPDX-License-Identifier: Apache-2.0
 *
 * validate_chrome.c: reads Chrome trace JSON event by event and checks the rules about one event. It records events
 * for the rules of validate_pairs.c.
 */
#include "output/validate/validate_chrome.h"

#include "base/json_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEVEN_DAYS_NS (INT64_C(7) * 86400 * 1000000000)
#define MARKER_LIMIT_NS INT64_C(86400000000)
#define BIGGEST_TEXT ((uint64_t)512 * 1000 * 1000)

static const char *const event_keys[CHROME_EVENT_KEYS] = {"ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "s"};

static const struct {
	const char *name;
	enum json_type type; /* type that HTA's own type check expects */
} arg_rows[CHROME_ARG_KEYS] = {
	[CHROME_ARG_EXTERNAL_ID] = {"External id", TYPE_NUMBER},
	[CHROME_ARG_EV_IDX] = {"Ev Idx", TYPE_NUMBER},
	[CHROME_ARG_CORRELATION] = {"correlation", TYPE_NUMBER},
	[CHROME_ARG_STREAM] = {"stream", TYPE_NUMBER},
	[CHROME_ARG_DEVICE] = {"device", TYPE_NUMBER},
	[CHROME_ARG_SYNC_KIND] = {"cuda_sync_kind", TYPE_TEXT},
	[CHROME_ARG_WAIT_CORR] = {"wait_on_cuda_event_record_corr_id", TYPE_NUMBER},
	[CHROME_ARG_SEQUENCE] = {"Sequence number", TYPE_NUMBER},
	[CHROME_ARG_COLLECTIVE] = {"Collective name", TYPE_ABSENT},
	[CHROME_ARG_DTYPE] = {"dtype", TYPE_ABSENT},
	[CHROME_ARG_IN_NELEMS] = {"In msg nelems", TYPE_ABSENT},
	[CHROME_ARG_OUT_NELEMS] = {"Out msg nelems", TYPE_ABSENT},
	[CHROME_ARG_GROUP_SIZE] = {"Group size", TYPE_ABSENT},
	[CHROME_ARG_INPUT_DIMS] = {"Input Dims", TYPE_LIST},
	[CHROME_ARG_BYTES] = {"bytes", TYPE_NUMBER},
	[CHROME_ARG_PYTHON_PARENT] = {"Python parent id", TYPE_NUMBER},
};

/* ---- values ---- */

static enum json_type chrome_type_of(enum json_stream_token token)
{
	switch (token) {
	case STREAM_NUMBER:
		return TYPE_NUMBER;
	case STREAM_STRING:
		return TYPE_TEXT;
	case STREAM_NULL:
		return TYPE_NULL;
	case STREAM_BARE:
		return TYPE_BARE;
	case STREAM_ARRAY_BEGIN:
		return TYPE_LIST;
	case STREAM_OBJECT_BEGIN:
		return TYPE_OBJECT;
	default:
		return TYPE_BOOL;
	}
}

static void parse_integer(struct json_value *value)
{
	char *end;

	errno = 0;
	value->integer = strtoll(value->text, &end, 10);
	value->is_integer = errno == 0 && end != value->text && *end == '\0';
}

static void chrome_take(struct json_value *value, const struct json_stream *stream, enum json_stream_token token)
{
	size_t length = stream->length < sizeof(value->text) - 1 ? stream->length : sizeof(value->text) - 1;

	value->type = (uint8_t)chrome_type_of(token);
	memcpy(value->text, stream->text, length);
	value->text[length] = '\0';
	value->is_integer = false;
	if (value->type == TYPE_NUMBER || value->type == TYPE_TEXT)
		parse_integer(value);
}

/* Adds "" or "." and up to three decimals after whole microseconds. Returns false for anything else. */
static bool add_decimals(const char *at, bool is_negative, int64_t whole, int64_t *ns)
{
	int64_t rest = 0;
	int64_t unit = 100;

	if (*at == '.')
		for (at++; *at >= '0' && *at <= '9' && unit; at++, unit /= 10)
			rest += (*at - '0') * unit;
	*ns = whole * 1000 + (is_negative ? -rest : rest);
	return *at == '\0';
}

/* Parses microseconds with any decimals as nanoseconds; also from a string, as Perfetto does. */
static bool parse_us(const struct json_value *value, int64_t *ns)
{
	char *dot, *end;
	double us;
	int64_t whole;

	if (value->type != TYPE_NUMBER && value->type != TYPE_TEXT)
		return false;
	errno = 0;
	whole = strtoll(value->text, &dot, 10);
	if (dot != value->text && errno == 0 && whole < INT64_MAX / 1000 && whole > INT64_MIN / 1000 &&
	    add_decimals(dot, value->text[0] == '-', whole, ns))
		return true;
	us = strtod(value->text, &end); /* an exponent, or more decimals than nanoseconds have */
	if (end == value->text || *end || !(fabs(us) <= 9e15))
		return false;
	*ns = llround(us * 1000);
	return true;
}

/* Checks the rules about any text. */
static void check_text(struct chrome_check *check, const struct json_stream *stream, enum json_stream_token token)
{
	if (stream->has_control)
		validate_count(check->validation, VALIDATE_P1, stream->offset, NULL);
	if (stream->has_unicode_escape)
		validate_count(check->validation, VALIDATE_P1n, stream->offset, NULL);
	if (token == STREAM_BARE)
		validate_count(check->validation, VALIDATE_T12, stream->offset, stream->text);
}

static enum json_stream_token next(struct chrome_check *check, struct json_stream *stream)
{
	enum json_stream_token token = json_stream_next(stream);

	if (token == STREAM_KEY || token == STREAM_STRING || token == STREAM_BARE)
		check_text(check, stream, token);
	return token;
}

/* Reads a value to its end, so that its texts are checked. */
static bool pass(struct chrome_check *check, struct json_stream *stream, enum json_stream_token token)
{
	int depth = stream->depth - 1;

	if (token == STREAM_ERROR)
		return false;
	if (token != STREAM_OBJECT_BEGIN && token != STREAM_ARRAY_BEGIN)
		return true;
	while (stream->depth > depth)
		if (next(check, stream) == STREAM_ERROR)
			return false;
	return true;
}

/* ---- rules about one event ---- */

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

bool check_is_device_category(const char *cat)
{
	static const char *const words[] = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset", NULL};

	return is_one_of(cat, words);
}

bool check_is_launch_category(const char *cat)
{
	static const char *const words[] = {"cuda_runtime", "cuda_driver", "Runtime", "runtime", NULL};

	return is_one_of(cat, words);
}

static bool is_operation(const char *cat)
{
	static const char *const words[] = {"cpu_op",          "Operator",        "operator",
	                                    "user_annotation", "python_function", NULL};

	return is_one_of(cat, words) || check_is_launch_category(cat);
}

static void broken(struct chrome_check *check, enum validate_rule rule, const struct chrome_event *event)
{
	validate_count(check->validation, rule, event->offset, event->name);
}

static void check_times(struct chrome_check *check, struct chrome_event *event)
{
	bool is_kernel = check_is_device_category(event->cat);

	event->has_ts = parse_us(&event->keys[KEY_TS], &event->ts_ns);
	event->has_dur = parse_us(&event->keys[KEY_DUR], &event->dur_ns);
	if (event->phase != 'M' && !event->has_ts)
		broken(check, VALIDATE_P2, event);
	if (event->phase != 'X')
		return;
	if (event->has_ts && (!event->has_dur || event->dur_ns < 0))
		broken(check, VALIDATE_P2, event);
	if (event->keys[KEY_DUR].type == TYPE_ABSENT && (is_kernel || is_operation(event->cat)))
		broken(check, VALIDATE_T5, event);
	if (event->has_dur && event->dur_ns > SEVEN_DAYS_NS)
		broken(check, VALIDATE_H10, event);
}

static void check_device(struct chrome_check *check, const struct chrome_event *event)
{
	const struct json_value *stream = &event->args[CHROME_ARG_STREAM];
	bool is_device = check_is_device_category(event->cat);

	if (!is_device) {
		if (stream->type != TYPE_ABSENT && is_operation(event->cat) &&
		    !(stream->is_integer && stream->integer < 0))
			broken(check, VALIDATE_H5c, event);
		return;
	}
	if (event->args[CHROME_ARG_DEVICE].type == TYPE_ABSENT && strcasecmp(event->cat, "kernel") == 0)
		broken(check, VALIDATE_T4, event);
	if (!stream->is_integer || stream->integer < 0)
		broken(check, VALIDATE_H5, event);
	else if (stream->integer == 0)
		broken(check, VALIDATE_H5z, event);
}

static void check_args(struct chrome_check *check, const struct chrome_event *event)
{
	for (int i = 0; i < CHROME_ARG_KEYS; i++) {
		const struct json_value *value = &event->args[i];
		bool is_number = arg_rows[i].type == TYPE_NUMBER;

		if (value->type == TYPE_ABSENT || arg_rows[i].type == TYPE_ABSENT)
			continue;
		if (value->type == TYPE_NULL)
			validate_count(check->validation, VALIDATE_H9n, event->offset, arg_rows[i].name);
		else if (value->type != arg_rows[i].type || (is_number && !value->is_integer))
			validate_count(check->validation, VALIDATE_H9, event->offset, arg_rows[i].name);
	}
}

/* Returns true for a text that Python's int() accepts: blanks, a sign, digits. */
static bool is_integer(const char *text)
{
	size_t digits;

	text += strspn(text, " ");
	text += *text == '-' || *text == '+';
	digits = strspn(text, "0123456789");
	return digits && text[digits + strspn(text + digits, " ")] == '\0';
}

static void check_step(struct chrome_check *check, const struct chrome_event *event)
{
	const char *number = event->name + strlen("ProfilerStep");

	if (strncmp(event->name, "ProfilerStep", strlen("ProfilerStep")) != 0)
		return;
	check->has_step = true;
	number += strspn(number, " ");
	if (*number == '#' && !is_integer(number + 1))
		broken(check, VALIDATE_T7, event);
}

static void check_markers(struct chrome_check *check, const struct chrome_event *event)
{
	if (strcmp(event->name, "Record Window End") == 0) {
		check->end_marker.is_found = true;
		check->end_marker.offset = event->offset;
		check->end_marker.ns = event->ts_ns;
	} else if (strncmp(event->name, "Iteration Start:", 16) == 0) {
		check->start_marker.is_found = true;
		check->start_marker.offset = event->offset;
		check->start_marker.ns = event->ts_ns;
	}
}

static void check_event(struct chrome_check *check, struct chrome_event *event)
{
	const struct json_value *keys = event->keys;

	check->has_phase |= keys[KEY_PH].type == TYPE_TEXT;
	event->phase = keys[KEY_PH].type == TYPE_TEXT ? keys[KEY_PH].text[0] : '\0';
	event->cat = keys[KEY_CAT].type == TYPE_TEXT ? keys[KEY_CAT].text : "";
	event->name = keys[KEY_NAME].type == TYPE_TEXT ? keys[KEY_NAME].text : "";
	check->validation->events++;
	check->validation->spans += event->phase == 'X';
	check->validation->flows += event->phase == 'f';
	if (keys[KEY_NAME].type == TYPE_ABSENT) {
		check->last_nameless = event->offset;
		broken(check, VALIDATE_T2, event); /* removed at the end if the file has the markers */
	}
	if (event->phase == 'X' && keys[KEY_CAT].type != TYPE_TEXT)
		broken(check, VALIDATE_T1, event);
	if (is_operation(event->cat) && event->phase == 'X' && !keys[KEY_TID].is_integer)
		broken(check, VALIDATE_T3, event);
	if (strcmp(event->cat, "fwdbwd") == 0 && (keys[KEY_ID].type == TYPE_ABSENT || keys[KEY_TS].type == TYPE_ABSENT))
		broken(check, VALIDATE_T6, event);
	if (event->args_type == TYPE_NULL)
		broken(check, VALIDATE_T8, event);
	if (event->phase == 'C' && event->has_bad_counter)
		broken(check, VALIDATE_P6, event);
	if (event->phase == 'i' && keys[KEY_TID].type == TYPE_ABSENT &&
	    (keys[KEY_S].type == TYPE_ABSENT || keys[KEY_S].text[0] == 't'))
		broken(check, VALIDATE_P7, event);
	if ((event->phase == 's' || event->phase == 'f') && keys[KEY_ID].type == TYPE_TEXT)
		broken(check, VALIDATE_P5, event);
	check_times(check, event);
	if (event->phase == 'X') {
		check_device(check, event);
		check_args(check, event);
		check_step(check, event);
	}
	check_markers(check, event);
	check_remember(check, event);
}

/* ---- reading ---- */

static int find_key(const struct json_stream *stream)
{
	for (int i = 0; i < CHROME_EVENT_KEYS; i++)
		if (strcmp(stream->text, event_keys[i]) == 0)
			return i;
	return -1;
}

static int find_arg(const struct json_stream *stream)
{
	for (int i = 0; i < CHROME_ARG_KEYS; i++)
		if (strcmp(stream->text, arg_rows[i].name) == 0)
			return i;
	return -1;
}

static bool read_args(struct chrome_check *check, struct json_stream *stream, struct chrome_event *event)
{
	for (;;) {
		enum json_stream_token token = next(check, stream);
		int key;

		if (token == STREAM_OBJECT_END)
			return true;
		if (token != STREAM_KEY)
			return false;
		key = find_arg(stream);
		token = next(check, stream);
		if (key >= 0)
			chrome_take(&event->args[key], stream, token);
		if (token != STREAM_NUMBER &&
		    !(token == STREAM_STRING && strspn(stream->text, "+-.0123456789eE") == stream->length))
			event->has_bad_counter = true;
		if (!pass(check, stream, token))
			return false;
	}
}

/* Resets the event after its "{". Clears only the start of each text, because clearing the whole struct chrome_event
 * would take most of the time. */
static void clear_event(struct chrome_event *event, uint64_t offset)
{
	event->offset = offset;
	event->args_type = TYPE_ABSENT;
	event->has_bad_counter = event->has_ts = event->has_dur = false;
	event->ts_ns = event->dur_ns = 0;
	for (int i = 0; i < CHROME_EVENT_KEYS; i++) {
		event->keys[i].type = TYPE_ABSENT;
		event->keys[i].is_integer = false;
		event->keys[i].text[0] = '\0';
	}
	for (int i = 0; i < CHROME_ARG_KEYS; i++) {
		event->args[i].type = TYPE_ABSENT;
		event->args[i].is_integer = false;
		event->args[i].text[0] = '\0';
	}
}

static bool chrome_read_event(struct chrome_check *check, struct json_stream *stream, struct chrome_event *event)
{
	clear_event(event, stream->offset);
	for (;;) {
		enum json_stream_token token = next(check, stream);
		bool is_args;
		int key;

		if (token == STREAM_OBJECT_END)
			break;
		if (token != STREAM_KEY)
			return false;
		is_args = strcmp(stream->text, "args") == 0;
		key = find_key(stream);
		token = next(check, stream);
		if (key >= 0)
			chrome_take(&event->keys[key], stream, token);
		if (is_args)
			event->args_type = (uint8_t)chrome_type_of(token);
		if (is_args && token == STREAM_OBJECT_BEGIN ? !read_args(check, stream, event)
		                                            : !pass(check, stream, token))
			return false;
	}
	check_event(check, event);
	return true;
}

/* Reads the events after "[". */
static bool chrome_read_events(struct chrome_check *check, struct json_stream *stream)
{
	struct chrome_event event;

	for (;;) {
		enum json_stream_token token = next(check, stream);

		if (token == STREAM_ARRAY_END)
			return true;
		check->has_other |= token != STREAM_OBJECT_BEGIN;
		if (token == STREAM_OBJECT_BEGIN ? !chrome_read_event(check, stream, &event)
		                                 : !pass(check, stream, token))
			return false;
	}
}

/* HTA uses the first match of `"rank":\s+(\d+)` in the file, wherever it is. */
static bool read_distributed(struct chrome_check *check, struct json_stream *stream)
{
	for (;;) {
		enum json_stream_token token = next(check, stream);
		uint64_t colon = stream->colon_offset;
		bool is_rank;

		if (token == STREAM_OBJECT_END)
			return true;
		if (token != STREAM_KEY)
			return false;
		is_rank = strcmp(stream->text, "rank") == 0;
		token = next(check, stream);
		if (is_rank && token == STREAM_NUMBER) {
			check->has_rank = true;
			if (stream->offset == colon + 1)
				validate_count(check->validation, VALIDATE_H2, stream->offset, stream->text);
		}
		if (!pass(check, stream, token))
			return false;
	}
}

static bool read_metadata(struct chrome_check *check, struct json_stream *stream, bool is_after_events)
{
	bool is_distributed = strcmp(stream->text, "distributedInfo") == 0;
	bool is_unit = strcmp(stream->text, "displayTimeUnit") == 0;
	enum json_stream_token token = next(check, stream);

	if (is_unit && (token != STREAM_STRING || (strcmp(stream->text, "ms") != 0 && strcmp(stream->text, "ns") != 0)))
		validate_count(check->validation, VALIDATE_C1, stream->offset, stream->text);
	if (is_distributed && token == STREAM_OBJECT_BEGIN && !is_after_events)
		return read_distributed(check, stream);
	return pass(check, stream, token);
}

static bool chrome_read_object(struct chrome_check *check, struct json_stream *stream)
{
	for (;;) {
		enum json_stream_token token = next(check, stream);

		if (token == STREAM_OBJECT_END)
			return true;
		if (token != STREAM_KEY)
			return false;
		if (strcmp(stream->text, "traceEvents") != 0) {
			if (!read_metadata(check, stream, check->has_events))
				return false;
			continue;
		}
		check->has_events = true;
		token = next(check, stream);
		if (token == STREAM_ARRAY_BEGIN ? !chrome_read_events(check, stream) : !pass(check, stream, token))
			return false;
	}
}

/* Returns true for an array of events without its "]", even after a comma. Viewers accept it. */
static bool is_open_array(const struct json_stream *stream)
{
	return stream->is_unterminated && stream->depth == 1 && !stream->is_object[0];
}

/* Fails for other JSON. An object without events, or a list of other things, would break no rule. */
static enum status check_is_trace(const struct chrome_check *check, struct error *err)
{
	struct validation *validation = check->validation;
	const char *problem = NULL;

	if (strcmp(validation->form, "array") != 0 && !check->has_events)
		problem = "the object has no \"traceEvents\"";
	else if (!check->has_phase && (check->has_other || validation->events))
		problem = "nothing in its list has a \"ph\"";
	if (!problem)
		return STATUS_OK;
	validation->form = NULL;
	return error_set(err, STATUS_INPUT, "%s", problem);
}

static enum status chrome_read_file(struct chrome_check *check, struct json_stream *stream, struct error *err)
{
	enum json_stream_token token = next(check, stream);
	struct validation *validation = check->validation;
	bool is_read;

	validation->form = token == STREAM_ARRAY_BEGIN ? "array" : "object";
	if (token == STREAM_ARRAY_BEGIN) {
		validate_count(validation, VALIDATE_T9, stream->offset, NULL);
		is_read = chrome_read_events(check, stream);
	} else {
		is_read = token == STREAM_OBJECT_BEGIN && chrome_read_object(check, stream);
	}
	if (is_read)
		is_read = next(check, stream) == STREAM_END;
	validation->bytes = stream->window_offset + stream->begin;
	if (is_read)
		return check_is_trace(check, err);
	if (is_open_array(stream)) {
		validate_count(validation, VALIDATE_C3, validation->bytes, NULL);
		return check_is_trace(check, err);
	}
	*err = stream->error;
	return err->status;
}

static void check_whole(struct chrome_check *check)
{
	struct validation *validation = check->validation;
	bool has_both = check->start_marker.is_found && check->end_marker.is_found;
	uint64_t tail = check->start_marker.offset < check->end_marker.offset ? check->start_marker.offset
	                                                                      : check->end_marker.offset;

	if (has_both &&
	    check->last_nameless < tail) /* the plugin walks back from the end and stops at the markers first */
		validation->findings[VALIDATE_T2] = (struct validate_finding){0};
	if (has_both && check->end_marker.ns - check->start_marker.ns > MARKER_LIMIT_NS)
		validate_count(validation, VALIDATE_T13, check->end_marker.offset, NULL);
	if (!check->has_step)
		validate_count(validation, VALIDATE_T10, 0, NULL);
	if (!check->has_rank)
		validate_count(validation, VALIDATE_H2n, 0, NULL);
	if (validation->bytes > BIGGEST_TEXT)
		validate_count(validation, VALIDATE_C2, BIGGEST_TEXT, NULL);
}

enum status validate_chrome(struct input_stream *input, struct validation *validation, struct error *err)
{
	struct chrome_check check = {.validation = validation};
	struct json_stream stream;
	enum status status = json_stream_init(&stream, input, err);

	if (status != STATUS_OK)
		return status;
	status = chrome_read_file(&check, &stream, err);
	if (status == STATUS_OK)
		check_whole(&check);
	check_pairs(&check);
	check_pairs_release(&check);
	json_stream_release(&stream);
	return status;
}
