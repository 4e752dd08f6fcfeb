/* SPDX-License-Identifier: Apache-2.0
 *
 * processors.h: how many processors the process may use, as facts: `processors`, the number in the calling thread's
 * affinity mask, and `processors.quota`, the processors that its control groups allow ("1.50"; "none": no limit).
 */
#ifndef RECORDER_PROCESSORS_H
#define RECORDER_PROCESSORS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the number of processors in the affinity mask; 0: unknown. */
unsigned processors_allowed(void);

/* Writes the quota, or the reason why it is not measured. Opens up to some ten files, without malloc. */
void processors_quota_text(char *text, size_t bytes);

/* For tests: finds the quota with these files in place of /proc/self/cgroup and /sys/fs/cgroup. Returns false if no
 * group has a file about the quota. *quota 0: no limit. */
bool processors_find_quota(const char *groups, const char *mounted, double *quota);

#endif
