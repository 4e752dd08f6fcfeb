/* SPDX-License-Identifier: Apache-2.0
 *
 * lean.c: see lean.h. Which parts are wanted, and what became of them.
 */
#include "agents/torch/lean.h"

#include "agents/torch/lean_tls.h"
#include "agents/torch/process.h"

#include <stdio.h>
#include <string.h>

enum part {
	TLS,
	PARTS
};

static const char *const part_names[PARTS] = {[TLS] = "tls"};

static struct {
	bool is_wanted[PARTS], is_done;
	char text[400];
} lean = {.text = "none"};

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
	bool is_any = false;
	for (int i = 0; i < PARTS; i++)
		is_any |= lean.is_wanted[i] = names_part(parts, part_names[i]);
	if (!is_any)
		snprintf(lean.text, sizeof(lean.text), "%s", parts);
}

void lean_probe_begin(const struct torch_entry *entry) {}

/* problem NULL: it is done. */
static void tell(enum part part, const char *problem)
{
	static char problems[sizeof(lean.text)];
	size_t length = strlen(lean.text), more = strlen(problems);
	if (problem)
		snprintf(problems + more, sizeof(problems) - more, "; no %s: %s", part_names[part], problem);
	else
		snprintf(lean.text + length, sizeof(lean.text) - length, "%s%s", length ? "," : "", part_names[part]);
	if (part + 1 == PARTS) {
		length = strlen(lean.text);
		snprintf(lean.text + length, sizeof(lean.text) - length, "%s%s", length ? "" : "none", problems);
	}
}

void lean_probe_end(const struct torch_entry *entry)
{
	struct loaded loaded;
	bool is_any = false;
	for (int i = 0; i < PARTS; i++)
		is_any |= lean.is_wanted[i];
	if (lean.is_done || !is_any)
		return;
	lean.is_done = true;
	process_find_library(&loaded, TORCH_LIBRARY);
	lean.text[0] = '\0';
	tell(TLS, lean_tls_start(entry, &loaded));
}

const char *lean_text(void)
{
	return lean.text;
}
