/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_owners.c: finds the process that launched the work on a device's row, if several processes wrote to one file
 * or their files were merged. It is the process whose launches have the work's correlations.
 *
 * If processes use the same numbers, correlations do not tell. Then the label before the numbers decides: "[TP01] 0"
 * belongs to "[TP01] 4711". Without labels, devices and launching processes are paired in the order of their numbers,
 * as launchers of ranks start them. That requires equal numbers of both. The ledger says so.
 */
#include "base/compare_numbers.h"
#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "importers/kineto/kineto_import.h"
#include "model/number_map.h"

#include <stdlib.h>
#include <string.h>

#define OF_SEVERAL (NUMBER_MAP_NONE - 1)
#define OF_NONE (NUMBER_MAP_NONE - 2) /* no launch found so far */
#define SAMPLES 256u                  /* works of a row to sample */

struct owners {
	const struct kineto_import *import;
	struct number_map launches; /* correlation of sampled work -> process, OF_SEVERAL, OF_NONE */
	struct number_map labels;   /* label, a string of the model -> process that launches */
	uint32_t *of_tracks;        /* MODEL_NONE: unknown */
	uint32_t *counts;           /* by process of the file; scratch, 0 between uses */
	uint32_t *launchers;        /* processes that launch, in order of their numbers */
	int64_t *alike;             /* devices whose work has numbers that several processes use */
	uint32_t launcher_count, alike_count;
};

static uint32_t stride_of(const struct staged_track *track)
{
	return track->count / SAMPLES + 1;
}

static void note_work(struct number_map *launches, const struct staged_track *track)
{
	for (uint32_t i = 0; i < track->count; i += stride_of(track))
		if (track->spans[i].correlation)
			number_map_set(launches, track->spans[i].correlation, OF_NONE);
}

/* Returns true if the track has launches. */
static bool note_launches(struct number_map *launches, const struct staged_track *track)
{
	bool has_any = false;
	for (uint32_t i = 0; i < track->count; i++) {
		const struct staged_span *span = &track->spans[i];
		if (span->kind != SPAN_RUNTIME || !span->correlation)
			continue;
		has_any = true;
		uint32_t process = number_map_find(launches, span->correlation);
		if (process == OF_NONE)
			number_map_set(launches, span->correlation, track->process);
		else if (process < OF_NONE && process != track->process)
			number_map_set(launches, span->correlation, OF_SEVERAL);
	}
	return has_any;
}

/* Returns the text before the last blank in a process's or device's name; 0: none. */
static uint32_t label_of(const struct kineto_import *import, const struct staged_track *track)
{
	const char *text = model_text(import->model, track->pid.text), *blank = strrchr(text, ' ');
	return blank ? intern_add_n(&import->model->strings, text, (size_t)(blank - text)) : 0;
}

static bool is_asked(const struct owners *owners, const uint8_t *kinds, uint32_t track)
{
	return kinds[track] == TRACK_DEVICE && owners->import->stage.tracks[track].process == MODEL_NONE;
}

static void find_launches(struct owners *owners, const uint8_t *kinds)
{
	const struct kineto_stage *stage = &owners->import->stage;
	uint32_t first = owners->import->first_process, count = owners->import->model->processes_count - first;
	memset(owners->counts, 0, count * sizeof *owners->counts);
	for (uint32_t i = 0; i < stage->tracks_count; i++)
		if (is_asked(owners, kinds, i))
			note_work(&owners->launches, &stage->tracks[i]);
	for (uint32_t i = 0; i < stage->tracks_count && owners->launches.count; i++) {
		const struct staged_track *track = &stage->tracks[i];
		if (kinds[i] != TRACK_THREAD || track->process == MODEL_NONE ||
		    !note_launches(&owners->launches, track))
			continue;
		owners->counts[track->process - first]++;
		uint32_t label = label_of(owners->import, track);
		if (label && number_map_add(&owners->labels, label, track->process) != track->process)
			number_map_set(&owners->labels, label, OF_SEVERAL);
	}
	for (uint32_t i = 0; i < count; i++)
		if (owners->counts[i])
			owners->launchers[owners->launcher_count++] = first + i;
	memset(owners->counts, 0, count * sizeof *owners->counts);
}

