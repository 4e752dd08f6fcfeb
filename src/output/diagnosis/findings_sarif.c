/* SPDX-License-Identifier: Apache-2.0
 *
 * findings_sarif.c: see the header.
 */
#include "output/diagnosis/findings_sarif.h"

#include "base/json_write.h"

#include <ctype.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

#define SCHEMA "https://json.schemastore.org/sarif-2.1.0.json"
#define PATH_BYTES 4096

struct sarif_place {
	char file[PATH_BYTES];
	int64_t line;
};

static const char *findings_sarif_text_of(const struct table *table, int row, int column)
{
	const char *text = table_text(table, row, column);

	return text ? text : "";
}

static bool findings_sarif_set_place(struct sarif_place *place, const char *file, size_t length, int64_t line)
{
	if (!length || length >= sizeof(place->file))
		return false;
	memcpy(place->file, file, length);
	place->file[length] = '\0';
	place->line = line;
	return true;
}

/* Finds the file and line in "0: train.py(12): loop". The file name starts after the last ": " or ", ". */
static bool find_line(const char *text, struct sarif_place *place)
{
	const char *suffix = strstr(text, ".py(");
	const char *begin = suffix;
	char *end;
	long long line;

	if (!suffix)
		return false;
	line = strtoll(suffix + 4, &end, 10);
	while (begin > text && !(begin[-1] == ' ' && begin - 1 > text && strchr(":,", begin[-2])))
		begin--;
	return line > 0 && *end == ')' && findings_sarif_set_place(place, begin, (size_t)(suffix + 3 - begin), line);
}

/* Finds the first word of the command line that ends in ".py". */
static bool find_script(const char *command, struct sarif_place *place)
{
	for (const char *word = command ? command : ""; *word;) {
		size_t length = strcspn(word, " ");

		if (length > 3 && !memcmp(word + length - 3, ".py", 3))
			return findings_sarif_set_place(place, word, length, 1);
		word += length;
		word += strspn(word, " ");
	}
	return false;
}

/* Adds a path as a URI reference, with other bytes as %XX. A relative path belongs to the sources. */
static void add_artifact(struct json_writer *json, const char *path)
{
	struct buffer uri;

	buffer_init(&uri, (size_t)4 * PATH_BYTES);
	if (path[0] == '/')
		buffer_add_text(&uri, "file://");
	for (const char *at = strncmp(path, "./", 2) ? path : path + 2; *at; at++) {
		unsigned char byte = (unsigned char)*at;

		if (isalnum(byte) || strchr("/-._~", byte))
			buffer_add(&uri, at, 1);
		else
			buffer_printf(&uri, "%%%02X", byte);
	}
	json_key(json, "artifactLocation"), json_object_begin(json);
	json_key(json, "uri"), json_string(json, uri.data);
	if (path[0] != '/')
		json_key(json, "uriBaseId"), json_string(json, "%SRCROOT%");
	json_object_end(json);
	buffer_release(&uri);
}

static void add_location(struct json_writer *json, const char *where, const struct sarif_place *place)
{
	json_key(json, "locations"), json_array_begin(json), json_object_begin(json);
	json_key(json, "physicalLocation"), json_object_begin(json);
	add_artifact(json, place->file);
	json_key(json, "region"), json_object_begin(json);
	json_key(json, "startLine"), json_int(json, place->line);
	json_object_end(json), json_object_end(json);
	if (where[0]) {
		json_key(json, "logicalLocations"), json_array_begin(json), json_object_begin(json);
		json_key(json, "fullyQualifiedName"), json_string(json, where);
		json_object_end(json), json_array_end(json);
	}
	json_object_end(json), json_array_end(json);
}

static void add_message(struct json_writer *json, const char *key, const char *text)
{
	json_key(json, key), json_object_begin(json);
	json_key(json, "text"), json_string(json, text);
	json_object_end(json);
}

static void add_rules(struct json_writer *json, const struct rule_set *rules)
{
	json_key(json, "rules"), json_array_begin(json);
	for (int i = 0; i < rules->count; i++) {
		const struct rule *rule = &rules->rules[i];

		json_object_begin(json);
		json_key(json, "id"), json_string(json, rule->id);
		add_message(json, "shortDescription", rule->title);
		add_message(json, "help", rule->advice);
		json_key(json, "defaultConfiguration"), json_object_begin(json);
		json_key(json, "level"), json_string(json, rule->severity == RULE_PROBLEM ? "warning" : "note");
		json_object_end(json), json_object_end(json);
	}
	json_array_end(json);
}

