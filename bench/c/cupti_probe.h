/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti_probe.h: a library that the CUDA driver loads into a program (CUDA_INJECTION64_PATH=/path/libcupti_probe.so) and that keeps
 * what CUPTI tells: raw buffers, names of kernels, how graphs came about. A program can call it, too, while it runs, to compare
 * itself with and without. It never fails the program: without CUPTI, or when CUPTI belongs to another, it only says so.
 *
 * Environment (all may be missing):
 *
 *     CUPTI_PROBE_OUT         where to write: OUT-PID.bin and the others below; without it nothing is written, only counted
 *     CUPTI_PROBE_KINDS       kinds of records to enable, by number: 10,1,2
 *     CUPTI_PROBE_RUNTIME     runtime calls to enable one by one, by callback id (CUPTI 12.6 or later), instead of kind 5
 *     CUPTI_PROBE_DRIVER      driver calls, the same, instead of kind 4
 *     CUPTI_PROBE_GRAPHS      1: resource callbacks 9 to 23 as text
 *     CUPTI_PROBE_IDS         safe: asks for ids of graphs and nodes in callbacks 9, 11, 13 and 20 only
 *     CUPTI_PROBE_LAUNCHES    1: launch callbacks, counted; 2: also written
 *     CUPTI_PROBE_SUBSCRIBE   1 (cuptiSubscribe, the default), 2 (cuptiSubscribe_v2), 0 (records without a subscription),
 *                             no: waits for cupti_probe_take
 *     CUPTI_PROBE_LIBRARY     CUPTI's path, for when none is mapped and none is found by its name
 *     CUPTI_PROBE_BUFFERS     most buffers of 1 MiB, 64; beyond that records are counted in small ones, and not kept
 *     CUPTI_PROBE_BYTES       most bytes of OUT-PID.bin, 64 MiB
 *     CUPTI_PROBE_ROWS        most rows of each text file, 1,000,000
 *     CUPTI_PROBE_PER_THREAD  0: one buffer for all threads; 1, the default: one for each
 *     CUPTI_PROBE_CLOCK       cupti: CUPTI's own clock instead of CLOCK_MONOTONIC
 *     CUPTI_PROBE_PERIOD      milliseconds after which CUPTI delivers what is complete
 *     CUPTI_PROBE_SYNC_ALL    1: also queries of events and streams that were not done yet (CUPTI 12.8 or later)
 *     CUPTI_PROBE_EVENT_TIMES 1: records of events with the device's time (13.0 or later)
 *     CUPTI_PROBE_END         none: no flush at the end; force: a forced one behind the first
 *     CUPTI_PROBE_ANYWAY      1: load CUPTI although no libcuda.so.1 is there (some versions crash then)
 *
 * Files, OUT-PID with these endings:
 *
 *     .bin            per buffer two uint64_t (valid bytes, CLOCK_MONOTONIC ns of completion), then the bytes as CUPTI left them
 *     .kernels.txt    start end correlation stream device context graphNodeId name
 *     .markers.txt    time flags id domain name (NVTX: NVTX_INJECTION64_PATH must name CUPTI)
 *     .callbacks.txt  time, thread, callback id, node id (result), original node id (result), graph id (result), original graph
 *                     id, exec, node type; behind that the dependency (15, 16) or the id of the exec (17 to 19)
 *     .launches.txt   time, thread, domain, callback id, site, correlation id
 *     .marks.txt      time, text of cupti_probe_mark
 *     .json           written at the end: counts, and each call of CUPTI with its result and time
 *
 * Limits: one CUPTI per process; a forked child has none (state is dropped, CUPTI is not called); the functions below may be
 * called from any thread, but not from several at a time, and not from a callback of CUPTI.
 */
#ifndef BENCH_CUPTI_PROBE_H
#define BENCH_CUPTI_PROBE_H

#include <stddef.h>
#include <stdint.h>

#define CUPTI_PROBE_EXPORT __attribute__((visibility("default")))

/* What the driver calls within cuInit; may be called by hand as well. Returns 1. */
CUPTI_PROBE_EXPORT int InitializeInjection(void);

/* 0: no CUPTI; 1: there, not ours; 2: ours (subscribed, or enabled without a subscription); -1: in a forked child, or CUPTI failed. */
CUPTI_PROBE_EXPORT int cupti_probe_state(void);

/* Subscribes (1, 2: by which function; 0: not at all) and enables what is wanted: the environment's, changed by the functions
 * below. Returns CUPTI's error of the subscription, 0 when it is ours, -1 without CUPTI. */
CUPTI_PROBE_EXPORT int cupti_probe_take(int version);

/* Disables all, flushes (also forced: only when no kernel runs), unsubscribes. Returns CUPTI's error, -1 without CUPTI. */
CUPTI_PROBE_EXPORT int cupti_probe_release(int is_forced);

/* Wants a kind or no longer, and says so to CUPTI when it is ours. Returns CUPTI's error, -1 without CUPTI. */
CUPTI_PROBE_EXPORT int cupti_probe_enable(uint32_t kind);
CUPTI_PROBE_EXPORT int cupti_probe_disable(uint32_t kind);

/* The same for all calls of CUPTI_PROBE_RUNTIME and CUPTI_PROBE_DRIVER. Returns the first error. */
CUPTI_PROBE_EXPORT int cupti_probe_calls(int is_on);

/* The same for callbacks: of graphs, and of launches (0, 1: counted, 2: written). Returns the first error. */
CUPTI_PROBE_EXPORT int cupti_probe_callbacks(int has_graphs, int launches);

/* Returns the nanoseconds that cuptiActivityFlushAll(flag) took, or -1 - CUPTI's error. */
CUPTI_PROBE_EXPORT int64_t cupti_probe_flush(uint32_t flag);

/* Records seen so far of a kind; of all for kind 0. */
CUPTI_PROBE_EXPORT uint64_t cupti_probe_rows(uint32_t kind);

/* Buffers that CUPTI holds at the moment. */
CUPTI_PROBE_EXPORT uint64_t cupti_probe_buffers_out(void);

/* Writes to other files from here on: PREFIX-PID.bin and so on; counts go on. NULL: nowhere. Returns 0, or errno. */
CUPTI_PROBE_EXPORT int cupti_probe_open(const char *prefix);

/* One row in .marks.txt. */
CUPTI_PROBE_EXPORT void cupti_probe_mark(const char *text);

/* Fills in what the other holder of CUPTI calls itself, as the last cuptiSubscribe_v2 told; "" when it told nothing. */
CUPTI_PROBE_EXPORT void cupti_probe_holder(char *name, size_t bytes);

/* Fills in the text of .json as of now, with its 0; returns the bytes that the whole takes. */
CUPTI_PROBE_EXPORT size_t cupti_probe_report(char *text, size_t bytes);

#endif
