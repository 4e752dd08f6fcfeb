/* SPDX-License-Identifier: Apache-2.0
 *
 * rule.c: reads the header of a rule. Whether its SELECT is right SQLite says when it is run.
 */
#include "diagnosis/rule.h"

#include "base/options.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rule_parser {
	struct rule *rule;
	struct arena *arena;
	const char *where;
	const char *at, *end;
	int line; /* of `at` */
	/* the entry that is being read */
	const char *key;
	const char *value;
	int key_line;
};

static enum status complain(const struct rule_parser *parser, int line, struct error *err, const char *what)
{
	return error_set(err, STATUS_INPUT, "rule '%s', line %d: %s", parser->where, line, what);
}

/* ---- values ---- */

static enum status set_text(const struct rule_parser *parser, const char **text, struct error *err)
{
	if (*text)
		return complain(parser, parser->key_line, err, "this key was there before");
	if (!parser->value[0])
		return complain(parser, parser->key_line, err, "this key has no value");
	*text = parser->value;
	return STATUS_OK;
}

static enum status set_severity(const struct rule_parser *parser, struct error *err)
{
	if (!strcmp(parser->value, "problem"))
		parser->rule->severity = RULE_PROBLEM;
	else if (!strcmp(parser->value, "hint"))
		parser->rule->severity = RULE_HINT;
	else
		return complain(parser, parser->key_line, err, "severity is 'problem' or 'hint'");
	return STATUS_OK;
}

static bool is_name(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	}
	return length && !isdigit((unsigned char)text[0]);
}

/* "share = 0.05 (source)" */
static enum status add_threshold(const struct rule_parser *parser, struct error *err)
{
	struct rule *rule = parser->rule;
	const char *value = parser->value;
	size_t name = strcspn(value, " =");
	const char *number = value + name + strspn(value + name, " ");
	const char *source;
	char *end;
	double parsed;

	if (rule->threshold_count == RULE_THRESHOLDS)
		return complain(parser, parser->key_line, err, "more than 16 thresholds");
	if (!is_name(value, name) || *number != '=')
		return complain(parser, parser->key_line, err, "a threshold is 'name = number (source)'");
	parsed = strtod(number + 1, &end);
	source = end + strspn(end, " ");
	if (end == number + 1 || !isfinite(parsed) || source[0] != '(' || source[strlen(source) - 1] != ')' ||
	    strlen(source) < 3)
		return complain(parser, parser->key_line, err, "a threshold is 'name = number (source)'");
	rule->thresholds[rule->threshold_count++] = (struct rule_threshold){
		.name = arena_dup_n(parser->arena, value, name),
		.value = parsed,
		.source = arena_dup_n(parser->arena, source + 1, strlen(source) - 2),
	};
	return STATUS_OK;
}

static enum status rule_unknown_key(const struct rule_parser *parser, struct error *err)
{
	static const char *const keys[] = {"id",       "title",       "severity",  "verdict", "headline", "needs",
	                                   "tells if", "cannot tell", "threshold", "advice",  "wrong",    NULL};
	const char *nearest = nearest_name(parser->key, keys);

	error_set(err, STATUS_INPUT, "rule '%s', line %d: unknown key '%s'", parser->where, parser->key_line,
	          parser->key);
	if (nearest)
		error_hint(err, "did you mean '%s'?", nearest);
	return STATUS_INPUT;
}

static enum status end_entry(struct rule_parser *parser, struct error *err)
{
	struct rule *rule = parser->rule;
	const struct {
		const char *key;
		const char **text;
	} texts[] = {{"id", &rule->id},
	             {"title", &rule->title},
	             {"verdict", &rule->verdict},
	             {"headline", &rule->headline},
	             {"needs", &rule->needs},
	             {"tells if", &rule->tells_if},
	             {"cannot tell", &rule->cannot_tell},
	             {"advice", &rule->advice},
	             {"wrong", &rule->wrong}};
	const char *key = parser->key;
	enum status status;

	if (!key)
		return STATUS_OK;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(key, texts[i].key) != 0)
			continue;
		parser->key = NULL;
		return set_text(parser, texts[i].text, err);
	}
	status = !strcmp(key, "severity")    ? set_severity(parser, err)
	         : !strcmp(key, "threshold") ? add_threshold(parser, err)
	                                     : rule_unknown_key(parser, err);
	parser->key = NULL;
	return status;
}

