/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti_text.h: a text file of rows, for use in callbacks: it allocates no memory and counts the rows over its limit.
 * Not thread-safe: the caller holds the lock.
 */
#ifndef BENCH_CUPTI_TEXT_H
#define BENCH_CUPTI_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define TEXT_NAME_BYTES 1500 /* longest name in a row; a row may have two */

struct text {
	const char *ending;
	int file; /* -1 without a file: rows are not counted */
	int error;
	uint64_t rows, rows_left_out, rows_limit;
	size_t used;
	char data[1 << 16];
};

/* Starts without a file. */
void text_init(struct text *text, const char *ending, uint64_t rows_limit);

/* Closes the file. is_dropped discards unwritten rows, as in a forked child: its parent writes them. */
void text_close(struct text *text, int is_dropped);

/* Replaces the file by PREFIX-PID.ENDING, or by none if prefix is NULL. Returns 0, or errno. */
int text_open(struct text *text, const char *prefix);

/* Adds a row. The format includes the line end. */
__attribute__((format(printf, 2, 3))) void text_add(struct text *text, const char *format, ...);

/* Writes the rows so far. */
void text_write(struct text *text);

/* Opens PREFIX-PID.ENDING to append. Returns the file, or -1 and errno. */
int text_file(const char *prefix, const char *ending);

#endif
