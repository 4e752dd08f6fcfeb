/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c: parses a command line by an array of struct option and prints the array as help. Only the help uses
 * OPTION_GROUP.
 */
#include "base/options.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LONGEST_NAME 64
#define MAXIMUM_NAMES 256
#define SMALLEST_WIDTH 40
#define LABEL_LIMIT 30 /* a longer label gets its own line */

/* State of one parse. */
struct options_parser {
	const struct option *options;
	const char **argv;
	int argc;
	int next; /* next argument */
	struct options_result *result;
	struct error *err;
};

/* An option as the user wrote it, for messages, with its value. */
struct given {
	const struct option *option;
	char name[LONGEST_NAME + 8];
	const char *value; /* NULL: no value yet */
};

/* ---- values ---- */

static bool parse_int(const char *text, int64_t *number)
{
	char *end;
	long long value;

	if (!isdigit((unsigned char)text[0]) &&
	    !((text[0] == '-' || text[0] == '+') && isdigit((unsigned char)text[1])))
		return false;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (*end || errno)
		return false;
	*number = value;
	return true;
}

static bool parse_double(const char *text, double *number)
{
	char *end;
	double value;

	/* strtod also accepts blanks, hexadecimal, nan and inf */
	if (!text[0] || text[strspn(text, "0123456789+-.eE")])
		return false;
	value = strtod(text, &end);
	if (*end || end == text || !isfinite(value))
		return false;
	*number = value;
	return true;
}

/* Returns the power of 1024 of a suffix: k 1, M 2, ...; -1 if it is not a suffix. */
static int bytes_power(const char *suffix)
{
	static const char letters[] = "KMGTPE";
	const char *found;

	if (!suffix[0] || !strcmp(suffix, "B"))
		return 0;
	found = strchr(letters, toupper((unsigned char)suffix[0]));
	if (!found)
		return -1;
	if (suffix[1] && strcmp(suffix + 1, "iB") != 0 && strcmp(suffix + 1, "B") != 0 && strcmp(suffix + 1, "i") != 0)
		return -1;
	return (int)(found - letters) + 1;
}

bool parse_bytes(const char *text, int64_t *bytes)
{
	char digits[40];
	size_t length = strspn(text, "0123456789.");
	int64_t whole;
	double number;
	int power = bytes_power(text + length);

	if (power < 0 || !length || length >= sizeof(digits))
		return false;
	memcpy(digits, text, length);
	digits[length] = '\0';
	/* keeps whole numbers exact beyond the 53 bits of a double */
	if (parse_int(digits, &whole)) {
		if (whole > INT64_MAX >> (10 * power))
			return false;
		*bytes = whole << (10 * power);
		return true;
	}
	if (!parse_double(digits, &number) || number * ldexp(1, 10 * power) >= 0x1p63)
		return false;
	*bytes = (int64_t)round(number * ldexp(1, 10 * power));
	return true;
}

static enum status malformed(struct options_parser *parser, const struct given *given, const char *wanted)
{
	return error_set(parser->err, STATUS_USAGE, "option '%s' wants %s, got '%s'", given->name, wanted,
	                 given->value);
}

static enum status store_int(struct options_parser *parser, const struct given *given)
{
	double number;

	if (parse_int(given->value, given->option->value))
		return STATUS_OK;
	if (!parse_double(given->value, &number))
		return malformed(parser, given, "a number");
	return malformed(parser, given, fabs(number) >= 0x1p63 ? "a smaller number" : "a whole number");
}

static enum status store_list(struct options_parser *parser, const struct given *given)
{
	struct option_list *list = given->option->value;
	int limit = (int)(sizeof(list->items) / sizeof(list->items[0]));

	if (list->count >= limit)
		return error_set(parser->err, STATUS_USAGE, "option '%s' is given more than %d times", given->name,
		                 limit);
	list->items[list->count++] = given->value;
	return STATUS_OK;
}

static enum status options_store(struct options_parser *parser, const struct given *given)
{
	switch (given->option->type) {
	case OPTION_TYPE_TEXT:
		*(const char **)given->option->value = given->value;
		return STATUS_OK;
	case OPTION_TYPE_INT:
		return store_int(parser, given);
	case OPTION_TYPE_DOUBLE:
		return parse_double(given->value, given->option->value) ? STATUS_OK
		                                                        : malformed(parser, given, "a number");
	case OPTION_TYPE_BYTES:
		return parse_bytes(given->value, given->option->value) ? STATUS_OK
		                                                       : malformed(parser, given, "a size such as 64M");
	case OPTION_TYPE_LIST:
		return store_list(parser, given);
	default:
		assert(!"an option that takes a value");
		return STATUS_USAGE;
	}
}

/* ---- names ---- */

static bool is_named(const struct option *option)
{
	return option->type != OPTION_TYPE_GROUP;
}