static uint32_t process_of_work(const struct owners *owners, const struct staged_span *span)
{
	return span->correlation ? number_map_find(&owners->launches, span->correlation) : NUMBER_MAP_NONE;
}

/* Returns the process that launched most of the work on the track; MODEL_NONE: no process launched more than half. */
static uint32_t launcher_of(const struct owners *owners, const struct staged_track *track, bool *is_alike)
{
	uint32_t *counts = owners->counts, first = owners->import->first_process, all = 0, best = 0;
	*is_alike = false;
	for (uint32_t i = 0; i < track->count; i += stride_of(track)) {
		uint32_t process = process_of_work(owners, &track->spans[i]);
		*is_alike |= process == OF_SEVERAL;
		if (process >= OF_NONE)
			continue;
		all++;
		if (++counts[process - first] > counts[best])
			best = process - first;
	}
	bool is_most = 2 * counts[best] > all;
	for (uint32_t i = 0; i < track->count && all; i += stride_of(track)) {
		uint32_t process = process_of_work(owners, &track->spans[i]);
		if (process < OF_NONE)
			counts[process - first] = 0;
	}
	return is_most ? first + best : MODEL_NONE;
}

/* Sorts and removes duplicates. */
static void sort_alike(struct owners *owners)
{
	uint32_t count = 0;
	merge_sort(owners->alike, owners->alike_count, sizeof *owners->alike, compare_int64);
	for (uint32_t i = 0; i < owners->alike_count; i++)
		if (!count || owners->alike[count - 1] != owners->alike[i])
			owners->alike[count++] = owners->alike[i];
	owners->alike_count = count;
}

static void take_in_order(struct owners *owners, const uint8_t *kinds)
{
	const struct kineto_stage *stage = &owners->import->stage;
	sort_alike(owners);
	bool is_paired = owners->alike_count == owners->launcher_count;
	if (!owners->alike_count)
		return;
	for (uint32_t i = 0; i < stage->tracks_count && is_paired; i++) {
		const struct staged_place *pid = &stage->tracks[i].pid;
		if (!is_asked(owners, kinds, i) || owners->of_tracks[i] != MODEL_NONE || pid->text)
			continue;
		size_t at = LOWER_BOUND(owners->alike, owners->alike_count, device, *device < pid->number);
		if (at < owners->alike_count && owners->alike[at] == pid->number)
			owners->of_tracks[i] = owners->launchers[at];
	}
	model_add_ledger(
		owners->import->model, LEDGER_OTHER, MODEL_NONE, "devices", owners->alike_count,
		is_paired
			? "processes in one file use the same launch numbers, so the owner of device work is unknown: "
			  "devices and processes were matched in the order of their numbers"
			: "processes in one file use the same launch numbers, so the owner of device work is unknown: "
			  "all of it was assigned to one process");
}

static void find_owner(struct owners *owners, uint32_t number)
{
	const struct staged_track *track = &owners->import->stage.tracks[number];
	bool is_alike;
	uint32_t found = launcher_of(owners, track, &is_alike);
	uint32_t label = found == MODEL_NONE && is_alike ? label_of(owners->import, track) : 0;
	uint32_t labelled = label ? number_map_find(&owners->labels, label) : NUMBER_MAP_NONE;
	owners->of_tracks[number] = labelled < OF_SEVERAL ? labelled : found;
	if (is_alike && owners->of_tracks[number] == MODEL_NONE && !track->pid.text)
		owners->alike[owners->alike_count++] = track->pid.number;
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
	for (uint32_t i = 0; i < stage->tracks_count; i++)
		if (is_asked(&owners, kinds, i))
			find_owner(&owners, i);
	take_in_order(&owners, kinds);
	free(owners.alike);
	free(owners.launchers);
	free(owners.counts);
	number_map_release(&owners.labels);
	number_map_release(&owners.launches);
	return owners.of_tracks;
}
