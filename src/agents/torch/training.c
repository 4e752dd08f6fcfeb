/* SPDX-License-Identifier: Apache-2.0
 *
 * training.c: see training.h. The tokens are those of src/importers/recording/recording_torch.c, which reads the same records from the file.
 */
#include "agents/torch/training.h"

#include "agents/torch/compiled.h"
#include "agents/torch/training_count.h"
#include "agents/torch/training_levels.h"
#include "agents/torch/training_state.h"
#include "agents/torch/training_stretch.h"
#include "pytorch/names.h"
#include "recorder/emit.h"

#include <pthread.h>
#include <string.h>

struct training_state training;

uint8_t training_level_of_range(const char *name)
{
	if (pytorch_begins(name, PYTORCH_OPTIMIZER_STEP))
		return STEPSCOPE_TRAINING_OPTIMIZER;
	if (pytorch_begins(name, PYTORCH_OPTIMIZER_ZERO_GRAD))
		return STEPSCOPE_TRAINING_ZERO_GRAD;
	if (pytorch_begins(name, PYTORCH_LOADER_HERE))
		return LEVEL_DATA_HERE;
	if (pytorch_begins(name, PYTORCH_LOADER))
		return STEPSCOPE_TRAINING_DATA;
	return pytorch_begins(name, PYTORCH_PROFILER_STEP) ? LEVEL_PROFILER_STEP : LEVEL_TRANSPARENT;
}

static const char *record_name(const void *record)
{
	const char *name = training.name(record);
	return name ? name : "";
}

/* Number of the node that the operator may make; -1: none. */
static int64_t record_sequence(const void *record)
{
	int64_t sequence = -1;
	if (training.sequence >= 0)
		memcpy(&sequence, (const char *)record + training.sequence, sizeof(sequence));
	return sequence;
}

static uint8_t record_level(enum torch_scope scope, const char *name, const void *record)
{
	if (scope == TORCH_SCOPE_USER)
		return training_level_of_range(name);
	if (scope == TORCH_SCOPE_FUNCTION &&
	    (pytorch_is_of_sampler(name, strnlen(name, 32)) || pytorch_begins(name, PYTORCH_MODE)))
		return LEVEL_NOTHING;
	if (scope == TORCH_SCOPE_FUNCTION && pytorch_begins(name, PYTORCH_ENGINE))
		return STEPSCOPE_TRAINING_BACKWARD;
	if (scope == TORCH_SCOPE_FUNCTION && pytorch_begins(name, PYTORCH_COMPILED))
		return compiled_optimizer(name) ? STEPSCOPE_TRAINING_OPTIMIZER : LEVEL_COMPILED;
	if (scope == TORCH_SCOPE_FUNCTION && pytorch_begins(name, PYTORCH_SCALER))
		return STEPSCOPE_TRAINING_SCALER;
	return record_sequence(record) >= 0 ? STEPSCOPE_TRAINING_FORWARD : STEPSCOPE_TRAINING_OP;
}

/* Inside of a record that hides it. */
static void begin_hidden(enum torch_scope scope, const void *record)
{
	HERE.hidden++;
	training_note_level(scope == TORCH_SCOPE_USER ? training_level_of_range(record_name(record)) : LEVEL_NOTHING);
	if (HERE.is_waiting && !HERE.has_work && scope != TORCH_SCOPE_USER)
		HERE.has_work = !pytorch_begins(record_name(record), PYTORCH_MODE);
	if (HERE.work.is_open || HERE.stretch.token != STEPSCOPE_TRAINING_BACKWARD || !HERE.stretch.is_any)
		return;
	if (scope == TORCH_SCOPE_BACKWARD && !HERE.is_training &&
	    pytorch_begins(record_name(record), PYTORCH_ACCUMULATE))
		training_note_gradients();
	else if (scope == TORCH_SCOPE_USER)
		training_note_range_in_backward(record_name(record));
}

/* What the thread that ends the recording did last. */
static void end_recording(void)
{
	if (torch_thread && !HERE.hidden && !HERE.calls)
		training_flush();
}

void training_start(const struct torch_entry *entry, const struct torch_layout *layout)
{
	static bool is_watched;
	if (!is_watched)
		is_watched = pthread_atfork(NULL, NULL, training_count_forked) == 0;
	emit_at_end(end_recording);
	training.name = entry->name;
	training.sequence = layout->sequence;
	training.next_sequence = entry->sequence_peek;
}

void training_begin(enum torch_scope scope, const void *record)
{
	if (training_is_in_module()) /* records are looked at since then: a step ended in it */
		training_open_module();
	if (HERE.hidden) {
		begin_hidden(scope, record);
		return;
	}
	const char *name = record_name(record);
	uint8_t level = record_level(scope, name, record);
	training_begin_level(level, record_sequence(record));
	if (level == STEPSCOPE_TRAINING_OPTIMIZER && scope == TORCH_SCOPE_FUNCTION) /* no hook tells which one it is */
		training_optimizer(compiled_optimizer(name));
	if (level == LEVEL_PROFILER_STEP)
		training_begin_mark(pytorch_profiler_step(name, strnlen(name, 32)), true);
}

void training_optimizer(uint64_t identity)
{
	if (torch_thread && HERE.calls && !HERE.hidden)
		HERE.call[HERE.calls - 1].identity = identity;
}
