/* SPDX-License-Identifier: Apache-2.0
 *
 * folded.c: the importer of collapsed stacks, "frame;frame;frame 12" per line, outermost first. This is the input of
 * flamegraph.pl, written by py-spy (raw), austin, stackcollapse-*.pl, torch.profiler's export_stacks() and our own
 * exporter. The file does not state the unit of the number. It is known only for the form of export_stacks():
 * microseconds.
 */
#include "importers/importer.h"
#include "importers/stacks/stack_profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_LINES 200          /* examined to recognise a file */
#define MOST_HEAD_LINES 1000000 /* as long as all of them are single frames: stacks may follow */
#define HEAD_BYTES (64u << 20)  /* limit for these lines */

struct folded_line {
	const char *text; /* the stack */
	size_t length;
	uint64_t weight;
	bool has_fraction; /* the weight had a fraction and was rounded */
};

static bool folded_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Takes the number at the end of the text, and the blanks before it. */
static bool take_number(const char *text, size_t *length, struct folded_line *line)
{
	char digits[32];
	size_t end = *length, begin;
	while (end && folded_is_blank(text[end - 1]))
		end--;
	for (begin = end; begin && (text[begin - 1] == '.' || (text[begin - 1] >= '0' && text[begin - 1] <= '9'));)
		begin--;
	if (begin == end || end - begin >= sizeof digits || !begin || !folded_is_blank(text[begin - 1]) ||
	    text[begin] == '.')
		return false;
	memcpy(digits, text + begin, end - begin);
	digits[end - begin] = '\0';
	char *rest;
	line->weight = strtoull(digits, &rest, 10);
	line->has_fraction = strspn(rest, ".0") < strlen(rest);
	line->weight += line->has_fraction && rest[1] >= '5' && line->weight < INT64_MAX;
	if (strchr(*rest ? rest + 1 : "", '.'))
		return false;
	for (*length = begin; *length && folded_is_blank(text[*length - 1]);)
		--*length;
	return true;
}

static bool take_apart(const char *text, size_t length, struct folded_line *line)
{
	*line = (struct folded_line){.text = text, .length = length};
	return take_number(text, &line->length, line) &&
	       line->weight <= INT64_MAX; /* py-spy also writes empty stacks */
}

static bool is_comment(const char *line, size_t length)
{
	return length == 0 || line[0] == '#';
}

/* ---- recognition ---- */

static bool folded_is_text(const char *line, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)line[i] < ' ' && line[i] != '\t')
			return false;
	return true;
}

static bool is_named_folded(const char *path)
{
	static const char *const suffixes[] = {".folded", ".collapsed"};
	const char *name = file_name_of(path);
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		const char *at = strstr(name, suffixes[i]), *rest = at ? at + strlen(suffixes[i]) : "-";
		if (!*rest || strcmp(rest, ".gz") == 0 || strcmp(rest, ".zst") == 0)
			return true;
	}
	return false;
}

struct first_lines {
	unsigned good, bad, with_callers;
};

static bool wants_more(const struct first_lines *first)
{
	return first->good + first->bad < (first->bad || first->with_callers ? HEAD_LINES : MOST_HEAD_LINES);
}

static void folded_look_at(struct first_lines *first, const char *text, size_t length)
{
	struct folded_line line;
	if (is_comment(text, length))
		return;
	bool is_good = take_apart(text, length, &line) && folded_is_text(line.text, line.length);
	first->good += is_good;
	first->bad += !is_good;
	first->with_callers += is_good && memchr(line.text, ';', line.length);
}

/* Returns true if at least a quarter of the first lines are stacks of two or more frames with a number after them. If
 * all lines have a number, one such stack is enough, or a file name that says so. */
static bool are_stacks(const struct first_lines *first, bool is_named)
{
	if (!first->bad)
		return first->with_callers || (first->good && is_named);
	return 4 * first->with_callers >= first->good + first->bad && first->with_callers > 0;
}

static bool folded_recognises(const char *path, bool is_directory, const char *head, size_t length)
{
	struct text_lines lines = {0};
	struct first_lines first = {0};
	struct error ignored;
	if (is_directory || length == 0 || text_lines_open(&lines, path, &ignored) != STATUS_OK)
		return false;
	lines.most_bytes = HEAD_BYTES;
	while (wants_more(&first) && text_lines_next(&lines)) {
		if (!lines.is_terminated && lines.offset + lines.length >= HEAD_BYTES)
			break; /* cut by most_bytes */
		folded_look_at(&first, lines.line, lines.length);
	}
	text_lines_close(&lines);
	return are_stacks(&first, is_named_folded(path));
}

