/* SPDX-License-Identifier: Apache-2.0
 *
 * use_api.c: every function of the header once, as a user writes it. For check_headers.
 */
#include <stepscope/stepscope.h>

int main(void)
{
	const struct stepscope_op_info info = {
		.input_count = 1, .rank = {1}, .shape = {{8}}, .dtype = STEPSCOPE_DTYPE_F32};
	stepscope_name_t name = stepscope_name(STEPSCOPE_KIND_RANGE, "name");

	if (stepscope_init(NULL) != 0 || stepscope_error()[0])
		return 1;
	stepscope_metadata("model", "none");
	stepscope_thread_name("main");
	for (int n = 0; n < 3; n++) {
		stepscope_step_begin(n);
		stepscope_micro_batch_begin(0);
		stepscope_phase_begin(STEPSCOPE_PHASE_DATA);
		stepscope_phase_switch(STEPSCOPE_PHASE_FORWARD);
		stepscope_range_push("range");
		stepscope_range_switch("other");
		stepscope_range_pop();
		stepscope_range_push_name(name);
		stepscope_range_switch_name(name);
		stepscope_range_pop();
		stepscope_op_begin("op");
		stepscope_op_end();
		stepscope_op_begin_name(name);
		stepscope_op_end();
		stepscope_op_begin_info(name, &info);
		stepscope_op_end();
		STEPSCOPE_RANGE_PUSH("site");
		STEPSCOPE_RANGE_SWITCH("site");
		stepscope_range_pop();
		STEPSCOPE_OP_BEGIN("site");
		stepscope_op_end();
		stepscope_memory_alloc(&info, sizeof(info), STEPSCOPE_MEMORY_OTHER, STEPSCOPE_DEVICE_CPU);
		stepscope_memory_free(&info, STEPSCOPE_DEVICE_CPU);
		stepscope_phase_end();
		stepscope_micro_batch_end();
		stepscope_counter("queue", n);
		stepscope_metric("loss", 1.0);
		stepscope_value_name(name, 1.0);
		stepscope_mark("mark");
		stepscope_step_tokens(1);
		stepscope_step_samples(1);
		if (stepscope_is_recording())
			stepscope_mark("recording");
		if (stepscope_active & STEPSCOPE_ACTIVE_SHAPES)
			stepscope_mark("with shapes");
		stepscope_step_end();
	}
	stepscope_flush();
	stepscope_shutdown();
	return 0;
}
