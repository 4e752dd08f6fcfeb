/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_set.h: several traces, one per rank, as one model on one time line: those of a directory or an archive, or files that were named.
 *
 *     struct kineto_set set;
 *     kineto_set_init(&set, model);
 *     while (...) {
 *             kineto_set_begin(&set, name);
 *             kineto_set_load(&set, name, input);
 *     }
 *     status = kineto_set_finish(&set, path, err);
 *
 * The order in which they come does not matter.
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
		uint32_t process; /* among those of the file; MODEL_NONE: nothing in it can be used, or it is told elsewhere */
		bool has_rank;
	} * files; /* as they came */
	uint32_t capacity, loaded;
	struct error first;              /* problem, by the names of the files; the status is OK when there was none */
	char other[256];                 /* the first file that is of another kind, in words; "" none */
	uint32_t first_file, other_file; /* these, as they came */
	uint32_t problems;
	uint64_t done_bytes, total_bytes; /* of all files, for who wants to know; set by the caller */
	bool has_origin;
	int64_t origin_base_ns; /* wall time of the model's 0 */
};

/* "rank-3.json", "rank_3", "worker3_step": the number behind the word; -1: none. */
int64_t kineto_rank_of_name(const char *path);

void kineto_set_init(struct kineto_set *set, struct model *model);
/* The next file; what follows is of it. */
void kineto_set_begin(struct kineto_set *set, const char *name);
/* Reads a trace to its end. What is wrong with it goes into the ledger; the others are read anyway. */
void kineto_set_load(struct kineto_set *set, const char *name, struct input_stream *input);
/* A file, or a part of the set, that is not read: a line of the ledger, and the reason when nothing else can be read. */
void kineto_set_problem(struct kineto_set *set, const char *name, const struct error *problem);
/* A file that is read only by itself. */
void kineto_set_other(struct kineto_set *set, const char *name, const char *kind);
/* The trainer of the file that is the ith by name; MODEL_NONE: nothing in it can be used, or it is one with that of another file. */
uint32_t kineto_set_process(const struct kineto_set *set, uint32_t i);
/* Windows of one process become one. Ranks that the files do not say come from their names. STATUS_INPUT, and why, when nothing was loaded. */
enum status kineto_set_finish(struct kineto_set *set, const char *path, struct error *err) MUST_CHECK;

#endif
