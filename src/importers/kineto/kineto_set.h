/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_set.h: several traces, one per rank, as one model on one time line: those of a directory or an archive, or
 * files named by the user.
 *
 *     struct kineto_set set;
 *     kineto_set_init(&set, model);
 *     while (...) {
 *             kineto_set_begin(&set, name);
 *             kineto_set_load(&set, name, input);
 *     }
 *     status = kineto_set_finish(&set, path, err);
 *
 * The files may come in any order.
 */
#ifndef IMPORTERS_KINETO_KINETO_SET_H
#define IMPORTERS_KINETO_KINETO_SET_H

#include "base/input_stream.h"
#include "importers/file_order.h"

#define KINETO_SET_MAX 100000u /* files */

struct kineto_set {
	struct model *model;
	struct file_order order;
	struct set_file {
		/* index among the file's processes; MODEL_NONE: nothing usable, or it was joined with another file's
		 * process */
		uint32_t process;
		uint32_t name; /* string; 0: nothing usable */
		bool has_rank;
		bool is_ours; /* our own exporter wrote it: nothing was inferred here */
	} * files;            /* in order of arrival */
	uint32_t capacity, loaded;
	struct error first;              /* first problem, by file name; the status is OK if there was none */
	char other[256];                 /* description of the first file of another kind; "" none */
	uint32_t first_file, other_file; /* indices of these files, in order of arrival */
	uint32_t problems;
	uint64_t done_bytes, total_bytes; /* totals over all files, for progress; set by the caller */
	bool has_origin;
	int64_t origin_base_ns; /* wall time of the model's 0 */
};

/* Returns the number after the word in "rank-3.json", "rank_3", "worker3_step"; -1: none. */
int64_t kineto_rank_of_name(const char *path);

void kineto_set_init(struct kineto_set *set, struct model *model);
/* Starts the next file; the following calls are about it. */
void kineto_set_begin(struct kineto_set *set, const char *name);
/* Reads a trace to its end. The ledger lists its problems; the other files are still read. */
void kineto_set_load(struct kineto_set *set, const char *name, struct input_stream *input);
/* Notes a file, or a part of the set, that is not read: a line of the ledger, and the error if nothing else can be
 * read. */
void kineto_set_problem(struct kineto_set *set, const char *name, const struct error *problem);
/* Notes a file that can only be read alone. */
void kineto_set_other(struct kineto_set *set, const char *name, const char *kind);
/* Returns the trainer of the ith file by name; MODEL_NONE: nothing in it is usable, or it was joined with another
 * file's. */
uint32_t kineto_set_process(const struct kineto_set *set, uint32_t i);
/* Joins windows of one process, and takes ranks that the files do not state from their names. Returns STATUS_INPUT with
 * the reason if nothing was loaded. */
enum status kineto_set_finish(struct kineto_set *set, const char *path, struct error *err) MUST_CHECK;

#endif
