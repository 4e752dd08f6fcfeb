/* SPDX-License-Identifier: Apache-2.0
 *
 * record_lttng.h: the two tracepoints for LTTng-UST: a start with a 32-bit id, and an end.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench_record
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "record_lttng.h"

#if !defined(BENCH_RECORD_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_RECORD_LTTNG_H
#include <lttng/tracepoint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(bench_record, begin, LTTNG_UST_TP_ARGS(uint32_t, id),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, id, id)))
LTTNG_UST_TRACEPOINT_EVENT(bench_record, end, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
/* clang-format on */
#endif

#include <lttng/tracepoint-event.h>