/* Examines the lines that are complete in the head. */
static bool file_begins(const char *name, const char *head, size_t length)
{
	struct first_lines first = {0};
	const char *at = head, *end = head + length, *stop;
	while (wants_more(&first) && at < end) {
		stop = memchr(at, '\n', (size_t)(end - at));
		if (!stop && length >= INPUT_LONG_HEAD_BYTES)
			break;
		stop = stop ? stop : end;
		folded_look_at(&first, at, (size_t)(stop - at) - (stop > at && stop[-1] == '\r'));
		at = stop + 1;
	}
	return are_stacks(&first, is_named_folded(name));
}

/* ---- process and thread of a stack ---- */

struct folded_state {
	struct stack_profile profile;
	struct text_lines lines;
	bool is_torch;        /* frames have the form of export_stacks() */
	bool is_differential; /* two numbers per line, as difffolded.pl writes them */
	struct repair_count unreadable, fractions, cut, nameless;
	uint64_t stacks;
};

static const char *frame_end(const char *at, const char *end)
{
	const char *semicolon = memchr(at, ';', (size_t)(end - at));
	return semicolon ? semicolon : end;
}

static bool folded_begins(const char *at, const char *end, const char *text)
{
	size_t length = strlen(text);
	return (size_t)(end - at) > length && memcmp(at, text, length) == 0;
}

/* Reads the number after a word, decimal or with 0x. *behind: the first byte after it. */
static bool read_id(const char *at, const char *end, int64_t *id, const char **behind)
{
	char digits[24] = "", *rest;
	size_t length = (size_t)(end - at) < sizeof digits - 1 ? (size_t)(end - at) : sizeof digits - 1;
	memcpy(digits, at, length);
	if (digits[0] < '0' || digits[0] > '9')
		return false;
	errno = 0;
	*id = strtoll(digits, &rest, 0);
	*behind = at + (rest - digits);
	return errno == 0;
}

struct folded_place {
	uint32_t process, thread, name; /* strings; 0: the file does not state it */
	int64_t pid, tid;
};

/* Takes a process or thread: `process 12:"python train.py"`, "thread (12): loader" of py-spy; "P12", "T0:34" of austin;
 * "process_12" of our own exporter. */
static bool take_place(struct folded_state *folded, const char *at, const char *end, struct folded_place *place)
{
	const char *behind;
	struct stack_profile *profile = &folded->profile;
	if (!place->process && !place->thread &&
	    ((folded_begins(at, end, "process ") && read_id(at + 8, end, &place->pid, &behind)) ||
	     (folded_begins(at, end, "process_") && read_id(at + 8, end, &place->pid, &behind) && behind == end) ||
	     (folded_begins(at, end, "P") && read_id(at + 1, end, &place->pid, &behind) && behind == end))) {
		bool has_name = end - behind > 3 && behind[0] == ':' && behind[1] == '"';
		place->process = has_name ? stack_profile_text(profile, behind + 2, (size_t)(end - behind - 3))
		                          : stack_profile_text(profile, at, (size_t)(end - at));
		return true;
	}
	if (place->thread)
		return false;
	if (folded_begins(at, end, "thread (") && read_id(at + 8, end, &place->tid, &behind) && *behind == ')') {
		bool has_name = end - behind > 3 && behind[1] == ':';
		place->thread = stack_profile_text(profile, at, (size_t)(behind + 1 - at));
		place->name = has_name ? stack_profile_text(profile, behind + 3, (size_t)(end - behind - 3)) : 0;
		return true;
	}
	if (place->process && folded_begins(at, end, "T") && read_id(at + 1, end, &place->tid, &behind) &&
	    (behind == end || (*behind == ':' && read_id(behind + 1, end, &place->tid, &behind) && behind == end))) {
		place->thread = stack_profile_text(profile, at, (size_t)(end - at));
		return true;
	}
	return false;
}

static uint32_t folded_track_of(struct folded_state *folded, const struct folded_place *place)
{
	struct stack_profile *profile = &folded->profile;
	uint32_t process = stack_profile_process(profile, place->process, place->pid);
	uint32_t thread = place->thread ? place->thread : intern_add(&profile->model->strings, "all threads");
	uint32_t track = stack_profile_track(profile, process, thread, place->tid);
	if (place->name && track != MODEL_NONE) /* the thread may have had no name when it was first seen */
		profile->model->tracks[track]->name = place->name;
	return track;
}

/* ---- lines ---- */