static const struct option *find_name(const struct option *options, const char *name, size_t length)
{
	for (; options->type != OPTION_TYPE_END; options++) {
		if (is_named(options) && strlen(options->name) == length && !memcmp(options->name, name, length))
			return options;
	}
	return NULL;
}

static const struct option *find_letter(const struct option *options, char letter)
{
	for (; options->type != OPTION_TYPE_END; options++) {
		if (is_named(options) && options->letter && options->letter == letter)
			return options;
	}
	return NULL;
}

static size_t smallest(size_t a, size_t b, size_t c)
{
	size_t smaller = a < b ? a : b;

	return smaller < c ? smaller : c;
}

/* Returns the edit distance, counting two swapped neighbours as one mistake. Both are at most LONGEST_NAME long. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][LONGEST_NAME + 1];
	size_t b_length = strlen(b);

	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t *now = rows[i % 3];
		const size_t *before = rows[(i + 2) % 3];
		const size_t *earlier = rows[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			size_t change = before[j - 1] + (a[i - 1] != b[j - 1]);

			now[j] = smallest(before[j] + 1, now[j - 1] + 1, change);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = smallest(now[j], earlier[j - 2] + 1, now[j]);
		}
	}
	return rows[strlen(a) % 3][b_length];
}

const char *nearest_name(const char *word, const char *const *names)
{
	size_t length = strlen(word);
	size_t nearest = length < 3 ? 1 : length < 6 ? 2 : 3;
	const char *found = NULL;

	if (!length || length > LONGEST_NAME)
		return NULL;
	/* one more mistake than allowed, so that the first name within the limit wins */
	for (nearest++; *names; names++) {
		size_t mistakes;

		if (strlen(*names) > LONGEST_NAME)
			continue;
		mistakes = distance(word, *names);
		/* an abbreviation counts as one mistake; a name with all letters wrong is not similar */
		if (length >= 2 && mistakes > 1 && !strncmp(word, *names, length))
			mistakes = 1;
		if (mistakes < nearest && mistakes < length) {
			nearest = mistakes;
			found = *names;
		}
	}
	return found;
}

static enum status unknown(struct options_parser *parser, const char *name, size_t length)
{
	const char *names[MAXIMUM_NAMES + 1];
	char word[LONGEST_NAME + 1] = "";
	const char *nearest;
	int count = 0;

	for (const struct option *option = parser->options; option->type != OPTION_TYPE_END; option++) {
		if (is_named(option) && option->help && count < MAXIMUM_NAMES)
			names[count++] = option->name;
	}
	names[count] = NULL;
	error_set(parser->err, STATUS_USAGE, "unknown option '--%.*s'", (int)length, name);
	if (length < sizeof(word))
		memcpy(word, name, length);
	nearest = nearest_name(word, names);
	if (nearest)
		error_hint(parser->err, "did you mean '--%s'?", nearest);
	return STATUS_USAGE;
}

/* ---- arguments ---- */

/* Stores the value, which is part of the option or the next argument. */
static enum status take_value(struct options_parser *parser, struct given *given)
{
	if (!given->value) {
		/* "--" more likely means that the value was forgotten */
		if (parser->next >= parser->argc || !strcmp(parser->argv[parser->next], "--"))
			return error_set(parser->err, STATUS_USAGE, "option '%s' wants a value (%s)", given->name,
			                 given->option->argument ? given->option->argument : "text");
		given->value = parser->argv[parser->next++];
	}
	return options_store(parser, given);
}

static bool is_one_of(const char *word, const char *const *words)
{
	while (*words && strcasecmp(word, *words) != 0)
		words++;
	return *words != NULL;
}

static enum status superfluous(struct options_parser *parser, const struct given *given)
{
	return error_set(parser->err, STATUS_USAGE, "option '%s' takes no value, got '%s'", given->name, given->value);
}

/* Accepts "--flag", "--no-flag", and "--flag=false", which YAML and the environment use. */
static enum status set_flag(struct options_parser *parser, const struct given *given, bool is_no)
{
	static const char *const on[] = {"true", "yes", "on", "1", NULL};
	static const char *const off[] = {"false", "no", "off", "0", NULL};
	bool is_on = !given->value || is_one_of(given->value, on);

	if (given->value && is_no)
		return superfluous(parser, given);
	if (!is_on && !is_one_of(given->value, off))
		return malformed(parser, given, "true or false, or no value");
	*(bool *)given->option->value = is_on && !is_no;
	return STATUS_OK;
}

static enum status parse_long(struct options_parser *parser, const char *name)
{
	size_t length = strcspn(name, "=");
	struct given given = {.value = name[length] ? name + length + 1 : NULL};
	bool is_no = false;

