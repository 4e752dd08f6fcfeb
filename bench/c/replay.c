/* SPDX-License-Identifier: Apache-2.0
 *
 * replay.c: records the starts and ends of a real trace with the library. bench/replay.py makes the input file.
 *
 *     replay FILE OPTIONS rounds N       one thread after the other, N times, with the real gaps
 *     replay FILE OPTIONS rate R SECONDS all in one thread, repeatedly, gaps scaled to R events/s
 *     replay FILE OPTIONS idle SECONDS   one round, then nothing
 *
 * Prints events, seconds, and CPU ns of the drainer in that time.
 */
#include "drainer.h"
#include "measure.h"

#include <stepscope/stepscope.h>

struct event {
	uint32_t gap_ns, name; /* name 0 is an end */
};

struct track {
	uint32_t count;
	struct event *events;
};

struct replay {
	uint32_t name_count, track_count;
	stepscope_name_t *names;
	struct track *tracks;
	double scale; /* factor of the gaps */
	int64_t rounds, end_ns, events;
	struct track *now;
};

static void read_or_die(FILE *file, void *out, size_t bytes)
{
	if (fread(out, 1, bytes, file) != bytes) {
		fprintf(stderr, "replay: the file is cut\n");
		exit(1);
	}
}

static void load(struct replay *replay, const char *path)
{
	FILE *file = fopen(path, "rb");
	uint32_t head[2];
	if (!file) {
		perror(path);
		exit(1);
	}
	read_or_die(file, head, sizeof(head));
	replay->name_count = head[0];
	replay->track_count = head[1];
	replay->names = calloc(head[0] + 1, sizeof(*replay->names));
	replay->tracks = calloc(head[1], sizeof(*replay->tracks));
	for (uint32_t i = 1; i <= replay->name_count; i++) {
		uint32_t kind[2];
		char text[4096] = "";
		read_or_die(file, kind, sizeof(kind));
		read_or_die(file, text, kind[1] < sizeof(text) ? kind[1] : sizeof(text) - 1);
		replay->names[i] = stepscope_name(kind[0] ? STEPSCOPE_KIND_OP : STEPSCOPE_KIND_RANGE, text);
	}
	for (uint32_t i = 0; i < replay->track_count; i++) {
		struct track *track = &replay->tracks[i];
		read_or_die(file, &track->count, sizeof(track->count));
		track->events = calloc(track->count, sizeof(*track->events));
		read_or_die(file, track->events, track->count * sizeof(*track->events));
	}
	fclose(file);
}

/* Emits a track with its gaps. After a delay of more than 1 ms, it does not catch up: later events keep their gaps. */
static void play(struct replay *replay, const struct track *track)
{
	int64_t next = measure_clock(CLOCK_MONOTONIC);
	double rest = 0;
	for (uint32_t i = 0; i < track->count; i++) {
		const struct event *event = &track->events[i];
		rest += event->gap_ns * replay->scale;
		next += (int64_t)rest;
		rest -= (double)(int64_t)rest;
		int64_t now;
		while ((now = measure_clock(CLOCK_MONOTONIC)) < next)
			;
		if (now > next + 1000000)
			next = now;
		if (event->name)
			stepscope_range_push_name(replay->names[event->name]);
		else
			stepscope_range_pop();
	}
	replay->events += track->count;
}

static void *play_rounds(void *argument)
{
	struct replay *replay = argument;
	measure_go_first(true); /* the drainer does not inherit the priority */
	for (int64_t i = 0; i < replay->rounds; i++)
		play(replay, replay->now);
	return NULL;
}

static void play_threads(struct replay *replay)
{
	for (uint32_t i = 0; i < replay->track_count; i++) {
		pthread_t thread;
		replay->now = &replay->tracks[i];
		pthread_create(&thread, NULL, play_rounds, replay);
		pthread_join(thread, NULL);
	}
}

static void play_rate(struct replay *replay, double rate, double seconds)
{
	double gaps = 0, events = 0;
	for (uint32_t i = 0; i < replay->track_count; i++)
		for (uint32_t k = 0; k < replay->tracks[i].count; k++, events++)
			gaps += replay->tracks[i].events[k].gap_ns;
	measure_go_first(true);
	replay->scale = events / rate * 1e9 / gaps;
	int64_t end = measure_clock(CLOCK_MONOTONIC) + (int64_t)(seconds * 1e9);
	for (uint32_t i = 0; measure_clock(CLOCK_MONOTONIC) < end; i++)
		play(replay, &replay->tracks[i % replay->track_count]);
}

int main(int argc, char **argv)
{
	struct replay replay = {.scale = 1, .rounds = 1};
	if (argc < 5 || stepscope_init(argv[2]) != 0) {
		fprintf(stderr, "replay: %s\n", argc < 5 ? "wrong arguments" : stepscope_error());
		return 2;
	}
	load(&replay, argv[1]);
	if (strcmp(argv[3], "idle") == 0)
		play_threads(&replay);
	usleep(500000); /* until the drainer has touched the pool */
	stepscope_flush();
	replay.events = 0;
	int64_t cpu = drainer_cpu_ns(), start = measure_clock(CLOCK_MONOTONIC);
	if (strcmp(argv[3], "rounds") == 0) {
		replay.rounds = atol(argv[4]);
		play_threads(&replay);
	} else if (strcmp(argv[3], "rate") == 0 && argc == 6) {
		play_rate(&replay, atof(argv[4]), atof(argv[5]));
	} else {
		usleep((useconds_t)(atof(argv[4]) * 1e6));
	}
	double seconds = (double)(measure_clock(CLOCK_MONOTONIC) - start) / 1e9;
	if (replay.events)
		stepscope_flush();
	printf("%lld %.3f %lld\n", (long long)replay.events, seconds, (long long)(drainer_cpu_ns() - cpu));
	return 0;
}
