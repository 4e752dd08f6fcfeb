/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_repairs.c: a sentence per kind of repair.
 */
#include "importers/kineto/kineto_import.h"
#include "importers/text_lines.h"

#include <string.h>

static const struct {
	enum ledger_kind kind;
	const char *sentence;
} repairs_rows[REPAIR_COUNT] = {
	[REPAIR_QUOTES] = {LEDGER_REPAIRED,
                           "events with unescaped quotes in a text; the text is read up to the next part of the "
                           "event"},
	[REPAIR_CONTROL] = {LEDGER_REPAIRED,
                            "events with control characters in a text, which JSON does not allow; these are kept"},
	[REPAIR_ESCAPE] = {LEDGER_REPAIRED, "texts that are not UTF-8, or have invalid escapes"},
	[REPAIR_WORD] = {LEDGER_REPAIRED,
                         "events with inf, NaN, another word or nothing as a value; the value counts as unknown"},
	[REPAIR_COMMA] = {LEDGER_REPAIRED, "missing or surplus commas"},
	[REPAIR_TIME] = {LEDGER_REPAIRED, "events without a readable time were left out"},
	[REPAIR_DURATION] = {LEDGER_REPAIRED, "spans without a valid duration; they end with the enclosing span"},
	[REPAIR_WORK] = {LEDGER_DAMAGED, "kernels, copies or fills without a valid duration; they end at the start of "
                                         "the next work in their stream, and are incomplete"},
	[REPAIR_STEP] = {LEDGER_OTHER, "annotations ProfilerStep# without a number of up to 18 digits; they are not "
                                       "steps"},
	[REPAIR_UNREADABLE] = {LEDGER_DAMAGED, "unreadable events were left out"},
	[REPAIR_GARBAGE] = {LEDGER_REPAIRED, "invalid text between events was skipped"},
	[REPAIR_LIST_END] = {LEDGER_TORN_TAIL, "the list of events has no end: the file may be cut off"},
	[REPAIR_CUT] = {LEDGER_TORN_TAIL, "the file is cut off; its complete events are read"},
	[REPAIR_DOCUMENTS] = {LEDGER_REPAIRED,
                              "more than one document in the file, perhaps from several processes; all are read as one"},
	[REPAIR_METADATA] = {LEDGER_REPAIRED, "unreadable values outside the events were skipped"},
	[REPAIR_DAMAGED] = {LEDGER_DAMAGED, DAMAGED_END},
	[REPAIR_MEMBER] = {LEDGER_DAMAGED, DAMAGED_MEMBERS},
	[REPAIR_UTF16] = {LEDGER_REPAIRED, "the text is UTF-16"},
	[REPAIR_LOST_TIME] = {LEDGER_REPAIRED, "device events without a time (recorded as 0) were left out"},
	[REPAIR_LARGE] = {LEDGER_REPAIRED,
                          "events larger than 32 MiB; texts are cut to 1 MiB, and longer lists are left out"},
	[REPAIR_END] = {LEDGER_UNMATCHED_END, "ends without a start"},
	[REPAIR_BEGIN] = {LEDGER_OPEN_SPANS,
                          "starts without an end; they last until the end of the recording or of the enclosing span"},
};

void kineto_report_repairs(struct kineto_import *import, const struct kineto_repairs *repairs)
{
	for (int i = 0; i < REPAIR_COUNT; i++) {
		if (!repairs->count[i])
			continue;
		struct ledger_entry *entry = model_add_ledger(import->model, repairs_rows[i].kind, import->main_process,
		                                              file_name_of(import->path), repairs->count[i],
		                                              repairs_rows[i].sentence);
		entry->has_first_offset = repairs->first_offset[i] != KINETO_NO_PLACE;
		entry->first_offset = repairs->first_offset[i];
	}
}
