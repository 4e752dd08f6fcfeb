/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_clock.c: corrects the clock of a device relative to its host's. If work often begins before its launch, the
 * device's times are moved: by the least constant that makes all of it possible or, if the clocks drift, by the line
 * that fits closest.
 *
 * A launch begins before its work, and a synchronisation of the device ends after the work launched before it. If these
 * rules leave no such constant or line, or if only some work is early, nothing is changed; the table `launches` counts
 * early work.
 *
 * Launches and works are sampled by the hash of the number that they share, so that both are kept or neither is.
 */
#include "base/hash.h"
#include "base/lower_bound.h"
#include "base/merge_sort.h"
#include "base/storage.h"
#include "base/units.h"
#include "importers/kineto/kineto_import.h"
#include "model/launches.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SAMPLES_MAX (1u << 17)
#define PAIRS_LEAST 24
#define EARLY_LEAST 8 /* pairs: fewer are single errors, not the clock */
#define WINDOWS_MOST 32
#define WINDOW_PAIRS 4
#define DRIFT_MOST 200e-6  /* larger than the drift of quartz */
#define DRIFT_GAIN 10      /* a line must be this many times closer than a constant */
#define OFFSET_MOST 3.6e12 /* ns; times of a broken file may be centuries apart */
#define TOLERANCE_NS 1000  /* for the ends of synchronisations */

enum clock_event {
	CLOCK_LAUNCH,
	CLOCK_WAIT, /* waits for the device */
	CLOCK_WORK
};

struct clock_sample {
	uint64_t correlation;
	int64_t start_ns, end_ns;
	uint32_t track; /* index in the stage */
	uint8_t event;  /* enum clock_event */
};

/* A limit for the correction of the device's time at time_ns. */
struct bound {
	int64_t time_ns;
	double ns;
};

struct kineto_clock_pair {
	int64_t launch_ns, start_ns, end_ns;
};

struct correction {
	int64_t origin_ns; /* in the device's time */
	double constant_ns, drift;
};

struct clock_fit {
	struct storage *storage;
	struct kineto_clock_pair *pairs; /* by start of the work */
	uint32_t pair_count;
	struct bound *least, *most; /* lower limit of each pair; upper limits of waits */
	uint32_t most_count;
	/* the largest of `least` in windows of equal numbers of pairs */
	struct bound windows[WINDOWS_MOST];
	uint32_t window_count;
};

/* ---- sampling ---- */

static uint64_t kineto_clock_hash_of(uint64_t correlation)
{
	uint64_t hash = hash_word(correlation);
	return hash ^ hash >> 29;
}

static bool is_wait(const char *name)
{
	return strstr(name, "DeviceSynchronize") || strstr(name, "CtxSynchronize");
}

void kineto_clock_note(struct kineto_import *import, uint32_t track, const struct staged_span *span)
{
	struct kineto_clock *clock = &import->clock;
	struct clock_sample sample = {.correlation = span->correlation, .start_ns = span->start_ns, .track = track};
	uint32_t kept = 0;
	if (!span->correlation || span->dur_ns < 0 ||
	    (span->kind != SPAN_RUNTIME && !span_is_device_work(span->kind)) ||
	    kineto_clock_hash_of(span->correlation) > UINT64_MAX >> clock->halvings)
		return;
	sample.end_ns = span->start_ns + span->dur_ns;
	if (span->kind != SPAN_RUNTIME)
		sample.event = CLOCK_WORK;
	else
		sample.event = is_wait(model_text(import->model, span->name)) ? CLOCK_WAIT : CLOCK_LAUNCH;
	STORAGE_GROW(import->stage.storage, clock->samples, clock->count, clock->capacity, 1024);
	clock->samples[clock->count++] = sample;
	if (clock->count < SAMPLES_MAX)
		return;
	clock->halvings++;
	for (uint32_t i = 0; i < clock->count; i++)
		if (kineto_clock_hash_of(clock->samples[i].correlation) <= UINT64_MAX >> clock->halvings)
			clock->samples[kept++] = clock->samples[i];
	clock->count = kept;
}