/* ---- lines ---- */

static const char *trimmed(struct arena *arena, const char *text, size_t length)
{
	while (length && isspace((unsigned char)text[0]))
		text++, length--;
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	return arena_dup_n(arena, text, length);
}

/* A comment of the header, without its "--". Two blanks in front: it goes on with the entry before. */
static enum status read_comment(struct rule_parser *parser, const char *text, size_t length, struct error *err)
{
	const char *colon = memchr(text, ':', length);
	bool is_more = length >= 2 && text[0] == ' ' && isspace((unsigned char)text[1]);
	enum status status;

	if (is_more && parser->key) {
		parser->value = arena_printf(parser->arena, "%s %s", parser->value,
		                             trimmed(parser->arena, text, length));
		return STATUS_OK;
	}
	status = end_entry(parser, err);
	if (status || !trimmed(parser->arena, text, length)[0] || !strncmp(text, " SPDX", length < 5 ? length : 5))
		return status;
	if (!colon)
		return complain(parser, parser->line, err, "a line of the header is '-- key: value'");
	parser->key = trimmed(parser->arena, text, (size_t)(colon - text));
	parser->value = trimmed(parser->arena, colon + 1, length - (size_t)(colon + 1 - text));
	parser->key_line = parser->line;
	return STATUS_OK;
}

/* Until the first line that is no comment. */
static enum status read_header(struct rule_parser *parser, struct error *err)
{
	while (parser->at < parser->end) {
		const char *newline = memchr(parser->at, '\n', (size_t)(parser->end - parser->at));
		const char *end = newline ? newline : parser->end;
		enum status status;

		if (end - parser->at < 2 || memcmp(parser->at, "--", 2) != 0)
			break;
		status = read_comment(parser, parser->at + 2, (size_t)(end - parser->at - 2), err);
		if (status)
			return status;
		parser->at = newline ? newline + 1 : parser->end;
		parser->line++;
	}
	return end_entry(parser, err);
}

static enum status check_rule(const struct rule_parser *parser, struct error *err)
{
	const struct rule *rule = parser->rule;
	const struct {
		const char *text;
		const char *complaint;
	} wanted[] = {{rule->id, "the header has no 'id'"},
	              {rule->title, "the header has no 'title'"},
	              {rule->needs, "the header has no 'needs'"},
	              {rule->advice, "the header has no 'advice'"},
	              {rule->wrong, "the header has no 'wrong'"},
	              {rule->tells_if && !rule->cannot_tell ? NULL : "", "'tells if' wants 'cannot tell'"},
	              {rule->cannot_tell && !rule->tells_if ? NULL : "", "'cannot tell' wants 'tells if'"},
	              {rule->sql[0] ? rule->sql : NULL, "there is no SELECT"}};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (!wanted[i].text)
			return complain(parser, parser->line, err, wanted[i].complaint);
	}
	if (!is_name(rule->id, strlen(rule->id)))
		return complain(parser, 1, err, "an id is letters, digits and '_'");
	return STATUS_OK;
}

enum status rule_parse(struct rule *rule, struct arena *arena, const char *text, size_t length, const char *where,
                       struct error *err)
{
	struct rule_parser parser = {
		.rule = rule, .arena = arena, .where = where, .at = text, .end = text + length, .line = 1};
	enum status status;

	memset(rule, 0, sizeof(*rule));
	rule->severity = RULE_PROBLEM;
	if (length > RULE_BYTES)
		return complain(&parser, 1, err, "larger than 64 KiB");
	if (memchr(text, '\0', length))
		return complain(&parser, 1, err, "not a text");
	if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		parser.at += 3; /* some editors begin a text so */
	status = read_header(&parser, err);
	if (status)
		return status;
	rule->sql = trimmed(arena, parser.at, (size_t)(parser.end - parser.at));
	return check_rule(&parser, err);
}

const char *rule_severity_name(enum rule_severity severity)
{
	return severity == RULE_PROBLEM ? "problem" : "hint";
}
