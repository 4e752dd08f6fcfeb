/* SPDX-License-Identifier: Apache-2.0
 *
 * units.h: writes numbers for people. Every function writes a NUL-terminated text into `out` (UNITS_BYTES large) and
 * returns it. Group separator is a blank (1 234 567); at most four significant digits.
 */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <stdint.h>

#define UNITS_BYTES 40

char *units_time(char *out, double ns);                           /* 812 ns, 14.21 us, 412.3 ms, 3.217 s, 2 h 14 min */
char *units_bytes(char *out, double bytes);                       /* 512 B, 31.2 GiB */
char *units_count(char *out, double count);                       /* 9 941 */
char *units_ratio(char *out, double ratio);                       /* 0.333 -> 33.3 %, 0.0001 -> <0.1 % */
char *units_change(char *out, double ratio);                      /* 0.031 -> +3.1 % */
char *units_rate(char *out, double per_second, const char *what); /* 9 941 tokens/s, 1.21 GFLOP/s style via SI prefix */

#endif
