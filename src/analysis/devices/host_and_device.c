/* SPDX-License-Identifier: Apache-2.0
 *
 * host_and_device.c: see the header.
 */
#include "analysis/devices/host_and_device.h"

#include "analysis/devices/device_work.h"
#include "analysis/shared/intervals.h"
#include "model/device_names.h"
#include "model/lanes.h"
#include "model/name_classes.h"

#include <stdlib.h>
#include <stepscope/stepscope.h>

enum host_class {
	HOST_OTHER,
	HOST_WORKS,
	HOST_WAITS_FOR_DEVICE,
	HOST_WAITS_FOR_DATA,
	HOST_CLASSES
};

struct host_times { /* of one thread, and of one of its lanes */
	struct intervals thread[HOST_CLASSES], lane[HOST_CLASSES], spare, all;
	struct name_classes names;
};

static uint8_t host_and_device_classify_name(const char *name)
{
	return is_data_wait(name)            ? HOST_WAITS_FOR_DATA
	       : is_synchronizing_call(name) ? HOST_WAITS_FOR_DEVICE
	                                     : HOST_OTHER;
}

static enum host_class class_of_span(struct host_times *times, const struct model *model,
                                     const struct span_chunk *chunk, uint32_t i)
{
	enum host_class class;

	if (chunk->kind[i] == SPAN_PHASE)
		return chunk->phase[i] == STEPSCOPE_PHASE_DATA ? HOST_WAITS_FOR_DATA : HOST_OTHER;
	class = (enum host_class)name_class(&times->names, model, chunk->name[i]);
	if (class == HOST_WAITS_FOR_DATA || (class == HOST_WAITS_FOR_DEVICE && chunk->kind[i] == SPAN_RUNTIME))
		return class;
	return chunk->kind[i] == SPAN_OP || chunk->kind[i] == SPAN_RUNTIME ? HOST_WORKS : HOST_OTHER;
}

/* Everything nested in an operator or a wait for data is part of it, so it does not matter whether the trace has
 * Python calls in there. */
static void host_and_device_add_lane(struct host_times *times, struct report *report, const struct track *track)
{
	const struct step_times *steps = report_step_times(report);

	for (int which = HOST_WORKS; which < HOST_CLASSES; which++)
		times->lane[which].count = 0;
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			enum host_class class = class_of_span(times, report->model, chunk, i);
			int64_t end_ns = chunk->start_ns[i];

			clamped_add(&end_ns, chunk->dur_ns[i]);
			if (class != HOST_OTHER &&
			    !(track->kind == TRACK_DEVICE && chunk->kind[i] == SPAN_ANNOTATION) &&
			    step_times_measures(steps, chunk->step[i]))
				intervals_add(&times->lane[class], chunk->start_ns[i], end_ns);
		}
		model_chunk_done(report->model, chunk);
	}
	for (int which = HOST_WORKS; which < HOST_CLASSES; which++) {
		intervals_join(&times->spare, &times->thread[which], &times->lane[which]);
		intervals_swap(&times->spare, &times->thread[which]);
	}
}

/* Adds the thread whose first lane is `number`. Returns the first lane of the next thread. */
static uint32_t host_and_device_add_thread(struct host_times *times, struct report *report, uint32_t number,
                                           double *sum)
{
	const struct model *model = report->model;

	for (int which = HOST_WORKS; which < HOST_CLASSES; which++)
		times->thread[which].count = 0;
	do
		host_and_device_add_lane(times, report, model->tracks[number++]);
	while (number < model->tracks_count && is_further_lane(model, number));
	intervals_subtract(&times->spare, &times->thread[HOST_WORKS], &times->thread[HOST_WAITS_FOR_DEVICE]);
	intervals_join(&times->all, &times->spare, &times->thread[HOST_WAITS_FOR_DATA]);
	*sum += (double)intervals_within(&times->all, INT64_MIN, INT64_MAX);
	return number;
}

double host_time_ns(struct report *report)
{
	struct host_times times = {.names.classify = host_and_device_classify_name};
	double sum = 0;

	for (uint32_t track = 0; track < report->model->tracks_count;)
		track = host_and_device_add_thread(&times, report, track, &sum);
	for (int which = HOST_WORKS; which < HOST_CLASSES; which++) {
		intervals_release(&times.thread[which]);
		intervals_release(&times.lane[which]);
	}
	intervals_release(&times.spare);
	intervals_release(&times.all);
	name_classes_release(&times.names);
	return sum;
}

double device_time_ns(struct report *report)
{
	const struct model *model = report->model;
	const struct step_times *steps = report_step_times(report);
	const struct launches *launches = analysis_context_launches(&report->context);
	struct device *devices;
	size_t count = devices_find(&devices, model);
	struct device_work work = {0};
	struct intervals busy = {0};
	double sum = 0;

	for (size_t i = 0; i < count; i++) {
		busy.count = 0;
		device_work_get(&work, &report->context, devices[i].process, devices[i].device);
		for (size_t at = 0; at < work.count; at++) {
			const struct work *item = &work.items[at];

			if (step_times_measures(steps, device_work_step(model, launches, item->track, item->row)))
				intervals_add(&busy, item->start_ns, item->end_ns);
		}
		sum += (double)intervals_within(&busy, INT64_MIN, INT64_MAX);
	}
	device_work_release(&work);
	intervals_release(&busy);
	free(devices);
	return sum;
}
