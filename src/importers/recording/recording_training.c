/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_training.c: after all files: infers steps and phases from what recording_torch.c noted, and leaves them in the streams of the
 * threads that train, with what is uncertain about them in the ledger.
 */
#include "base/lower_bound.h"
#include "base/memory.h"
#include "importers/recording/recording_torch_scan.h"
#include "steps/inference.h"
#include "steps/step_doubts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>

/* Whether the last segment of the session was closed. */
static bool was_closed(const struct recording *recording, const struct recorded_session *session)
{
	bool is_closed = false;
	for (uint32_t i = 0; i < recording->file_count; i++) {
		const struct recorded_file *file = &recording->files[i];
		if (file->is_usable && recording->sessions[file->session] == session &&
		    !(file->header.flags & STEPSCOPE_SEGMENT_COARSE))
			is_closed = file->stats.is_closed;
	}
	return is_closed;
}

/* The recording stops somewhere: in this range, maybe while the optimizer was called. */
static void add_cut(struct training *training, int64_t time_ns, uint32_t range, bool is_inside)
{
	size_t count = training->record_count;
	if (count && training->records[count - 1].start_ns > time_ns)
		time_ns = training->records[count - 1].start_ns;
	if (training->turn_count > 1 && count) /* ranges are those of the turn */
		range = training->records[count - 1].range;
	training_append(training, &(struct train_record){.start_ns = time_ns,
	                                                 .end_ns = time_ns,
	                                                 .range = range,
	                                                 .token = TOKEN_CUT,
	                                                 .is_inside = is_inside});
}

/* A teacher, which is never trained, evaluates nothing; what is never evaluated (a loss) is in training mode all the time. Under autocast() casts
 * of weights make nodes also where gradients are off, which nothing uses. */
static void find_evaluating(const struct torch_scan *scan, struct training *training)
{
	for (size_t i = 0; i < training->record_count; i++) {
		struct train_record *record = &training->records[i];
		bool has_graph = record->token == TOKEN_FORWARD && !record->is_unused;
		if (!record->is_module || has_graph || !record->object)
			continue;
		uint64_t module = record->object >> 1;
		uint32_t symbol = number_map_find(&scan->evaluated, module);
		bool is_trained = number_map_find(&scan->trained, module) != NUMBER_MAP_NONE ||
		                  number_map_find(&scan->parts, symbol) != NUMBER_MAP_NONE;
		bool is_training = record->object & STEPSCOPE_MODULE_TRAINS;
		record->is_learning = is_training && symbol != NUMBER_MAP_NONE && record->token == TOKEN_OP;
		record->is_evaluating = !is_training && is_trained;
	}
}

/* Whose optimizers are called beside them. */
static void note_other_threads(struct recording *recording, uint32_t process, const struct training *training)
{
	struct arena *arena = &recording->model->arena;
	if (training->other_threads)
		model_add_ledger(
			recording->model, LEDGER_OTHER, process, "steps", training->other_threads,
			arena_printf(arena,
		                     "the number of steps is ambiguous: they are those of the thread that calls "
		                     "optimizers most often; %" PRIu64 " more called them %" PRIu64
		                     " times, and those steps are in no table",
		                     training->other_threads, training->other_calls))
			->code = LEDGER_CODE_AMBIGUOUS_STEPS;
}

static void note_limits(struct recording *recording, const struct recorded_session *session,
                        const struct torch_scan *scan, const struct inference *inference)
{
	uint32_t process = recording->processes[session->process]->process;
	step_doubts_say(recording->model, process, inference, DOUBTS_OF_RECORDING);
	if (scan->record_count == TORCH_SCAN_MAX_RECORDS)
		model_add_ledger(recording->model, LEDGER_OTHER, process, "steps", 1,
		                 "the recording is too long to find all steps that its program did not mark");
	if (recording->model->processes[process].has_lost_numbers)
		model_add_ledger(
			recording->model, LEDGER_OTHER, process, "steps", 1,
			"steps are counted from the first one that is still whole, as the program did not mark them, and what it "
			"counted itself does not agree with them: ranks are not compared");
}

/* Only how steps without operators are seen has changed. */
static bool captures_alike(const struct capture_change *before, const struct capture_change *change)
{
	return before->capture == change->capture && ((before->mask ^ change->mask) & ~STEPSCOPE_ACTIVE_CALLS) == 0;
}

