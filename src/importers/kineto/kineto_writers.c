/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_writers.c: detects several processes that wrote to one path. Each one's text continues where another's breaks
 * off. So the process of operators and runtime calls changes where the text is broken, and hardly anywhere else. In a
 * trace that a tool merged from several processes, it changes everywhere, or at places that are not broken. If all
 * processes have the same number, as each is the first of its container, the file states two ranks.
 */
#include "importers/kineto/kineto_import.h"
#include "importers/text_lines.h"

void kineto_writers_note(struct kineto_import *import, uint32_t track)
{
	struct kineto_writers *writers = &import->writers;
	const struct staged_track *tracks = import->stage.tracks;
	const struct staged_place *pid = &tracks[track].pid, *before = &tracks[writers->track].pid;
	if (writers->has_any && (pid->number != before->number || pid->text != before->text)) {
		bool is_break = import->of_file->has_break && import->of_file->break_offset >= writers->offset;
		if (is_break && !writers->at_breaks++)
			writers->first_offset = import->offset;
		writers->elsewhere += !is_break;
	}
	writers->has_any = true;
	writers->track = track;
	writers->offset = import->offset;
}

void kineto_report_writers(struct kineto_import *import)
{
	const struct kineto_writers *writers = &import->writers;
	bool is_of_pids = !import->is_ours && writers->at_breaks > writers->elsewhere;
	if (!is_of_pids && !writers->other_ranks)
		return;
	struct ledger_entry *entry = model_add_ledger(
		import->model, LEDGER_DAMAGED, import->main_process, file_name_of(import->path),
		is_of_pids ? writers->at_breaks : writers->other_ranks,
		"places where one of several processes wrote into the text of another; events may be lost, and device work "
		"may count for the wrong process");
	entry->code = LEDGER_CODE_WRITERS;
	entry->has_first_offset = is_of_pids;
	entry->first_offset = writers->first_offset;
}
