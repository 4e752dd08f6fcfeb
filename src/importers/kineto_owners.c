/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_owners.c: whose work lies on the row of a device, where several processes wrote to one file or their files were made one: of the process
 * whose launches have its correlations. Processes that count alike do not tell. There as many devices as processes that launch are taken in
 * the order of their numbers, as launchers of ranks start them, and it is said.
 */
#include "importers/kineto_import.h"

#include "base/memory.h"
#include "base/merge_sort.h"
#include "model/number_map.h"

#include <stdlib.h>
#include <string.h>

#define OF_SEVERAL (NUMBER_MAP_NONE - 1)

struct owners {
	const struct kineto_import *import;
	struct number_map launches; /* correlation -> process, OF_SEVERAL */
	uint32_t *of_tracks;        /* MODEL_NONE: not known */
	uint32_t *counts;           /* by process of the file; scratch */
	uint32_t *launchers;        /* processes that launch, in order of their numbers */
	int64_t *alike;             /* devices whose work has numbers that several processes have */
	uint32_t launcher_count, alike_count;
};

static bool note_launches(struct number_map *launches, const struct staged_track *track)
{
	bool has_any = false;
	for (uint32_t i = 0; i < track->count; i++) {
		const struct staged_span *span = &track->spans[i];
		if (span->kind != SPAN_RUNTIME || !span->correlation)
			continue;
		has_any = true;
		if (number_map_add(launches, span->correlation, track->process) != track->process)
			number_map_set(launches, span->correlation, OF_SEVERAL);
	}
	return has_any;
}

static void find_launches(struct owners *owners, const uint8_t *kinds)
{
	const struct kineto_stage *stage = &owners->import->stage;
	uint32_t first = owners->import->first_process, count = owners->import->model->processes_count - first;
	memset(owners->counts, 0, count * sizeof *owners->counts);
	for (uint32_t i = 0; i < stage->tracks_count; i++)
		if (kinds[i] == TRACK_THREAD && stage->tracks[i].process != MODEL_NONE)
			owners->counts[stage->tracks[i].process - first] += note_launches(&owners->launches,
			                                                                  &stage->tracks[i]);
	for (uint32_t i = 0; i < count; i++)
		if (owners->counts[i])
			owners->launchers[owners->launcher_count++] = first + i;
}

/* The process that launched most of what is on the track, as far as one did; MODEL_NONE: none. */
static uint32_t launcher_of(struct owners *owners, const struct staged_track *track, bool *is_alike)
{
	uint32_t first = owners->import->first_process, all = 0, best = 0;
	memset(owners->counts, 0, (owners->import->model->processes_count - first) * sizeof *owners->counts);
	*is_alike = false;
	for (uint32_t i = 0; i < track->count; i++) {
		uint64_t correlation = track->spans[i].correlation;
		uint32_t process = correlation ? number_map_find(&owners->launches, correlation) : NUMBER_MAP_NONE;
		*is_alike |= process == OF_SEVERAL;
		if (process >= OF_SEVERAL)
			continue;
		all++;
		if (++owners->counts[process - first] > owners->counts[best])
			best = process - first;
	}
	return 2 * owners->counts[best] > all ? first + best : MODEL_NONE;
}

static void add_alike(struct owners *owners, int64_t device)
{
	uint32_t i = 0;
	while (i < owners->alike_count && owners->alike[i] < device)
		i++;
	if (i < owners->alike_count && owners->alike[i] == device)
		return;
	memmove(owners->alike + i + 1, owners->alike + i, (owners->alike_count - i) * sizeof *owners->alike);
	owners->alike[i] = device;
	owners->alike_count++;
}

static bool is_asked(const struct owners *owners, const uint8_t *kinds, uint32_t track)
{
	return kinds[track] == TRACK_DEVICE && owners->import->stage.tracks[track].process == MODEL_NONE;
}

static void take_in_order(struct owners *owners, const uint8_t *kinds)
{
	const struct kineto_stage *stage = &owners->import->stage;
	bool is_paired = owners->alike_count == owners->launcher_count;
	if (!owners->alike_count)
		return;
	for (uint32_t i = 0; i < stage->tracks_count && is_paired; i++)
		for (uint32_t k = 0; k < owners->alike_count && owners->of_tracks[i] == MODEL_NONE; k++)
			if (is_asked(owners, kinds, i) && owners->alike[k] == stage->tracks[i].pid.number)
				owners->of_tracks[i] = owners->launchers[k];
	model_add_ledger(
		owners->import->model, LEDGER_OTHER, MODEL_NONE, "devices", owners->alike_count,
		is_paired
			? "processes of one file number their launches alike, so nothing says whose work a device did: "
			  "devices and processes were taken in the order of their numbers"
			: "processes of one file number their launches alike, so nothing says whose work a device did: "
			  "all of it was taken for that of one process");
}

uint32_t *kineto_find_owners(const struct kineto_import *import, const uint8_t *kinds)
{
	const struct kineto_stage *stage = &import->stage;
	size_t process_count = import->model->processes_count - import->first_process;
	struct owners owners = {.import = import, .launches.storage = stage->storage};

	owners.of_tracks = memory_resize(NULL, (size_t)stage->tracks_count + 1, sizeof *owners.of_tracks);
	for (uint32_t i = 0; i < stage->tracks_count; i++)
		owners.of_tracks[i] = MODEL_NONE;
	if (process_count < 2)
		return owners.of_tracks;
	owners.counts = memory_resize(NULL, process_count, sizeof *owners.counts);
	owners.launchers = memory_resize(NULL, process_count, sizeof *owners.launchers);
	owners.alike = memory_resize(NULL, (size_t)stage->tracks_count + 1, sizeof *owners.alike);
	find_launches(&owners, kinds);
	for (uint32_t i = 0; i < stage->tracks_count; i++) {
		bool is_alike = false;
		if (is_asked(&owners, kinds, i))
			owners.of_tracks[i] = launcher_of(&owners, &stage->tracks[i], &is_alike);
		if (is_alike && owners.of_tracks[i] == MODEL_NONE && !stage->tracks[i].pid.text)
			add_alike(&owners, stage->tracks[i].pid.number);
	}
	take_in_order(&owners, kinds);
	free(owners.alike);
	free(owners.launchers);
	free(owners.counts);
	number_map_release(&owners.launches);
	return owners.of_tracks;
}
