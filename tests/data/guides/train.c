#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <stepscope/stepscope.h>

enum { ROWS = 2000, INPUTS = 64, STEPS = 100 };

static void load(double *batch, long read_ms)
{
	stepscope_range_push("read file");
	nanosleep(&(struct timespec){.tv_nsec = read_ms * 1000000}, NULL); /* stands for reading a file */
	stepscope_range_pop();
	for (int i = 0; i < ROWS * INPUTS; i++)
		batch[i] = rand() / (double)RAND_MAX;
}

int main(int argc, char **argv)
{
	long read_ms = argc > 1 ? atol(argv[1]) : 4;
	double *batch = malloc(sizeof(double) * ROWS * INPUTS), *error = malloc(sizeof(double) * ROWS), weights[INPUTS] = {0};

	for (long step = 0; step < STEPS; step++) {
		stepscope_step_begin(step);
		stepscope_phase_begin(STEPSCOPE_PHASE_DATA);
		load(batch, read_ms);
		stepscope_phase_switch(STEPSCOPE_PHASE_FORWARD);
		double loss = 0;
		for (int row = 0; row < ROWS; row++) {
			error[row] = -1;
			for (int i = 0; i < INPUTS; i++)
				error[row] += weights[i] * batch[row * INPUTS + i];
			loss += error[row] * error[row] / ROWS;
		}
		stepscope_phase_switch(STEPSCOPE_PHASE_BACKWARD);
		double gradient[INPUTS] = {0};
		for (int row = 0; row < ROWS; row++)
			for (int i = 0; i < INPUTS; i++)
				gradient[i] += error[row] * batch[row * INPUTS + i] / ROWS;
		stepscope_phase_switch(STEPSCOPE_PHASE_OPTIMIZER);
		for (int i = 0; i < INPUTS; i++)
			weights[i] -= 0.01 * gradient[i];
		stepscope_phase_end();
		stepscope_metric("loss", loss);
		stepscope_step_samples(ROWS);
		stepscope_step_end();
	}
	free(batch);
	free(error);
}
