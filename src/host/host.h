/* SPDX-License-Identifier: Apache-2.0
 *
 * host.h: the machine around a training program, once a second: CPU per core, memory, swap, disks, network, pressure
 * (PSI) and the limits of its cgroup. Read from /proc and /sys only; what a machine does not tell is simply absent.
 *
 *     struct host *host = host_new("/");
 *     host_sample(host, now_ns, &sink);      // the first one is the base for rates
 *     host_sample(host, now_ns + 1000000000, &sink);
 *     host_free(host);
 *
 * Names of counters say source, device, quantity and unit: host.cpu.busy_ratio, host.cpu3.user_ratio, host.memory.available_bytes,
 * host.disk.sda.read_bytes_per_s, host.network.eth0.received_bytes_per_s, host.pressure.io.some_ratio,
 * host.cgroup.memory_limit_bytes. At most 256 cores and 64 devices of a kind are recorded; host_ledger() tells what was left out.
 *
 * One thread. Costs well below a millisecond of CPU time per sample.
 */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where values go. */
struct host_sink {
	void *context;
	/* Called once per counter; returns its number for value(). Must not keep `name`. */
	uint32_t (*counter)(void *context, const char *name);
	void (*value)(void *context, uint32_t counter, double value);
};

struct host;

/* `root` is "/" but for tests. Opens nothing yet; never fails. */
struct host *host_new(const char *root);
void host_free(struct host *host); /* accepts NULL */

/* Reads every source. Rates are over the time since the sample before. */
void host_sample(struct host *host, int64_t now_ns, const struct host_sink *sink);

/* What is not recorded, the index-th such thing: "cpu: 256 of 384 cores are recorded". NULL: no more. */
const char *host_ledger(const struct host *host, int index);

/* How often the kernel killed a process for want of memory since the first sample, in this cgroup or on this machine. False:
 * the kernel does not tell. */
bool host_oom_kills(const struct host *host, uint64_t *count);

/* ---- the recording ---------------------------------------------------------------------------------------------------- */

/* The recording of this process, role host, in a run directory: facts, and the machine's counters. Of several recordings of one
 * machine in one run only one has the counters; when it ends another takes over. */
struct host_recording;

/* NULL with a reason in `problem`. */
struct host_recording *host_recording_new(const char *run_directory, const char *run_id, bool is_machine_wanted,
                                          char *problem, size_t problem_bytes);

/* All of these accept NULL. */
void host_recording_tick(struct host_recording *recording); /* once a second */
void host_recording_fact(struct host_recording *recording, const char *key, const char *value);
bool host_recording_oom_kills(const struct host_recording *recording, uint64_t *count);
void host_recording_free(struct host_recording *recording, const char *reason); /* last sample, END */

#endif
