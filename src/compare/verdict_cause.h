/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict_cause.h: the origin of most of a difference, as rows of the other tables of a comparison.
 * compare/verdict_sentences.h has the words.
 */
#ifndef COMPARE_VERDICT_CAUSE_H
#define COMPARE_VERDICT_CAUSE_H

#include <stdbool.h>

struct compared_sides;
struct comparison;

enum cause_kind {
	CAUSE_UNKNOWN,       /* nothing stands out */
	CAUSE_BETWEEN_STEPS, /* the time between steps */
	CAUSE_PARTS,         /* rows of `contributions` */
	CAUSE_FUNCTION,      /* a row of `functions` */
	CAUSE_MEMORY,        /* rows of `memory` */
	CAUSE_TELEMETRY,     /* a row of `telemetry` */
};

enum cause_level { /* of `contributions` */
	CAUSE_PHASE,
	CAUSE_LATE_RANK,
	CAUSE_DEVICE,
	CAUSE_OPERATOR,
	CAUSE_KERNEL,
	CAUSE_CUDA_OPERATOR,
	CAUSE_LEVELS
};

enum cause_memory { /* levels of `memory` */
	CAUSE_CATEGORY,
	CAUSE_OPERATION,
	CAUSE_MEMORY_LEVELS
};

#define CAUSE_ROWS 3

struct cause_part {
	int rows[CAUSE_ROWS];           /* rows that are about as large as the largest */
	double calls_ratio[CAUSE_ROWS]; /* calls of the new side over those of the base; 0: about the same number */
	int count;                      /* number of rows; 0: the level has no cause */
	int more;                       /* number of further rows that are as large as these */
	bool is_among_others;           /* they are less than half of the change */
};

struct verdict_cause {
	enum cause_kind kind;
	double between_ns;                     /* CAUSE_BETWEEN_STEPS */
	struct cause_part parts[CAUSE_LEVELS]; /* CAUSE_PARTS */
	int row;                               /* CAUSE_FUNCTION, CAUSE_TELEMETRY */
	int memory[CAUSE_MEMORY_LEVELS];       /* CAUSE_MEMORY; -1: no row */
};

/* Finds the cause after all tables but `verdict` were filled: the cause of a changed step time, or, without steps, of
 * any difference. */
struct verdict_cause verdict_find_cause(const struct comparison *comparison, const struct compared_sides *sides);

#endif
