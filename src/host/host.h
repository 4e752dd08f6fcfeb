/* SPDX-License-Identifier: Apache-2.0
 *
 * host.h: samples the machine around a training program once a second: CPU per core, memory, swap, disks, network,
 * pressure (PSI) and the limits of its cgroup. It reads /proc and /sys only; values that a machine does not provide
 * are absent.
 *
 *     struct host *host = host_new("/");
 *     host_sample(host, now_ns, &sink);      // the first one is the base for rates
 *     host_sample(host, now_ns + 1000000000, &sink);
 *     host_free(host);
 *
 * Names of counters have source, device, quantity and unit, for example host.cpu.busy_ratio, host.cpu3.user_ratio,
 * host.memory.available_bytes, host.disk.sda.read_bytes_per_s, host.network.eth0.received_bytes_per_s,
 * host.pressure.io.some_ratio, host.cgroup.memory_limit_bytes.
 *
 * At most 256 cores and 64 devices of a kind are recorded; host_ledger() lists the omissions. For one thread. A sample
 * takes well below a millisecond of CPU time.
 */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The receiver of values. */
struct host_sink {
	void *context;
	/* Called once per counter; returns its number for value(). Must not keep `name`. */
	uint32_t (*counter)(void *context, const char *name);
	void (*value)(void *context, uint32_t counter, double value);
};

struct host;

/* `root` is "/" except in tests. Opens no file yet; never fails. */
struct host *host_new(const char *root);
void host_free(struct host *host); /* accepts NULL */

/* Reads every source. Rates are averages since the previous sample. */
void host_sample(struct host *host, int64_t now_ns, const struct host_sink *sink);

/* Returns the index-th omission, such as "cpu: 256 of 384 cores are recorded". NULL: no more. */
const char *host_ledger(const struct host *host, int index);

/* Counts the processes that the kernel killed because memory was full, since the first sample, in this cgroup or on
 * this machine. Returns false if the kernel does not provide the number. */
bool host_oom_kills(const struct host *host, uint64_t *count);

/* ---- the recording ----------------------------------------------------------------------------------------------- */

/* The recording of this process, role host, in a run directory: facts, and the counters of the machine. If one run has
 * several recordings of one machine, only one of them has the counters. When it ends, another takes over. */
struct host_recording;

/* Returns NULL on failure, with a reason in `problem`. */
struct host_recording *host_recording_new(const char *run_directory, const char *run_id, bool is_machine_wanted,
                                          char *problem, size_t problem_bytes);

/* All of these accept NULL. */
void host_recording_tick(struct host_recording *recording); /* once a second */
void host_recording_fact(struct host_recording *recording, const char *key, const char *value);
bool host_recording_oom_kills(const struct host_recording *recording, uint64_t *count);
void host_recording_free(struct host_recording *recording, const char *reason); /* takes the last sample and writes
                                                                                 * END */

#endif