/* Where the schedule changed by a count of steps that does not agree with what is inferred. */
static void compare_counts(struct recording *recording, const struct recorded_session *session,
                           const struct inference *inference)
{
	const struct recorded_process *process = recording->processes[session->process];
	struct model *model = recording->model;
	uint64_t ended = 0, differ = 0, counted = 0, found = 0;
	size_t next = 0;

	for (uint32_t i = 0; i < process->capture_count; i++) {
		const struct capture_change *change = &process->captures[i];

		for (; next < inference->count && (inference->list[next].what != INFERRED_STEP ||
		                                   inference->list[next].last_ns <= change->time_ns);
		     next++)
			ended += inference->list[next].what == INFERRED_STEP;
		if (!change->is_counted || change->count == ended || (i && captures_alike(change - 1, change)))
			continue;
		if (!differ++)
			counted = change->count, found = ended;
	}
	if (differ)
		model_add_ledger(
			model, LEDGER_OTHER, process->process, "schedule", differ,
			arena_printf(&model->arena,
		                     "the schedule changed where the program's own count of its steps differed from "
		                     "the report's: first when it had counted %" PRIu64
		                     ", where the report finds %" PRIu64,
		                     counted, found));
}

/* What trains without gradients, and without an update that is seen, looks like forces that are computed. */
static void note_stepless(struct recording *recording, uint32_t process, size_t backwards)
{
	model_add_meta(recording->model, process, "torch.steps",
	               arena_printf(&recording->model->arena,
	                            "no steps were found: none of the %zu backwards leaves gradients, and neither an "
	                            "optimizer nor updates in place were seen, so it is not known which of them train; "
	                            "stepscope.step() says what a step is",
	                            backwards));
}

/* Which turn it was: a step belongs to the thread that ended it. */
static size_t turn_of(const struct training *training, const struct inferred *inferred, size_t turn)
{
	int64_t time_ns = inferred->what == INFERRED_STEP ? inferred->last_ns : inferred->start_ns;
	while (turn && training->turns[turn].start_ns > time_ns)
		turn--;
	while (turn + 1 < training->turn_count && training->turns[turn + 1].start_ns <= time_ns)
		turn++;
	return turn;
}

static void give_to_stream(struct stream *stream, const struct inferred *inferred)
{
	uint32_t count = stream->inferred_count;
	if (!(count & (count + 1)))
		stream->inferred = memory_resize(stream->inferred, 2 * (size_t)count + 2, sizeof *stream->inferred);
	stream->inferred[stream->inferred_count++] = *inferred;
}

/* Where only calls were noted a forward is seen as the calls of modules in it, which are a part of it. */
static bool is_partly_seen(const struct recorded_process *process, const struct inferred *inferred)
{
	const struct capture_change *changes = process->captures;
	uint32_t before = LOWER_BOUND(changes, process->capture_count, item, item->time_ns <= inferred->start_ns);
	return inferred->what == STEPSCOPE_PHASE_FORWARD && before && changes[before - 1].mask & STEPSCOPE_ACTIVE_CALLS;
}

/* What a profiler in the program recorded has the ranges of torch.profiler. */
static bool is_of_window(const struct recording *recording, const struct inferred *inferred)
{
	return inferred->what == INFERRED_GENERATION && recording->filter && recording->filter->window;
}

/* Each to the thread whose turn it was. */
static void give_inferred(const struct recording *recording, const struct recorded_session *session,
                          const struct training *training, struct inference *inference)
{
	const struct recorded_process *process = recording->processes[session->process];
	const struct torch_scan *scan = session->torch;
	size_t turn = 0;
	for (size_t i = 0; i < inference->count; i++) {
		if (is_partly_seen(process, &inference->list[i]) || is_of_window(recording, &inference->list[i]))
			continue;
		turn = turn_of(training, &inference->list[i], turn);
		uint32_t number = scan->streams[training->turns[turn].thread].stream;
		uint32_t found = number_map_find(&session->stream_map, number);
		if (found == NUMBER_MAP_NONE)
			continue;
		struct stream *stream = session->streams[found];
		stream->has_own_steps = scan->has_steps;
		stream->has_own_phases = scan->has_phases;
		give_to_stream(stream, &inference->list[i]);
	}
}

static void note_marked(struct recording *recording, uint32_t process, const struct inference *inference)
{
	model_add_ledger(
		recording->model, LEDGER_OTHER, process, "steps", inference->step_count - inference->marked_count,
		arena_printf(
			&recording->model->arena,
			"torch.profiler in the program marks %zu of the %zu steps (ProfilerStep#N); the others, outside "
			"of its ranges, are inferred",
			inference->marked_count, inference->step_count));
}

/* What is to be known of steps that the program does not mark itself. */
static void note_steps(struct recording *recording, const struct recorded_session *session,
                       const struct training *training, const struct inference *inference)
{
	uint32_t process = recording->processes[session->process]->process;
	bool has_inferred = inference->marked_count < inference->step_count;
	if (has_inferred)
		note_limits(recording, session, session->torch, inference);
	if (has_inferred && inference->marked_count)
		note_marked(recording, process, inference);
	note_other_threads(recording, process, training);
	compare_counts(recording, session, inference);
}

