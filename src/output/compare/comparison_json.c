/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_json.c: see the header. The verdict is an object, every other table is an array of rows.
 */
#include "output/compare/comparison_json.h"

#include "output/text/json.h"

/* Adds the result that the exit status reports, and its reason. */
static void add_gate(struct json_writer *json, const struct gate *gate)
{
	json_key(json, "gate"), json_object_begin(json);
	json_key(json, "result"), json_string(json, gate_result_name(gate->result));
	json_key(json, "message"), json_string(json, gate->sentence);
	json_object_end(json);
}

/* Adds the part of the difference that no cut explains, or null and the reason. */
static void add_unexplained(struct json_writer *json, const struct comparison_cuts *cuts)
{
	json_key(json, "unexplained_ns");
	cuts->reason ? json_null(json) : json_double(json, cuts->unexplained_ns);
	json_key(json, "unexplained_reason");
	cuts->reason ? json_string(json, cuts->reason) : json_null(json);
}

void comparison_json(struct buffer *out, const struct comparison *comparison, const struct gate *gate)
{
	const struct table *const tables[] = {
		&comparison->metrics,       &gate->limits,       &comparison->differences, &comparison->explained_by,
		&comparison->contributions, &comparison->memory, &comparison->functions,   &comparison->telemetry,
		&comparison->runs};
	struct json_writer json;

	json_writer_init(&json, out, JSON_PRETTY);
	json_object_begin(&json);
	json_key(&json, "schema"), json_string(&json, "stepscope.compare/1");
	json_key(&json, "verdict"), json_row(&json, &comparison->verdict, 0);
	add_gate(&json, gate);
	add_unexplained(&json, &comparison->cuts);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		json_key(&json, tables[i]->name), json_rows(&json, tables[i]);
	json_object_end(&json);
	buffer_add_text(out, "\n");
}
