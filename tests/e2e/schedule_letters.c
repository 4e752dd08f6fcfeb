/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule_letters.c: for test_schedule_torch.py. Reads a list of options per line and writes what happens in each of the first 64
 * steps: '.' none, 'w' warm-up, 'r' record, 'S' save; or "refused: " and why.
 */
#include "recorder/schedule.h"

#include <stdio.h>
#include <string.h>

#define STEPS 64

static void answer(const char *list)
{
	struct record_settings settings = {0};
	struct record_options options;
	char problem[256];
	char letters[STEPS + 1] = "";

	if (!record_settings_parse(&settings, list, NULL, problem, sizeof(problem)) ||
	    !record_options_resolve(&options, &settings, problem, sizeof(problem))) {
		printf("refused: %s\n", problem);
		return;
	}
	for (int step = 0; step < STEPS; step++)
		letters[step] = ".wrS"[schedule_action(&options, step, step)];
	puts(letters);
}

int main(void)
{
	char line[1024];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		answer(line);
	}
	return ferror(stdin) || fflush(stdout);
}