static void findings_sarif_add_number(struct json_writer *json, const struct table *findings, int row, int column)
{
	double value;

	json_key(json, findings->columns[column].name);
	if (table_number(findings, row, column, &value))
		json_double(json, value);
	else
		json_null(json);
}

/* Adds the text that stays the same if the numbers change. */
static void add_fingerprint(struct json_writer *json, const char *rule, const char *where)
{
	struct buffer text;

	buffer_init(&text, 1 << 20);
	buffer_printf(&text, "%s:%s", rule, where);
	json_key(json, "partialFingerprints"), json_object_begin(json);
	json_key(json, "stepscope/v1"), json_string(json, text.data);
	json_object_end(json);
	buffer_release(&text);
}

static void add_result(struct json_writer *json, const struct table *findings, int row, const struct sarif_place *other)
{
	const char *rule = findings_sarif_text_of(findings, row, FINDING_RULE),
		   *where = findings_sarif_text_of(findings, row, FINDING_PLACE);
	struct sarif_place line;
	struct buffer text;

	buffer_init(&text, 1 << 20);
	buffer_printf(&text, "%s: %s. Try: %s", findings_sarif_text_of(findings, row, FINDING_TITLE),
	              findings_sarif_text_of(findings, row, FINDING_EVIDENCE),
	              findings_sarif_text_of(findings, row, FINDING_ADVICE));
	json_object_begin(json);
	json_key(json, "ruleId"), json_string(json, rule);
	json_key(json, "level");
	json_string(json,
	            !strcmp(findings_sarif_text_of(findings, row, FINDING_SEVERITY), "problem") ? "warning" : "note");
	add_message(json, "message", text.data);
	add_location(json, where, find_line(where, &line) ? &line : other);
	add_fingerprint(json, rule, where);
	json_key(json, "properties"), json_object_begin(json);
	findings_sarif_add_number(json, findings, row, FINDING_SAVING);
	findings_sarif_add_number(json, findings, row, FINDING_RATIO);
	findings_sarif_add_number(json, findings, row, FINDING_CONFIDENCE);
	json_key(json, findings->columns[FINDING_SAME].name);
	if (table_text(findings, row, FINDING_SAME))
		json_string(json, table_text(findings, row, FINDING_SAME));
	else
		json_null(json);
	json_object_end(json), json_object_end(json);
	buffer_release(&text);
}

void findings_sarif(struct buffer *out, const struct diagnosis *diagnosis, const struct rule_set *rules,
                    const char *input, const char *command)
{
	const struct table *findings = &diagnosis->findings;
	struct json_writer json;
	struct sarif_place other;

	if (!find_script(command, &other) && !findings_sarif_set_place(&other, input, strlen(input), 1))
		findings_sarif_set_place(&other, "trace", 5, 1);
	json_writer_init(&json, out, JSON_PRETTY);
	json_object_begin(&json);
	json_key(&json, "$schema"), json_string(&json, SCHEMA);
	json_key(&json, "version"), json_string(&json, "2.1.0");
	json_key(&json, "runs"), json_array_begin(&json), json_object_begin(&json);
	json_key(&json, "tool"), json_object_begin(&json);
	json_key(&json, "driver"), json_object_begin(&json);
	json_key(&json, "name"), json_string(&json, "stepscope");
	json_key(&json, "version"), json_string(&json, STEPSCOPE_VERSION);
	add_rules(&json, rules);
	json_object_end(&json), json_object_end(&json);
	json_key(&json, "columnKind"), json_string(&json, "unicodeCodePoints");
	json_key(&json, "results"), json_array_begin(&json);
	for (int row = 0; row < findings->row_count; row++)
		add_result(&json, findings, row, &other);
	json_array_end(&json);
	json_key(&json, "properties"), json_object_begin(&json);
	if (table_text(&diagnosis->verdict, 0, VERDICT_HEADLINE))
		json_key(&json, "headline"),
			json_string(&json, findings_sarif_text_of(&diagnosis->verdict, 0, VERDICT_HEADLINE));
	json_key(&json, "verdict"), json_string(&json, findings_sarif_text_of(&diagnosis->verdict, 0, VERDICT_VERDICT));
	json_key(&json, "sentence"),
		json_string(&json, findings_sarif_text_of(&diagnosis->verdict, 0, VERDICT_SENTENCE));
	json_object_end(&json);
	json_object_end(&json), json_array_end(&json), json_object_end(&json);
	buffer_add_text(out, "\n");
}
