/* SPDX-License-Identifier: Apache-2.0
 *
 * agent.c: see agent.h.
 */
#include "agents/torch/agent.h"

#include "agents/torch/backward.h"
#include "agents/torch/compiled.h"
#include "agents/torch/inputs.h"
#include "agents/torch/layout.h"
#include "agents/torch/lean.h"
#include "agents/torch/lines.h"
#include "agents/torch/memory.h"
#include "agents/torch/observer.h"
#include "agents/torch/training.h"
#include "agents/torch/training_calls.h"
#include "agents/torch/training_count.h"
#include "pytorch/names.h"
#include "recorder/emit.h"

#include <stdio.h>
#include <string.h>

static struct {
	struct torch_entry entry;
	struct torch_layout layout;
	char problem[600], lines_problem[600];
	bool is_found, is_probing;
	bool has_inputs; /* proven and checked */
	bool is_without_inputs, is_without_lines, is_measured;
	uint32_t optimizer_key; /* symbol */
	uint32_t loader_key, loader_start_key, loader_end_key, module_key;
	uint32_t loader_fact_keys[STEPSCOPE_LOADER_FACTS];
} agent = {.layout = {.sequence = -1, .schema = -1, .kind = -1, .forward_thread = -1}};

int stepscope_torch_find(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
	if (!agent.is_found)
		agent.is_found = torch_entry_find(&agent.entry, agent.problem, sizeof(agent.problem));
#else
	snprintf(agent.problem, sizeof(agent.problem), "operators of PyTorch are observed on x86-64 and aarch64 only");
#endif
	return agent.is_found ? 0 : -1;
}

void stepscope_torch_want_lean(const char *parts)
{
	lean_want(parts);
}

int stepscope_torch_probe_begin(void)
{
	agent.is_probing = agent.is_found && layout_probe_begin(&agent.entry);
	if (!agent.is_probing)
		snprintf(agent.problem, sizeof(agent.problem),
		         "this PyTorch does not report sequence and thread numbers");
	else
		lean_probe_begin(&agent.entry);
	return agent.is_probing ? 0 : -1;
}

void stepscope_torch_probe_tensor(uint64_t tensor, int kind, int type, const int64_t *sizes, int count)
{
	const struct inputs_tensor known = {tensor, (enum inputs_probe)kind, type, count, sizes};
	if (agent.is_probing && kind >= INPUTS_PLAIN && kind <= INPUTS_SUBCLASS_SIZES && tensor && count >= 0)
		inputs_add_tensor(&known);
}

void stepscope_torch_probe_inputs(uint64_t first, uint64_t second)
{
	if (agent.is_probing)
		inputs_expect(first, second);
}

void stepscope_torch_probe_value(int type, uint64_t bits)
{
	if (agent.is_probing && type >= 0 && type < INPUTS_VALUES)
		inputs_expect_value((enum inputs_value)type, bits);
}

int stepscope_torch_probe_solve(void)
{
	agent.has_inputs = agent.is_probing && inputs_solve();
	return agent.has_inputs ? 0 : -1;
}

int stepscope_torch_probe_check(const char *inputs)
{
	agent.has_inputs &= inputs_check(layout_probe_inputs(), inputs);
	return agent.has_inputs ? 0 : -1;
}

int stepscope_torch_probe_end(void)
{
	if (!agent.is_probing)
		return -1;
	agent.is_probing = false;
	layout_probe_end(&agent.layout);
	lean_probe_end(&agent.entry, &agent.layout);
	if (agent.layout.sequence >= 0 && agent.layout.forward_thread >= 0)
		return 0;
	snprintf(agent.problem, sizeof(agent.problem), "%s not found in this PyTorch's records",
	         agent.layout.sequence < 0 ? "sequence numbers were" : "the forward's thread was");
	return -1;
}

static uint32_t text_symbol(const char *text)
{
	return emit_symbol(STEPSCOPE_SYMBOL_TEXT, text, (uint32_t)strlen(text));
}

/* Writes a fact about the open span. */
static void tell_in(unsigned bits, uint32_t key, enum stepscope_arg type, uint64_t value)
{
	const uint64_t payload[2] = {type, value};
	if (key && STEPSCOPE_ACTIVE_ & bits)
		emit_event(STEPSCOPE_EVENT_ARG, key, payload, 2);
}

static void agent_tell(uint32_t key, enum stepscope_arg type, uint64_t value)
{
	tell_in(STEPSCOPE_ACTIVE_DETAIL, key, type, value);
}