/* Where operators were recorded in a part of the steps only, older recordings have its ranges there only. */
static bool recording_training_is_whole(const struct recorded_process *process)
{
	for (uint32_t i = 0; i < process->capture_count; i++)
		if (!(process->captures[i].mask & STEPSCOPE_ACTIVE_DETAIL))
			return false;
	return true;
}

/* The program's own steps, or those of torch.profiler in it, are around the phases. */
static void take_marked(const struct recording *recording, const struct recorded_session *session,
                        const struct train_loop *loop, struct inference *inference)
{
	const struct torch_scan *scan = session->torch;
	if (scan->has_steps)
		inference_cut_phases(inference, scan->bounds, scan->bound_count);
	else if (scan->notes_profiler_steps || recording_training_is_whole(recording->processes[session->process]))
		inference_mark_steps(inference, loop);
}

/* What the training was, by the threads' turns. */
static void infer_training(struct recording *recording, struct recorded_session *session, struct training *training)
{
	struct torch_scan *scan = session->torch;
	const struct stream_scan *last = &scan->streams[training->turns[training->turn_count - 1].thread];
	uint32_t first = number_map_find(&session->stream_map, scan->streams[training->turns[0].thread].stream);
	struct inference inference;
	if (!was_closed(recording, session))
		add_cut(training, last->last_ns, last->end.range, last->end.is_inside);
	find_evaluating(scan, training);
	const struct train_loop loop = {.records = training->records,
	                                .count = training->record_count,
	                                .ranges = training->ranges,
	                                .range_count = training->range_count,
	                                .hooked = training->hooked,
	                                .hooked_count = training->hooked_count};
	infer_steps(&inference, &loop);
	take_marked(recording, session, &loop, &inference);
	if (!scan->has_steps && inference.step_count && first != NUMBER_MAP_NONE &&
	    session->streams[first]->first_word > 0)
		recording->model->processes[recording->processes[session->process]->process]
			.has_lost_numbers = !torch_scan_number(scan, &inference, session->detail_since_ns);
	if (inference.step_count && first != NUMBER_MAP_NONE) {
		give_inferred(recording, session, training, &inference);
		if (!scan->has_steps)
			note_steps(recording, session, training, &inference);
	}
	if (!inference.step_count && inference.backwards && !scan->has_steps)
		note_stepless(recording, recording->processes[session->process]->process, inference.backwards);
	inference_release(&inference);
}

static void infer_session(struct recording *recording, struct recorded_session *session)
{
	struct torch_scan *scan = session->torch;
	if (!scan || (scan->has_steps && (scan->has_phases || scan->has_step_streams)))
		return;
	session->infers_phases = !scan->has_phases;
	recording->processes[session->process]->infers_phases |= session->infers_phases;
	struct training training;
	struct training_thread *threads = torch_scan_threads(scan, was_closed(recording, session));
	if (training_join(&training, threads, scan->stream_count, scan->has_steps)) {
		/* phases of a thread other than the one that marks the steps would not lie in them */
		bool is_other = scan->has_steps && scan->step_stream != scan->streams[training.turns[0].thread].stream;
		if (is_other)
			session->infers_phases = false;
		else
			infer_training(recording, session, &training);
		training_release(&training);
	}
	for (uint32_t i = 0; i < scan->stream_count; i++) {
		free(threads[i].records);
		free(threads[i].ranges);
		free(threads[i].hooked);
	}
	free(threads);
}

static void recording_training_release(struct torch_scan *scan)
{
	if (!scan)
		return;
	for (uint32_t i = 0; i < scan->stream_count; i++) {
		free(scan->streams[i].records);
		free(scan->streams[i].ranges);
		free(scan->streams[i].hooked);
		free(scan->streams[i].open);
	}
	free(scan->streams);
	free(scan->bounds);
	free(scan->counted);
	number_map_release(&scan->stream_map);
	number_map_release(&scan->profiler_steps);
	number_map_release(&scan->trained);
	number_map_release(&scan->evaluated);
	number_map_release(&scan->parts);
	number_map_release(&scan->followed);
	number_map_release(&scan->codes);
	number_map_release(&scan->compiled);
	node_numbers_release(&scan->numbers);
	free(scan->optimizers);
	free(scan->classes);
	free(scan);
}

void torch_scan_finish(struct recording *recording)
{
	for (uint32_t i = 0; i < recording->session_count; i++) {
		struct recorded_session *session = recording->sessions[i];
		recording->session = session;
		infer_session(recording, session);
		recording_training_release(session->torch);
		session->torch = NULL;
	}
}