	given.option = find_name(parser->options, name, length);
	if (!given.option && length > 3 && !strncmp(name, "no-", 3)) {
		given.option = find_name(parser->options, name + 3, length - 3);
		if (given.option && given.option->type != OPTION_TYPE_FLAG)
			given.option = NULL;
		is_no = true;
	}
	if (!given.option)
		return unknown(parser, name, length);
	snprintf(given.name, sizeof(given.name), "--%.*s", (int)length, name);
	return given.option->type == OPTION_TYPE_FLAG ? set_flag(parser, &given, is_no) : take_value(parser, &given);
}

static enum status parse_letter(struct options_parser *parser, const char *argument)
{
	struct given given = {.value = argument[2] ? argument + 2 : NULL};

	given.option = find_letter(parser->options, argument[1]);
	if (!given.option) {
		error_set(parser->err, STATUS_USAGE, "unknown option '%s'", argument);
		if (argument[2] && find_name(parser->options, argument + 1, strcspn(argument + 1, "=")))
			error_hint(parser->err, "did you mean '-%s'?", argument);
		return STATUS_USAGE;
	}
	snprintf(given.name, sizeof(given.name), "-%c", argument[1]);
	if (given.option->type == OPTION_TYPE_FLAG && given.value)
		return superfluous(parser, &given);
	return given.option->type == OPTION_TYPE_FLAG ? set_flag(parser, &given, false) : take_value(parser, &given);
}

static void add_operand(struct options_parser *parser, const char *argument)
{
	parser->argv[1 + parser->result->operand_count++] = argument;
}

static enum status parse_argument(struct options_parser *parser)
{
	const char *argument = parser->argv[parser->next++];
	struct options_result *result = parser->result;

	if (result->has_terminator || argument[0] != '-' || !argument[1]) {
		add_operand(parser, argument);
		return STATUS_OK;
	}
	if (!strcmp(argument, "--")) {
		result->has_terminator = true;
		result->before_terminator = result->operand_count;
		return STATUS_OK;
	}
	return argument[1] == '-' ? parse_long(parser, argument + 2) : parse_letter(parser, argument);
}

enum status options_parse(const struct option *options, int argc, const char **argv, struct options_result *result,
                          struct error *err)
{
	struct options_parser parser = {options, argv, argc, 1, result, err};

	*result = (struct options_result){.operands = argv + 1};
	while (parser.next < argc) {
		enum status status = parse_argument(&parser);

		if (status)
			return status;
	}
	if (!result->has_terminator)
		result->before_terminator = result->operand_count;
	/* operands were moved to the front: end them with NULL, as exec() requires */
	if (1 + result->operand_count < argc)
		argv[1 + result->operand_count] = NULL;
	return STATUS_OK;
}

/* ---- help ---- */

/* Writes "  -o, --out DIR" and returns its length. */
static int make_label(char *out, size_t size, const struct option *option)
{
	char letter[8] = "    ";

	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	return snprintf(out, size, "  %s--%s%s%s", letter, option->name, option->argument ? " " : "",
	                option->argument ? option->argument : "");
}

static int label_column(const struct option *options)
{
	char label[LONGEST_NAME * 2];
	int widest = 0;

	for (; options->type != OPTION_TYPE_END; options++) {
		int length;

		if (!is_named(options) || !options->help)
			continue;
		length = make_label(label, sizeof(label), options);
		if (length <= LABEL_LIMIT && length > widest)
			widest = length;
	}
	return widest + 2;
}

/* Prints text from `column` on; the cursor is already there for the first line. Keeps line breaks of the text. */
static void print_wrapped(FILE *out, const char *text, int column, int width)
{
	int at = column;

	while (*text) {
		int word = (int)strcspn(text, " \n");

		if (at > column && at + 1 + word > width) {
			fprintf(out, "\n%*s", column, "");
			at = column;
		}
		at += fprintf(out, "%s%.*s", at > column ? " " : "", word, text);
		text += word;
		if (*text == '\n') {
			fprintf(out, "\n%*s", column, "");
			at = column;
		}
		text += *text != '\0';
	}
	fputc('\n', out);
}

static void print_option(FILE *out, const struct option *option, int column, int width)
{
	char label[LONGEST_NAME * 2];
	int length = make_label(label, sizeof(label), option);

	fputs(label, out);
	if (length + 2 > column)
		fprintf(out, "\n%*s", column, "");
	else
		fprintf(out, "%*s", column - length, "");
	print_wrapped(out, option->help, column, width);
}

void options_help(const struct option *options, FILE *out, int width)
{
	int column = label_column(options);
	bool is_first = true;

	if (width < SMALLEST_WIDTH)
		width = SMALLEST_WIDTH;
	for (; options->type != OPTION_TYPE_END; options++) {
		if (options->type == OPTION_TYPE_GROUP)
			fprintf(out, "%s%s:\n", is_first ? "" : "\n", options->name);
		else if (options->help)
			print_option(out, options, column, width);
		is_first = false;
	}
}
