/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_observers.h: a library that keeps who observes a thread as libtorch_cpu.so does, or in some other way, and calls its own functions
 * by their names, as the engine does.
 */
#ifndef TESTS_FAKE_OBSERVERS_H
#define TESTS_FAKE_OBSERVERS_H

#include "agents/torch/entry.h"

enum fake_kind {
	FAKE_AS_KNOWN,
	FAKE_FLAG_MOVED,
	FAKE_LIST_MOVED,
	FAKE_MORE_IS_KEPT, /* behind what is known */
	FAKE_SET_DOES_NOTHING,
};

extern enum fake_kind fake_kind;
extern unsigned fake_sets; /* calls that came to PyTorch's own function */

struct torch_entry fake_entry(void);
void fake_engine_sets(bool is_observed, bool makes_records); /* as the engine before and behind a node */
bool fake_makes_records(void);
bool fake_is_observed(void);

#endif
