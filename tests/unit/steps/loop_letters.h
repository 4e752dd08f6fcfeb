/* SPDX-License-Identifier: Apache-2.0
 *
 * loop_letters.h: training loops drawn as letters, one record per letter, ten nanoseconds each. The lines below a loop draw the step
 * and the phase of each letter; a dot is none:
 *
 *     check("DFZB1DFZB1E",
 *           "0000011111.",
 *           "df.bodf.bod");
 *
 * The letters:
 *
 *     data         D batch    E end of the loop's batches    L start of a loader's workers    l end of them
 *     operators    o operator    p one of an optimizer, without a number    g one that moves data    y one of a layer    F one of a graph    f one of a graph that no backward uses    s one that makes the first gradient
 *     modules      m call that makes a graph    x one whose graph no backward uses    v call that evaluates
 *                  M call of a known model that makes a graph    r one of it without a graph    R one in evaluation mode
 *                  t call in training mode, without a graph, of a module that evaluates at other times    q one of another module
 *     backwards    B makes two gradients    a adds to those two    A makes three    c adds to two and makes a third
 *                  n does something unknown with gradients    N has no detail    b does not train
 *     optimizers   P call of an unknown one    1..9 of a known one    i j k of a known one that was made after the call before
 *                  P(...) the records nested in a call    h call in a node of the backward around it    Z zero_grad    S scaler
 *     by hand      u two writes in place    w one    z two tensors set to zero
 *     ranges       [...] any    <...> the first one of a profiler in the program    {...} one that the profiler's step() begins
 *                  One that is not closed goes on.
 *     others       W torch.save    ! cut off
 *
 * The phases: d data    f forward    b backward    o optimizer    c checkpoint    e evaluation    g generation, which is no phase
 */
#ifndef UNIT_LOOP_LETTERS_H
#define UNIT_LOOP_LETTERS_H

#include "steps/infer_steps.h"
#include "steps/inference.h"

#define LETTERS 200u

struct loop {
	struct train_record records[LETTERS];
	struct train_range ranges[LETTERS];
	struct train_call hooked[LETTERS];
	size_t count, hooked_count, range_count;
	struct inference inference;
};

/* Reads a loop from letters and infers its steps and phases. The caller releases the inference. */
void read_loop(struct loop *loop, const char *text);

/* Draws the step and the phase of each letter into two texts of this length. */
void draw(const struct inference *inference, size_t length, char *steps, char *phases);

/* Fails unless the loop has these steps and phases. NULL leaves the phases unchecked. */
void check(const char *text, const char *expected_steps, const char *expected_phases);

#endif
