/* SPDX-License-Identifier: Apache-2.0
 *
 * export.c: measures the time of each exporter for a model of N slices in memory: formatting alone, and to a file.
 * Names and lengths are those of a small training loop. snprintf with zlib, as most programs use it, is the
 * comparison.
 *
 *     export SLICES DIRECTORY     prints lines of: name, wall s, CPU s, slices, bytes formatted, bytes in the file
 */
#include "model/model.h"
#include "output/export/exporter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define OPS_PER_STEP 2000
#define THREADS 2

static double now_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double cpu_s(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static uint64_t random_state = 42;
static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Adds an op, which may have one child. Lengths are 0.2 to 3.4 us. */
static int64_t add_op(struct model *model, uint32_t track, int64_t at_ns, const uint32_t *names, uint64_t *left)
{
	int64_t length = 400 + (int64_t)(random_u64() % 3000);
	bool has_child = *left > 1 && random_u64() % 2;

	model_span_begin(model, track, at_ns, SPAN_OP, names[random_u64() % 60]);
	--*left;
	if (has_child) {
		model_span_complete(model, track, at_ns + length / 8, length / 2, SPAN_OP, names[random_u64() % 60]);
		--*left;
	}
	model_span_end(model, track, at_ns + length, 0);
	return at_ns + length + (int64_t)(random_u64() % 200);
}

static void fill_thread(struct model *model, uint32_t process, uint32_t track, uint64_t slices, bool has_steps,
                        const uint32_t *names)
{
	int64_t at_ns = INT64_C(3600000000000);
	uint64_t left = slices;

	for (int64_t number = 0; left; number++) {
		uint64_t step_left = left < OPS_PER_STEP ? left : OPS_PER_STEP;
		int64_t start_ns = at_ns;
		uint32_t row = MODEL_NONE;

		left -= step_left;
		if (has_steps) {
			row = model_span_begin(model, track, at_ns, SPAN_STEP, names[60]);
			step_left--;
		}
		while (step_left)
			at_ns = add_op(model, track, at_ns + 10, names, &step_left);
		if (has_steps) {
			model_span_end(model, track, at_ns, 0);
			*model_add_step(model) = (struct model_step){.process = process,
			                                             .track = track,
			                                             .row = row,
			                                             .number = number,
			                                             .start_ns = start_ns,
			                                             .end_ns = at_ns};
		}
	}
}

static void fill(struct model *model, uint64_t slices)
{
	uint32_t process = model_add_process(model);
	uint32_t names[61];
	char text[64];

	for (unsigned i = 0; i < 60; i++) {
		snprintf(text, sizeof(text), "%s_%u", i % 3 ? "layer_norm_backward" : "matmul", i);
		names[i] = intern_add(&model->strings, text);
	}
	names[60] = intern_add(&model->strings, "step");
	model->processes[process].pid = 4242;
	model->processes[process].name = intern_add(&model->strings, "train");
	model->processes[process].realtime_offset_ns = INT64_C(1790857026000000000);
	for (unsigned i = 0; i < THREADS; i++) {
		uint32_t track = model_add_track(model, process, TRACK_THREAD);

		model->tracks[track]->tid = 4242 + i;
		fill_thread(model, process, track, slices / THREADS, i == 0, names);
	}
	model_finish(model);
}

static void report(const char *what, uint64_t slices, double wall, double cpu, uint64_t raw, uint64_t file)
{
	printf("%s\t%.3f\t%.3f\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", what, wall, cpu, slices, raw, file);
	fflush(stdout);
}

static void run(const struct model *model, const char *name, const char *path, const char *what)
{
	struct export_options options = {0};
	struct export_result result;
	struct error err;
	double start = now_s(), cpu = cpu_s(), wall;

	if (exporter_find(name)->write(model, path, &options, &result, &err) != STATUS_OK) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	wall = now_s() - start;
	report(what, result.slices, wall, cpu_s() - cpu, result.bytes_raw, result.bytes_file);
	if (strcmp(path, "/dev/null") != 0)
		unlink(path);
}

/* The comparison: one snprintf per slice, and zlib's gzip functions with common settings. */
static void run_plain(const struct model *model, const char *path, const char *mode, const char *what)
{
	gzFile file = gzopen(path, mode);
	double start = now_s(), cpu = cpu_s(), wall;
	uint64_t slices = 0, raw = 0;
	struct stat info;

	for (uint32_t t = 0; t < model->tracks_count; t++) {
		const struct track *track = model->tracks[t];

		for (uint32_t c = 0; c < track->chunk_count; c++) {
			const struct span_chunk *chunk = track->chunks[c];

			for (uint32_t i = 0; i < chunk->count; i++) {
				char line[512];
				int length = snprintf(
					line, sizeof(line),
					"{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"%s\", \"pid\": 4242, \"tid\": %" PRId64
					", \"ts\": %.3f, \"dur\": %.3f, \"args\": {\"External id\": %" PRIu64 "}},\n",
					model_text(model, chunk->name[i]), track->tid, (double)chunk->start_ns[i] / 1e3,
					(double)chunk->dur_ns[i] / 1e3, ++slices);

				gzwrite(file, line, (unsigned)length);
				raw += (uint64_t)length;
			}
		}
	}
	gzclose(file);
	stat(path, &info);
	wall = now_s() - start;
	report(what, slices, wall, cpu_s() - cpu, raw, (uint64_t)info.st_size);
	unlink(path);
}

int main(int argc, char **argv)
{
	static const char *const files[][3] = {
		{"chrome", "json.gz", "chrome .json.gz"},
		{"chrome", "json.zst", "chrome .json.zst"},
		{"chrome", "json", "chrome .json"},
		{"perfetto", "pftrace", "perfetto .pftrace"},
		{"perfetto", "pftrace.gz", "perfetto .pftrace.gz"},
	};
	char path[4096];
	struct model model;

	if (argc != 3)
		return 2;
	model_init(&model, (uint64_t)4 << 30);
	fill(&model, strtoull(argv[1], NULL, 10));
	run(&model, "chrome", "/dev/null", "chrome, formatted only");
	run(&model, "perfetto", "/dev/null", "perfetto, formatted only");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/out.%s", argv[2], files[i][1]);
		run(&model, files[i][0], path, files[i][2]);
	}
	snprintf(path, sizeof(path), "%s/plain.json.gz", argv[2]);
	run_plain(&model, path, "wb6", "snprintf + zlib -6");
	run_plain(&model, path, "wb1", "snprintf + zlib -1");
	model_release(&model);
	return 0;
}
