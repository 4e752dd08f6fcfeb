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
                           "events with unescaped quotes in a text; they are read up to where the event goes on"},
	[REPAIR_CONTROL] = {LEDGER_REPAIRED,
                            "events with control characters in a text, which JSON does not allow; they are kept"},
	[REPAIR_ESCAPE] = {LEDGER_REPAIRED, "texts that are no UTF-8, or with backslashes that escape nothing"},
	[REPAIR_WORD] = {LEDGER_REPAIRED,
                         "events with inf, NaN, another word or nothing in place of a value; it counts as not known"},
	[REPAIR_COMMA] = {LEDGER_REPAIRED, "commas that are missing or too many"},
	[REPAIR_TIME] = {LEDGER_REPAIRED, "events without a time that can be read were left out"},
	[REPAIR_DURATION] = {LEDGER_REPAIRED,
                             "spans without a duration, or with one that cannot be, end with what is around them"},
	[REPAIR_WORK] = {LEDGER_DAMAGED, "kernels, copies or fills without a duration, or with one that cannot be, end "
                                         "where the next of their stream begins, and are incomplete"},
	[REPAIR_STEP] = {LEDGER_OTHER, "annotations ProfilerStep# without a number of up to 18 digits are no steps"},
	[REPAIR_UNREADABLE] = {LEDGER_DAMAGED, "events that cannot be read were left out"},
	[REPAIR_GARBAGE] = {LEDGER_REPAIRED, "places between events that are no event were passed over"},
	[REPAIR_LIST_END] = {LEDGER_TORN_TAIL, "the list of events has no end: the file may be cut off"},
	[REPAIR_CUT] = {LEDGER_TORN_TAIL, "the file is cut off; what was complete is read"},
	[REPAIR_DOCUMENTS] =
		{LEDGER_REPAIRED,
                 "more than one document in the file: several processes may have written to it; all are read as one"},
	[REPAIR_METADATA] = {LEDGER_REPAIRED, "values beside the events that cannot be read were passed over"},
	[REPAIR_DAMAGED] = {LEDGER_DAMAGED, DAMAGED_END},
	[REPAIR_MEMBER] = {LEDGER_DAMAGED, DAMAGED_MEMBERS},
	[REPAIR_UTF16] = {LEDGER_REPAIRED, "the text is UTF-16"},
	[REPAIR_LOST_TIME] = {LEDGER_REPAIRED, "events of a device without a time, as if at 0, were left out"},
	[REPAIR_LARGE] = {LEDGER_REPAIRED,
                          "events larger than 32 MiB: of their texts the first MiB is kept, longer lists are left out"},
	[REPAIR_END] = {LEDGER_UNMATCHED_END, "ends without a begin"},
	[REPAIR_BEGIN] = {LEDGER_OPEN_SPANS,
                          "begins without an end; they last until the recording's end, or that of the span around them"},
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
