/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti_probe.h: a library that the CUDA driver loads into a program (CUDA_INJECTION64_PATH=/path/libcupti_probe.so).
 * It writes the data of CUPTI: raw buffers, names of kernels, the creation of graphs. The program can call it while it
 * runs, to compare itself with and without CUPTI. It never makes the program fail: without CUPTI, or if another user
 * holds CUPTI, it only prints a message.
 *
 * Environment (all variables are optional):
 *
 *     CUPTI_PROBE_OUT         path prefix of the files below: OUT-PID.bin, ...; without it records are only counted
 *     CUPTI_PROBE_KINDS       kinds of records to enable, by number: 10,1,2
 *     CUPTI_PROBE_RUNTIME     runtime calls to enable, by callback id (CUPTI 12.6 or later), instead of kind 5
 *     CUPTI_PROBE_DRIVER      the same for driver calls, instead of kind 4
 *     CUPTI_PROBE_GRAPHS      1: write resource callbacks 9 to 23 as text
 *     CUPTI_PROBE_IDS         safe: ask for ids of graphs and nodes only in callbacks 9, 11, 13 and 20
 *     CUPTI_PROBE_LAUNCHES    1: count launch callbacks; 2: also write them
 *     CUPTI_PROBE_SUBSCRIBE   1 (cuptiSubscribe, the default), 2 (cuptiSubscribe_v2), 0 (records without a subscription),
 *                             no: wait for cupti_probe_take
 *     CUPTI_PROBE_LIBRARY     path of CUPTI, used if none is mapped and none is found by name
 *     CUPTI_PROBE_BUFFERS     limit of 1 MiB buffers (64, at most 256); records in more, small buffers are only counted
 *     CUPTI_PROBE_BYTES       limit of bytes in OUT-PID.bin (64 MiB)
 *     CUPTI_PROBE_ROWS        limit of rows in each text file (1,000,000)
 *     CUPTI_PROBE_PER_THREAD  0: one buffer for all threads; 1 (the default): one per thread
 *     CUPTI_PROBE_CLOCK       cupti: CUPTI's own clock instead of CLOCK_MONOTONIC
 *     CUPTI_PROBE_PERIOD      milliseconds after which CUPTI delivers complete buffers
 *     CUPTI_PROBE_SYNC_ALL    1: also record queries of unfinished events and streams (CUPTI 12.8 or later)
 *     CUPTI_PROBE_EVENT_TIMES 1: record events with the device's time (13.0 or later)
 *     CUPTI_PROBE_END         none: no flush at the end; force: a forced flush after the first one
 *     CUPTI_PROBE_ANYWAY      1: load CUPTI even without libcuda.so.1 (some versions then crash)
 *
 * Files, OUT-PID with these endings:
 *
 *     .bin            per buffer two uint64_t (valid bytes, CLOCK_MONOTONIC ns of completion), then its bytes unchanged
 *     .kernels.txt    start end correlation stream device context graphNodeId name
 *     .markers.txt    time flags id domain name (NVTX: NVTX_INJECTION64_PATH must name CUPTI)
 *     .callbacks.txt  time, thread, callback id, node id (result), original node id (result), graph id (result), original graph
 *                     id, exec, node type; then the dependency (15, 16) or the id of the exec (18, 19)
 *     .launches.txt   time, thread, domain, callback id, site, correlation id
 *     .marks.txt      time, text of cupti_probe_mark
 *     .json           written at the end: counts, and each call of CUPTI with its result and time
 *
 * Limits: one CUPTI per process. A forked child has none: its state is dropped, and CUPTI is not called. The functions
 * below may be called from any thread, but not from several threads at a time, and not from a callback of CUPTI.
 */
#ifndef BENCH_CUPTI_PROBE_H
#define BENCH_CUPTI_PROBE_H

#include <stddef.h>
#include <stdint.h>

#define CUPTI_PROBE_EXPORT __attribute__((visibility("default")))

/* The driver calls this within cuInit; the program may call it, too. Returns 1. */
CUPTI_PROBE_EXPORT int InitializeInjection(void);

/* Returns 0 without CUPTI, 1 if CUPTI is not ours, 2 if it is ours (subscribed, or enabled without a subscription),
 * -1 in a forked child or if CUPTI failed. */
CUPTI_PROBE_EXPORT int cupti_probe_state(void);

/* Subscribes (version 1 or 2 of the function; 0: without a subscription) and enables the wanted kinds and callbacks:
 * those of the environment, as changed by the functions below. Returns CUPTI's error of the subscription, 0 if CUPTI
 * is ours, -1 without CUPTI. */
CUPTI_PROBE_EXPORT int cupti_probe_take(int version);

/* Disables all kinds, flushes and unsubscribes. is_forced adds a forced flush, allowed only while no kernel runs.
 * Returns CUPTI's error, -1 without CUPTI. */
CUPTI_PROBE_EXPORT int cupti_probe_release(int is_forced);

/* Adds or removes a wanted kind, also in CUPTI if it is ours. Returns CUPTI's error, -1 without CUPTI. */
CUPTI_PROBE_EXPORT int cupti_probe_enable(uint32_t kind);
CUPTI_PROBE_EXPORT int cupti_probe_disable(uint32_t kind);

/* Does the same for all calls of CUPTI_PROBE_RUNTIME and CUPTI_PROBE_DRIVER. Returns the first error. */
CUPTI_PROBE_EXPORT int cupti_probe_calls(int is_on);

/* Does the same for callbacks of graphs and of launches (0: off, 1: counted, 2: written). Returns the first error. */
CUPTI_PROBE_EXPORT int cupti_probe_callbacks(int has_graphs, int launches);

/* Returns the ns that cuptiActivityFlushAll(flag) took, -1 - CUPTI's error, or -2 without CUPTI. */
CUPTI_PROBE_EXPORT int64_t cupti_probe_flush(uint32_t flag);

/* Returns the number of records of a kind so far, or of all kinds for kind 0. */
CUPTI_PROBE_EXPORT uint64_t cupti_probe_rows(uint32_t kind);

/* Returns the number of buffers that CUPTI holds now. */
CUPTI_PROBE_EXPORT uint64_t cupti_probe_buffers_out(void);

/* Writes to other files, PREFIX-PID.bin etc., or to none if NULL. Counts of records continue. Returns 0, or errno. */
CUPTI_PROBE_EXPORT int cupti_probe_open(const char *prefix);

/* Writes a row to .marks.txt. */
CUPTI_PROBE_EXPORT void cupti_probe_mark(const char *text);

/* Copies the name of the other holder of CUPTI, as the last cuptiSubscribe_v2 reported it, or "". */
CUPTI_PROBE_EXPORT void cupti_probe_holder(char *name, size_t bytes);

/* Copies the current text of .json, with its final 0. Returns the bytes that the whole text needs. */
CUPTI_PROBE_EXPORT size_t cupti_probe_report(char *text, size_t bytes);

#endif
