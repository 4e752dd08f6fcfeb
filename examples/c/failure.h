/* SPDX-License-Identifier: Apache-2.0 */
/* One sentence about what went wrong. The function that fails writes it and returns -1; everybody above passes the -1
 * on; main() prints the sentence once. Nothing else in this program prints errors or exits. */
#ifndef TRAINER_FAILURE_H
#define TRAINER_FAILURE_H

struct failure {
	char text[512];
};

/* Writes the sentence (the first one wins, later ones are consequences) and returns -1. */
__attribute__((format(printf, 2, 3))) int failure_set(struct failure *failure, const char *format, ...);

/* The same for a failed allocation of `bytes` bytes. */
int failure_memory(struct failure *failure, unsigned long long bytes);

#endif
