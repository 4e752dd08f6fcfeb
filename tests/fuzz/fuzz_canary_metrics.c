/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_canary_metrics.c: a metrics.json of anything; one that is taken compares with itself.
 */
#include "compare/canary_metrics.h"
#include "compare/gate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0};
	struct compared_run run;
	struct comparison comparison;
	struct limits limits;
	struct gate gate;

	if (canary_metrics_parse(&run, (const char *)data, size, "metrics.json", &err))
		return 0;
	comparison_init(&comparison, &run, 1, &run, 1, &comparison_defaults);
	if (limits_init(&limits, "default")) {
		gate_init(&gate, &comparison, &limits, GATE_REGRESSION);
		gate_release(&gate);
	}
	comparison_release(&comparison);
	compared_run_release(&run);
	return 0;
}
