/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_recording.c: one segment file -> model, with all checksums put right first, so that nothing hides behind them.
 */
#include "importers/recording/recording.h"
#include "sealed.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool add_self_time(void *context, const struct span_view *span)
{
	int64_t *sum = context;
	*sum += span->self_ns & 0xff;
	return true;
}

static void load(const uint8_t *bytes, size_t size, const struct model_filter *filter)
{
	const struct recording_bytes segment = {bytes, size, "host.1.2.3.ssr"};
	struct model model;
	struct error err;
	int64_t sum = 0;
	model_init(&model, 1 << 20);
	if (recording_load_memory(&segment, 1, filter, &model, &err) == STATUS_OK) {
		model_finish(&model);
		for (uint32_t i = 0; i < model.tracks_count; i++)
			model_visit_spans(&model, i, add_self_time, &sum);
	}
	model_release(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct model_filter filter = {.has_steps = true, .first_step = 1, .last_step = 2};
	uint8_t *bytes = sealed_copy(data, size);
	load(data, size, NULL);
	load(bytes, size, NULL);
	load(bytes, size, &filter);
	free(bytes);
	return 0;
}
