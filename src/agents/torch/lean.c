/* SPDX-License-Identifier: Apache-2.0
 *
 * lean.c: see lean.h. Keeps the wanted parts, and the result of each.
 */
#include "agents/torch/lean.h"

#include "agents/torch/lean_engine.h"
#include "agents/torch/lean_object.h"
#include "agents/torch/lean_record.h"
#include "agents/torch/lean_tls.h"
#include "agents/torch/process.h"

#include <stdio.h>
#include <string.h>

enum lean_part {
	TLS,
	ENGINE,
	OBJECT,
	PARTS
};

static const char *const part_names[PARTS] = {[TLS] = "tls", [ENGINE] = "engine", [OBJECT] = "object"};
static const double cost_shares[PARTS] = {[TLS] = 0.85, [ENGINE] = 0.78, [OBJECT] = 0.83};

static struct {
	bool is_wanted[PARTS], is_done;
	double cost_share;
	char text[600], problems[500];
} lean = {.cost_share = 1, .text = "none"};

static bool names_part(const char *parts, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = parts; (at = strstr(at, name)) != NULL; at += length)
		if ((at == parts || at[-1] == ',') && (at[length] == ',' || !at[length]))
			return true;
	return false;
}

void lean_want(const char *parts)
{
	bool is_any = false, is_none = strncmp(parts, "none", 4) == 0; /* a reason may follow */
	for (int i = 0; i < PARTS; i++)
		is_any |= lean.is_wanted[i] = !is_none && names_part(parts, part_names[i]);
	if (!is_any)
		snprintf(lean.text, sizeof(lean.text), "%s", parts);
}

/* problem NULL: the part is active. */
static void lean_tell(enum lean_part part, const char *problem)
{
	size_t length = strlen(lean.text), more = strlen(lean.problems);
	lean.cost_share *= problem ? 1 : cost_shares[part];
	if (problem)
		snprintf(lean.problems + more, sizeof(lean.problems) - more, "; no %s: %s", part_names[part], problem);
	else
		snprintf(lean.text + length, sizeof(lean.text) - length, "%s%s", length ? "," : "", part_names[part]);
}

static bool is_any_wanted(void)
{
	bool is_any = false;
	for (int i = 0; i < PARTS; i++)
		is_any |= lean.is_wanted[i];
	return is_any && !lean.is_done;
}

static bool wants_records(void)
{
	return lean.is_wanted[ENGINE] || lean.is_wanted[OBJECT];
}

void lean_probe_begin(const struct torch_entry *entry)
{
	if (!is_any_wanted() || !wants_records() || !lean_record_find())
		return;
	if (lean.is_wanted[ENGINE])
		lean_engine_learn(entry);
	if (lean.is_wanted[OBJECT])
		lean_object_learn(entry);
}

/* Redirects the functions that destroy lean records before those that make them. */
static void start_records(const struct torch_entry *entry, const struct torch_layout *layout)
{
	const char *problem = lean_record_prove(entry, layout);
	lean_record_settle(!problem);
	if (lean.is_wanted[ENGINE])
		lean_tell(ENGINE, lean_engine_start(problem));
	if (lean.is_wanted[OBJECT])
		lean_tell(OBJECT, lean_object_start(problem));
}

void lean_probe_end(const struct torch_entry *entry, const struct torch_layout *layout)
{
	struct loaded loaded;
	if (!is_any_wanted())
		return;
	lean.is_done = true;
	lean.text[0] = '\0';
	process_find_library(&loaded, TORCH_LIBRARY);
	if (lean.is_wanted[TLS])
		lean_tell(TLS, lean_tls_start(entry, &loaded));
	if (wants_records())
		start_records(entry, layout);
	size_t length = strlen(lean.text);
	snprintf(lean.text + length, sizeof(lean.text) - length, "%s%s", length ? "" : "none", lean.problems);
}

void lean_observer(torch_start *start, void (*end)(const void *record, void *context))
{
	lean_engine_tells(start);
	lean_places.end = end;
}

double lean_cost_share(void)
{
	return lean.cost_share;
}

const char *lean_text(void)
{
	return lean.text;
}