int stepscope_torch_start(void)
{
	if (!agent.is_found)
		return -1;
	/* before all operators, so that readers know what to look for */
	text_symbol("torch.agent");
	emit_note_observer("PyTorch", lean_cost_share());
	agent.loader_key = text_symbol("torch.loader");
	agent.loader_start_key = text_symbol("torch.loader_start");
	agent.loader_end_key = text_symbol("torch.loader_end");
	agent.module_key = text_symbol("torch.module");
	for (int fact = 0; fact < STEPSCOPE_LOADER_FACTS; fact++)
		agent.loader_fact_keys[fact] = text_symbol(pytorch_loader_key((enum pytorch_loader_key)fact));
	agent.optimizer_key = text_symbol("torch.optimizer");
	compiled_tell();
	stepscope_metadata("torch.library", agent.entry.path);
	stepscope_metadata("torch.sequence", agent.layout.sequence >= 0 ? "yes" : agent.problem);
	stepscope_metadata("torch.shapes", agent.has_inputs ? "yes" : "not found in this PyTorch's objects");
	if (agent.has_inputs)
		stepscope_metadata("torch.inputs", *inputs_left_out() ? inputs_left_out() : "yes");
	/* before the first tensor: otherwise its release would have an unknown address */
	stepscope_metadata("torch.memory", memory_start(agent.problem, sizeof(agent.problem)) ? "yes" : agent.problem);
	stepscope_metadata("torch.lean", lean_text());
	bool has_lines = emit_wants_lines() && lines_are_known();
	if (emit_wants_lines())
		stepscope_metadata("torch.lines", has_lines ? "yes" : agent.lines_problem);
	if (has_lines && !agent.is_measured) {
		char text[32];
		snprintf(text, sizeof(text), "%.3f", lines_measure());
		stepscope_metadata("cost.frame_ns", text);
		agent.is_measured = true;
	}
	observer_start(&agent.entry, &agent.layout, agent.has_inputs && !agent.is_without_inputs && emit_wants_shapes(),
	               has_lines && !agent.is_without_lines);
	return 0;
}

void stepscope_torch_settled(void)
{
	if (agent.is_found)
		observer_settled(&agent.entry, &agent.layout);
}

void stepscope_torch_want_inputs(int is_wanted)
{
	agent.is_without_inputs = !is_wanted;
}

int stepscope_torch_lines_find(void)
{
	snprintf(agent.lines_problem, sizeof(agent.lines_problem),
	         "they were not compared with a stack that the interpreter reported");
	if (!emit_wants_lines())
		return -1;
	return lines_find(agent.lines_problem, sizeof(agent.lines_problem)) ? 0 : -1;
}

int stepscope_torch_lines_check(const char *story)
{
	return lines_check(story, agent.lines_problem, sizeof(agent.lines_problem)) ? 0 : -1;
}

void stepscope_torch_lines_stop(void)
{
	uint64_t lost = lines_lost();
	char text[100];
	lines_stop();
	if (!lost)
		return;
	snprintf(text, sizeof(text), "yes, except those of %llu operators, because there was no space",
	         (unsigned long long)lost);
	stepscope_metadata("torch.lines", text);
}

void stepscope_torch_want_lines(int is_wanted)
{
	agent.is_without_lines = !is_wanted;
}

void stepscope_torch_optimizer(uint64_t identity)
{
	training_optimizer(identity);
	emit_trains();
	agent_tell(agent.optimizer_key, STEPSCOPE_ARG_U64, identity);
}

void stepscope_torch_compiled(const char *code, uint64_t identity)
{
	compiled_add(code, identity);
	emit_note_uncounted();
	observer_follow_wishes(); /* so that a record reports its first call, too */
}

void stepscope_torch_optimizer_done(uint64_t identity)
{
	unsigned ended = stepscope_is_recording() && !observer_is_counting() ? training_optimizer_done(identity) : 0;
	if (ended)
		emit_note_steps(ended);
}

void stepscope_torch_module(uint64_t identity, int is_training)
{
	agent_tell(agent.module_key, STEPSCOPE_ARG_U64, identity << 1 | (is_training ? STEPSCOPE_MODULE_TRAINS : 0));
}

int stepscope_torch_range(uint32_t symbol, int stretch, const void *key)
{
	return observer_range(symbol, (uint8_t)stretch, 0, key);
}

int stepscope_torch_profiler_step(uint32_t symbol, uint32_t number, int has_schedule, const void *key)
{
	if (symbol && number)
		emit_note_profiler("torch.profiler");
	return observer_range(symbol, 0, (number + 1) | (has_schedule ? TRAINING_HAS_SCHEDULE : 0), key);
}