/* Returns the stack of the line, and its track in *track. */
static uint32_t read_stack(struct folded_state *folded, const struct folded_line *line, uint32_t *track)
{
	struct stack_profile *profile = &folded->profile;
	struct folded_place place = {0};
	const char *at = line->text, *end = at + line->length, *next;
	uint32_t stack = 0, depth = 0;
	for (; at < end; at = next + 1) {
		next = frame_end(at, end);
		if (depth == 0 && take_place(folded, at, next, &place))
			continue;
		if (!stack_profile_has_room(profile, depth)) {
			stack = stack_profile_cut(profile, stack);
			break;
		}
		uint32_t name = stack_profile_text(profile, at, (size_t)(next - at));
		if (name) {
			stack = stack_frame(profile->model, &profile->frames, stack, name);
			depth++;
		} else if (line->length) {
			repair_note(&folded->nameless, folded->lines.offset);
		}
	}
	*track = folded_track_of(folded, &place);
	return stack;
}

/* If lines have two numbers, the second one is used. */
static void drop_first_number(struct folded_state *folded, struct folded_line *line)
{
	struct folded_line first;
	size_t length = line->length;
	bool has_two = take_number(line->text, &length, &first) && length;
	if (folded->stacks == 0)
		folded->is_differential = has_two;
	if (has_two && folded->is_differential)
		line->length = length;
}

/* Returns true if a frame has the form that only torch.profiler writes, "train.py(12):_main". */
static bool is_of_torch(const char *text, size_t length)
{
	const char *end = text + length, *at = text;
	while ((at = memmem(at, (size_t)(end - at), "):_", 3)) && (at == text || at[-1] < '0' || at[-1] > '9'))
		at++;
	return at != NULL;
}

static void read_line(struct folded_state *folded)
{
	const struct text_lines *lines = &folded->lines;
	struct folded_line line;
	if (is_comment(lines->line, lines->length))
		return;
	if (!take_apart(lines->line, lines->length, &line)) {
		repair_note(lines->is_terminated ? &folded->unreadable : &folded->cut, lines->offset);
		return;
	}
	drop_first_number(folded, &line);
	folded->is_torch = folded->is_torch || is_of_torch(line.text, line.length);
	if (line.has_fraction)
		repair_note(&folded->fractions, lines->offset);
	struct sample sample = {.weight = line.weight};
	sample.stack = read_stack(folded, &line, &sample.track);
	stack_profile_add(&folded->profile, &sample);
	folded->stacks++;
}

static void folded_finish(struct folded_state *folded, uint32_t first_sample)
{
	struct model *model = folded->profile.model;
	const char *path = folded->profile.path;
	uint32_t measure = intern_add(&model->strings, folded->is_torch ? "time" : "samples");
	for (uint32_t i = first_sample; i < model->samples_count; i++) {
		struct sample *sample = &model->samples[i];
		sample->name = measure;
		if (folded->is_torch && __builtin_mul_overflow(sample->weight, 1000, &sample->weight))
			sample->weight = UINT64_MAX;
	}
	repair_report(&folded->unreadable, model, path, "lines without a stack followed by a number were left out");
	repair_report(&folded->cut, model, path, "the last line is cut off and was left out");
	repair_report(&folded->nameless, model, path, "frames without a name were left out");
	text_lines_report(&folded->lines, model, path);
	if (folded->fractions.count)
		model_add_ledger(model, LEDGER_OTHER, MODEL_NONE, file_name_of(path), folded->fractions.count,
		                 "numbers with a fraction were rounded");
	if (folded->is_differential)
		model_add_ledger(model, LEDGER_OTHER, MODEL_NONE, file_name_of(path), folded->stacks,
		                 "lines have two numbers, as written by difffolded.pl: the second is shown");
	stack_profile_finish(&folded->profile, "folded",
	                     folded->is_torch
	                             ? "assumed microseconds, as written by export_stacks() of torch.profiler; the "
	                               "file has no unit"
	                             : "unknown, mostly samples: the file has no unit");
}

static enum status folded_load_input(struct input_stream *input, const char *path, const struct model_filter *filter,
                                     struct model *model, struct error *err)
{
	struct folded_state folded = {0};
	uint32_t first_sample = model->samples_count;
	enum status status = text_lines_begin(&folded.lines, input, err);
	if (status != STATUS_OK)
		return status;
	stack_profile_init(&folded.profile, model, path);
	while (text_lines_next(&folded.lines))
		read_line(&folded);
	if (folded.stacks == 0)
		status = error_set(err, STATUS_INPUT, "'%s' has no readable stacks", path);
	else
		folded_finish(&folded, first_sample);
	stack_profile_release(&folded.profile);
	text_lines_close(&folded.lines);
	return status;
}

const struct importer importer_folded = {
	.name = "folded",
	.kind = "a stack profile (collapsed)",
	.looked_for = "stacks of a sampler",
	.recognises = folded_recognises,
	.begins = file_begins,
	.load_input = folded_load_input,
	.is_rank = true,
	.reasons = stack_profile_reasons,
};
