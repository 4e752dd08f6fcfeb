/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_observers.c: see fake_observers.h.
 */
#include "fake_observers.h"

#include <string.h>

#define API __attribute__((visibility("default")))

API enum fake_kind fake_kind;
API unsigned fake_sets;

static uint64_t kept[16], room[7];

API const uint64_t *_ZN2at24get_record_function_tls_Ev(void);
API void _ZN2at24set_record_function_tls_ERKNS_17RecordFunctionTLSE(const uint64_t *given);

static uint64_t *list(uint64_t *words)
{
	return words + (fake_kind == FAKE_LIST_MOVED);
}

static uint8_t *flag(uint64_t *words)
{
	return fake_kind == FAKE_LIST_MOVED   ? (uint8_t *)words
	       : fake_kind == FAKE_FLAG_MOVED ? (uint8_t *)(words + 3) + 1
	                                      : (uint8_t *)(words + 3);
}

const uint64_t *_ZN2at24get_record_function_tls_Ev(void)
{
	return kept;
}

void _ZN2at24set_record_function_tls_ERKNS_17RecordFunctionTLSE(const uint64_t *given)
{
	fake_sets++;
	if (fake_kind != FAKE_SET_DOES_NOTHING)
		memcpy(kept, given, (fake_kind == FAKE_MORE_IS_KEPT ? 7 : 4) * sizeof(uint64_t));
}

static uint64_t add(struct torch_callback callback)
{
	list(kept)[0] = (uint64_t)(uintptr_t)room;
	list(kept)[1] = list(kept)[2] = (uint64_t)(uintptr_t)(room + 7);
	return 1;
}

static void remove_it(uint64_t handle)
{
	list(kept)[1] = list(kept)[0];
}

static bool is_observed(void)
{
	return list(kept)[0] != list(kept)[1];
}

static void make(bool is_on)
{
	*flag(kept) = is_on;
}

static bool makes(void)
{
	return *flag(kept);
}

API struct torch_entry fake_entry(void)
{
	make(true);
	return (struct torch_entry){.add_thread_callback = add,
	                            .remove_callback = remove_it,
	                            .has_thread_callbacks = is_observed,
	                            .make_records = make,
	                            .makes_records = makes};
}

API void fake_engine_sets(bool is_observed, bool makes_records)
{
	uint64_t words[16] = {0};
	list(words)[0] = (uint64_t)(uintptr_t)room;
	list(words)[1] = list(words)[2] = (uint64_t)(uintptr_t)(is_observed ? room + 7 : room);
	*flag(words) = makes_records;
	_ZN2at24set_record_function_tls_ERKNS_17RecordFunctionTLSE(words);
}

API bool fake_makes_records(void)
{
	return makes();
}

API bool fake_is_observed(void)
{
	return is_observed();
}