int stepscope_torch_call_range(const char *name, const void *key)
{
	return observer_call_begin(&(struct training_call){.kind = TRAINING_RANGE, .name = name}, key);
}

int stepscope_torch_call_backward(int is_training, const void *key)
{
	return observer_call_begin(&(struct training_call){.kind = TRAINING_BACKWARD, .is_training = is_training != 0},
	                           key);
}

int stepscope_torch_call_scaler(const void *key)
{
	return observer_call_begin(&(struct training_call){.kind = TRAINING_SCALER}, key);
}

int stepscope_torch_call_module(uint64_t identity, int is_training, uint32_t symbol, const void *key)
{
	uint64_t module = identity << 1 | (is_training ? STEPSCOPE_MODULE_TRAINS : 0);
	return observer_call_begin(&(struct training_call){.kind = TRAINING_MODULE, .module = module, .symbol = symbol},
	                           key);
}

uint32_t stepscope_torch_in_call(uint32_t symbol)
{
	return emit_call(symbol);
}

int stepscope_torch_wants_module(void)
{
	return observer_wants_module();
}

void stepscope_torch_sees_calls(void)
{
	training_sees_calls();
}

int stepscope_torch_range_end(const void *key)
{
	return observer_range_end(key);
}

void stepscope_torch_range_end_elsewhere(const void *key)
{
	observer_end_elsewhere(key);
}

void stepscope_torch_owners(const void *words, int count)
{
	memory_owners(words, count);
}

unsigned stepscope_torch_wants_owners(void)
{
	bool is_wanted = STEPSCOPE_ACTIVE_ & STEPSCOPE_ACTIVE_MEMORY;
	return is_wanted ? __atomic_load_n(&emit_starts, __ATOMIC_RELAXED) : 0;
}

unsigned stepscope_torch_rotations(void)
{
	return __atomic_load_n(&emit_rotations, __ATOMIC_RELAXED);
}

void stepscope_torch_watch_backward(void (*call)(void), int is_later)
{
	if (agent.is_found)
		backward_watch(&agent.entry, call, is_later);
}

int stepscope_torch_may_want_owners(void)
{
	return emit_wants_memory();
}

void stepscope_torch_loader(uint64_t loader)
{
	agent_tell(agent.loader_key, STEPSCOPE_ARG_U64, loader);
	training_batch(true);
}

void stepscope_torch_loader_start(uint64_t loader)
{
	tell_in(STEPSCOPE_ACTIVE_DETAIL | STEPSCOPE_ACTIVE_RARE, agent.loader_start_key, STEPSCOPE_ARG_U64, loader);
}

void stepscope_torch_loader_fact(int fact, uint64_t value)
{
	if (fact >= 0 && fact < STEPSCOPE_LOADER_FACTS)
		tell_in(STEPSCOPE_ACTIVE_DETAIL | STEPSCOPE_ACTIVE_RARE, agent.loader_fact_keys[fact],
		        STEPSCOPE_ARG_U64, value);
}

int stepscope_torch_range_end_with(const void *key, const struct stepscope_loader_facts *facts)
{
	uint64_t words[4];
	unsigned count = 0;
	for (int i = 0; i < facts->count && i < 2; i++) {
		uint32_t symbol = agent.loader_fact_keys[facts->list[i].fact];
		if (!symbol)
			continue;
		words[count++] = symbol | (uint64_t)STEPSCOPE_ARG_U64 << 32;
		words[count++] = facts->list[i].value;
	}
	return observer_range_end_with(key, words, count);
}

void stepscope_torch_loader_end(void)
{
	agent_tell(agent.loader_end_key, STEPSCOPE_ARG_BOOL, true);
	training_batch(false);
}

void stepscope_torch_rank(int rank, int world_size)
{
	emit_rank(rank, world_size);
	observer_count(); /* a rank that is not recorded has steps, too */
}

int stepscope_torch_make_records(int is_on)
{
	if (!agent.entry.make_records)
		return -1;
	bool was_on = agent.entry.makes_records();
	agent.entry.make_records(is_on);
	return was_on;
}

void stepscope_torch_optimizer_made(void)
{
	(void)training_optimizer_made();
}

void stepscope_torch_stop(void)
{
	observer_stop();
}

uint64_t stepscope_torch_follow(void)
{
	return agent.is_found ? observer_follow(&agent.entry) : 0;
}

void stepscope_torch_unfollow(uint64_t number)
{
	if (agent.is_found && number)
		agent.entry.remove_callback(number);
}

uint64_t stepscope_torch_too_deep(void)
{
	return observer_too_deep();
}

const char *stepscope_torch_problem(void)
{
	return agent.problem;
}
