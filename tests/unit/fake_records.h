/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_records.h: a library that makes records of operators and of backwards as libtorch_cpu.so does, or in some other way. Its records and
 * classes begin as those of C++ do.
 */
#ifndef TESTS_FAKE_RECORDS_H
#define TESTS_FAKE_RECORDS_H

#include "agents/torch/entry.h"

enum fake_way {
	FAKE_AS_KNOWN,
	FAKE_NOISY, /* the constructor writes bytes that the proof fills memory with before, as a pointer may have them */
	FAKE_PAIRS_MOVED,  /* within the callbacks */
	FAKE_FLAG_MOVED,   /* that says whether there are any */
	FAKE_NAME_MOVED,   /* within the record: what tells its kind */
	FAKE_PLACE_UNUSED, /* the constructor leaves the sequence number's place alone, as if it were not the record's */
	FAKE_OTHER_TEXT,   /* before() is told of the name in another form */
	FAKE_KEPT,         /* records are not destroyed through a slot */
	FAKE_NODE_FIRST,   /* evaluate_function() comes before the record */
	FAKE_NAME_OF_ENGINE, /* is another one */
};

extern enum fake_way fake_way;
extern unsigned fake_objects; /* that were built */
extern unsigned fake_watched; /* begins and ends that another global observer was told of, while it is there */

struct torch_entry fake_records_entry(void);
void fake_operate(int which); /* 0: aten::add, 1: aten::mul, in which aten::add is called */
void fake_backward(void);     /* of a sum: two nodes */
void fake_range(void);        /* two, of different scopes, each around an aten::add */
void fake_watch(bool is_on);
void fake_switch_off(bool is_off); /* no records are made */

#endif
