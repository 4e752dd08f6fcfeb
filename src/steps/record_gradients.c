/* SPDX-License-Identifier: Apache-2.0
 *
 * record_gradients.c: see record_gradients.h.
 */
#include "steps/record_gradients.h"

/* Not every trace has the accumulation of gradients. Where optimizers are called and it has none, all backwards train. */
static void train_all(struct train_record *records, size_t count, bool steps)
{
	for (size_t i = 0; i < count; i++)
		if (records[i].is_training || !steps)
			return;
	for (size_t i = 0; i < count; i++)
		records[i].is_training = records[i].token == TOKEN_BACKWARD;
}

/* Or is of none: but what runs without a graph may lie in one. */
static bool begins_call(const struct train_record *record)
{
	return record->token == TOKEN_BACKWARD ? record->is_first : record->token != TOKEN_OP || record->is_seed;
}

/* A call of the engine is several records: those that train know of all its gradients. */
static void count_gradients(struct train_record *records, size_t count)
{
	for (size_t first = 0, end = 0; first < count; first = end) {
		struct train_record sum = {0};
		do {
			const struct train_record *record = &records[end];
			sum.count += record->token == TOKEN_BACKWARD ? record->count : 0;
			sum.part += record->token == TOKEN_BACKWARD ? record->part : 0;
		} while (++end < count && !begins_call(&records[end]));
		for (size_t i = first; i < end; i++) {
			struct train_record *record = &records[i];
			if (record->token == TOKEN_BACKWARD && record->is_training) {
				record->count = sum.count;
				record->part = sum.part;
			}
		}
	}
}

/* Where no optimizer is called what writes in place may be the update. */
static void take_updates(struct train_record *records, size_t count, bool has_calls)
{
	for (size_t i = 0; i < count; i++) {
		struct train_record *record = &records[i];
		if (has_calls)
			record->count = record->part = 0;
		else if (record_may_update(record))
			record->token = TOKEN_UPDATE;
	}
	count_gradients(records, count);
}

void record_gradients_settle(struct train_record *records, size_t count, bool steps, bool has_calls)
{
	train_all(records, count, steps);
	take_updates(records, count, has_calls);
}
