/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti_text.h: a text file of rows, for callbacks: no memory is asked for, and what is too much is counted. Not for several threads
 * at a time: the caller has the lock.
 */
#ifndef BENCH_CUPTI_TEXT_H
#define BENCH_CUPTI_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define TEXT_NAME_BYTES 1500 /* most of a name in a row; two of them fit */

struct text {
	const char *ending;
	int file; /* -1: none, and rows are not counted */
	int error;
	uint64_t rows, rows_left_out, rows_limit;
	size_t used;
	char data[1 << 16];
};

/* No file. */
void text_init(struct text *text, const char *ending, uint64_t rows_limit);

/* Ends the file; what was not written yet is lost when is_dropped, as in a forked child, whose parent writes it. */
void text_close(struct text *text, int is_dropped);

/* A file of this process, PREFIX-PID.ENDING, instead of the one so far; NULL: none. Returns 0, or errno. */
int text_open(struct text *text, const char *prefix);

/* A row; the format has its line end. */
__attribute__((format(printf, 2, 3))) void text_add(struct text *text, const char *format, ...);

/* Writes the rows so far. */
void text_write(struct text *text);

/* Opens PREFIX-PID.ENDING to append. Returns the file, or -1 and errno. */
int text_file(const char *prefix, const char *ending);

#endif