static int compare_samples(const void *left, const void *right)
{
	const struct clock_sample *a = left, *b = right;
	if (a->correlation != b->correlation)
		return a->correlation < b->correlation ? -1 : 1;
	return (int)a->event - (int)b->event;
}

static int compare_pairs(const void *left, const void *right)
{
	const struct kineto_clock_pair *a = left, *b = right;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static int compare_launches(const void *left, const void *right)
{
	const struct kineto_clock_pair *a = left, *b = right;
	return (a->launch_ns > b->launch_ns) - (a->launch_ns < b->launch_ns);
}

/* Mixes the process into each number, since several processes use the same numbers. Returns true if there is only one
 * process. */
static bool part_processes(struct kineto_import *import)
{
	const struct staged_track *tracks = import->stage.tracks;
	struct clock_sample *samples = import->clock.samples;
	bool is_one = true;
	for (uint32_t i = 0; i < import->clock.count; i++) {
		uint32_t process = tracks[samples[i].track].process;
		is_one &= process == tracks[samples[0].track].process;
		samples[i].correlation ^= kineto_clock_hash_of(process);
	}
	return is_one;
}

/* Pairs, for one number [first, end), each work with its launch, if only one call can have launched it. */
static void add_pairs(struct clock_fit *fit, const struct kineto_import *import, const struct clock_sample *first,
                      const struct clock_sample *end, int32_t device)
{
	if (end - first < 2 || first[0].event != CLOCK_LAUNCH || first[1].event != CLOCK_WORK)
		return;
	for (const struct clock_sample *work = first + 1; work < end; work++)
		if (import->stage.tracks[work->track].device == device)
			fit->pairs[fit->pair_count++] = (struct kineto_clock_pair){first->start_ns, work->start_ns,
			                                                           work->end_ns};
}

static void find_pairs(struct clock_fit *fit, const struct kineto_import *import, int32_t device)
{
	const struct clock_sample *samples = import->clock.samples, *last = samples + import->clock.count;
	for (const struct clock_sample *first = samples, *end; first < last; first = end) {
		for (end = first; end < last && end->correlation == first->correlation;)
			end++;
		add_pairs(fit, import, first, end, device);
	}
}

/* Finds upper limits: when a wait ends, the work launched before it has ended. Pairs are in order of their launches. */
static void find_most(struct clock_fit *fit, const struct kineto_import *import)
{
	for (uint32_t i = 0; i < import->clock.count; i++) {
		const struct clock_sample *wait = &import->clock.samples[i];
		int64_t end_ns = INT64_MIN;
		if (wait->event != CLOCK_WAIT)
			continue;
		uint32_t low = LOWER_BOUND(fit->pairs, fit->pair_count, item, item->launch_ns < wait->start_ns);
		for (uint32_t k = low; k-- > 0 && low - k <= 64;) /* each stream has its own order */
			end_ns = fit->pairs[k].end_ns > end_ns ? fit->pairs[k].end_ns : end_ns;
		if (low)
			fit->most[fit->most_count++] = (struct bound){end_ns, (double)(wait->end_ns - end_ns)};
	}
}

/* ---- the fit ---- */

static void find_least(struct clock_fit *fit)
{
	uint32_t count = fit->pair_count / WINDOW_PAIRS;
	fit->window_count = count < WINDOWS_MOST ? count : WINDOWS_MOST;
	for (uint32_t i = 0; i < fit->pair_count; i++) {
		const struct kineto_clock_pair *pair = &fit->pairs[i];
		assert(!i || fit->pairs[i - 1].start_ns <= pair->start_ns);
		struct bound least = {pair->start_ns, (double)(pair->launch_ns - pair->start_ns)};
		uint32_t window = (uint32_t)((uint64_t)i * fit->window_count / fit->pair_count);
		bool is_first = !i || (uint64_t)(i - 1) * fit->window_count / fit->pair_count != window;
		fit->least[i] = least;
		if (is_first || least.ns > fit->windows[window].ns)
			fit->windows[window] = least;
	}
}

static double at(const struct correction *correction, int64_t time_ns)
{
	return correction->constant_ns + correction->drift * (double)(time_ns - correction->origin_ns);
}

/* Raises the correction so that it suffices for all pairs. Returns its mean excess over the windows; negative: the
 * waits forbid it. */
static double slack(const struct clock_fit *fit, struct correction *correction)
{
	double sum = 0, missing = 0;
	for (uint32_t i = 0; i < fit->pair_count; i++) {
		double less = fit->least[i].ns - at(correction, fit->least[i].time_ns);
		missing = less > missing ? less : missing;
	}
	correction->constant_ns += missing;
	for (uint32_t i = 0; i < fit->most_count; i++)
		if (at(correction, fit->most[i].time_ns) > fit->most[i].ns + TOLERANCE_NS)
			return -1;
	for (uint32_t i = 0; i < fit->window_count; i++)
		sum += at(correction, fit->windows[i].time_ns) - fit->windows[i].ns;
	return sum / fit->window_count;
}

/* Finds the line through two windows that fits closest. */
static double fit_line(const struct clock_fit *fit, struct correction *best)
{
	double least = -1;
	for (uint32_t i = 0; i < fit->window_count; i++)
		for (uint32_t k = i + 1; k < fit->window_count; k++) {
			const struct bound *a = &fit->windows[i], *b = &fit->windows[k];
			if (b->time_ns <= a->time_ns)
				continue;
			struct correction line = {a->time_ns, a->ns,
			                          (b->ns - a->ns) / (double)(b->time_ns - a->time_ns)};
			if (line.drift > DRIFT_MOST || line.drift < -DRIFT_MOST)
				continue;
			double found = slack(fit, &line);
			if (found < 0 || (least >= 0 && found >= least) || line.constant_ns > OFFSET_MOST)
				continue;
			least = found;
			*best = line;
		}
	return least;
}

static uint64_t count_early(const struct clock_fit *fit)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < fit->pair_count; i++)
		count += fit->least[i].ns > 0;
	return count;
}

