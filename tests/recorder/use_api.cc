/* SPDX-License-Identifier: Apache-2.0
 *
 * use_api.cc: the scopes of the C++ header, also when an exception passes. For check_headers.
 */
#include <stdexcept>
#include <stepscope/stepscope.hpp>
#include <string>

static void work(int n)
{
	stepscope::Range range(std::string("work ") + std::to_string(n));
	stepscope::Op op("op");
	if (n == 1)
		throw std::runtime_error("passes");
}

int main()
{
	const stepscope_name_t name = stepscope_name(STEPSCOPE_KIND_OP, "named");
	for (int n = 0; n < 3; n++) {
		stepscope::Step step(n);
		stepscope::MicroBatch micro_batch(0);
		stepscope::Phase phase(STEPSCOPE_PHASE_FORWARD);
		try {
			work(n);
		} catch (const std::exception &) {
			stepscope_mark("caught");
		}
		stepscope_op_info info = {};
		if (stepscope_active & STEPSCOPE_ACTIVE_SHAPES)
			info.flops = 1;
		stepscope::Op op(name, info);
		step.tokens(1);
		step.samples(1);
		STEPSCOPE_RANGE_PUSH("site");
		stepscope_range_pop();
	}
	return 0;
}