/* Accepts a constant only if it shows in the first window, where devices are still idle. A drift that starts at zero is
 * not visible in it. */
static bool fit_all(const struct clock_fit *fit, struct correction *correction)
{
	struct correction constant = {fit->windows[0].time_ns, 0, 0}, line = {0};
	if (count_early(fit) < EARLY_LEAST)
		return false;
	double of_constant = slack(fit, &constant), of_line = fit_line(fit, &line);
	if (of_line >= 0 && (of_constant < 0 || of_line * DRIFT_GAIN < of_constant)) {
		*correction = line;
		return true;
	}
	*correction = constant;
	return of_constant >= 0 && 2 * fit->windows[0].ns >= constant.constant_ns && constant.constant_ns < OFFSET_MOST;
}

/* ---- correction ---- */

static int64_t corrected(const struct correction *correction, int64_t time_ns)
{
	double by = at(correction, time_ns);
	return time_ns + (int64_t)(by < 0 ? by - 0.5 : by + 0.5);
}

static void move_device(struct kineto_stage *stage, int32_t device, const struct correction *correction)
{
	for (uint32_t i = 0; i < stage->tracks_count; i++) {
		struct staged_track *track = &stage->tracks[i];
		for (uint32_t k = 0; track->is_device && track->device == device && k < track->count; k++) {
			struct staged_span *span = &track->spans[k];
			int64_t end_ns = corrected(correction, span->start_ns + (span->dur_ns < 0 ? 0 : span->dur_ns));
			span->start_ns = corrected(correction, span->start_ns);
			span->dur_ns = span->dur_ns < 0 ? span->dur_ns : end_ns - span->start_ns;
		}
	}
}

/* States also how much larger the correction could be, which is its uncertainty. */
static void say(struct kineto_import *import, const struct clock_fit *fit, int32_t device,
                const struct correction *correction)
{
	char where[32], text[400], first[UNITS_BYTES], last[UNITS_BYTES], more[UNITS_BYTES];
	double room = -1;
	for (uint32_t i = 0; i < fit->most_count; i++) {
		double left = fit->most[i].ns - at(correction, fit->most[i].time_ns);
		room = room < 0 || left < room ? left > 0 ? left : 0 : room;
	}
	int length;
	snprintf(where, sizeof where, "GPU %" PRId32, device);
	units_time(first, at(correction, fit->least[0].time_ns));
	units_time(last, at(correction, fit->least[fit->pair_count - 1].time_ns));
	if (correction->drift != 0)
		length = snprintf(
			text, sizeof text,
			"work appears to start before its launch because the clocks drift by %.3g ppm: device times "
			"were shifted later, by %s at the start and %s at the end",
			correction->drift * 1e6, first, last);
	else
		length = snprintf(text, sizeof text,
		                  "work appears to start before its launch: device times were shifted later by %s, the "
		                  "smallest possible correction",
		                  first);
	if (room >= 0)
		snprintf(text + length, sizeof text - (size_t)length, "; up to %s more is also possible",
		         units_time(more, room));
	else
		snprintf(text + length, sizeof text - (size_t)length,
		         "; no synchronisation limits a larger correction");
	model_add_ledger(import->model, LEDGER_CLOCK, import->main_process, where, count_early(fit), text);
}

/* has_waits: waits can be used. A thread waits for its current device, so there must be only one device, of one
 * process. */
static void correct_device(struct kineto_import *import, struct clock_fit *fit, int32_t device, bool has_waits)
{
	struct correction correction;
	fit->pair_count = fit->most_count = 0;
	find_pairs(fit, import, device);
	if (fit->pair_count < PAIRS_LEAST)
		return;
	if (has_waits) {
		merge_sort_in(fit->storage, fit->pairs, fit->pair_count, sizeof *fit->pairs, compare_launches);
		find_most(fit, import);
	}
	merge_sort_in(fit->storage, fit->pairs, fit->pair_count, sizeof *fit->pairs, compare_pairs);
	find_least(fit);
	if (!fit_all(fit, &correction))
		return;
	move_device(&import->stage, device, &correction);
	say(import, fit, device, &correction);
}

void kineto_correct_clocks(struct kineto_import *import)
{
	const struct kineto_stage *stage = &import->stage;
	uint32_t count = import->clock.count;
	int32_t first = INT32_MAX, last = -1;
	struct clock_fit fit = {.storage = stage->storage};
	for (uint32_t i = 0; i < stage->tracks_count; i++) {
		if (!stage->tracks[i].is_device || stage->tracks[i].device < 0)
			continue;
		first = stage->tracks[i].device < first ? stage->tracks[i].device : first;
		last = stage->tracks[i].device > last ? stage->tracks[i].device : last;
	}
	if (count < 2 * PAIRS_LEAST || last < 0)
		return;
	bool has_waits = part_processes(import) && first == last;
	merge_sort_in(fit.storage, import->clock.samples, count, sizeof *import->clock.samples, compare_samples);
	fit.pairs = storage_resize(fit.storage, NULL, count, sizeof *fit.pairs);
	fit.least = storage_resize(fit.storage, NULL, count, sizeof *fit.least);
	fit.most = storage_resize(fit.storage, NULL, count, sizeof *fit.most);
	for (int32_t device = first; device <= last && device - first < KINETO_MEMORY_DEVICES; device++)
		correct_device(import, &fit, device, has_waits);
	storage_release(fit.storage, fit.pairs);
	storage_release(fit.storage, fit.least);
	storage_release(fit.storage, fit.most);
}

void kineto_clock_release(struct kineto_import *import)
{
	storage_release(import->stage.storage, import->clock.samples);
	import->clock = (struct kineto_clock){0};
}
