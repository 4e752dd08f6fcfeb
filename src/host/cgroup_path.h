/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup_path.h: finds the files of our control group, in version 1 (a tree per controller) and version 2 (one tree).
 */
#ifndef HOST_CGROUP_PATH_H
#define HOST_CGROUP_PATH_H

#include "host/source.h"

#define CGROUP_PATH_BYTES 1024

struct cgroup_path {
	int version;                       /* 1 or 2; 0: no group found */
	char mount[CGROUP_PATH_BYTES];     /* "/sys/fs/cgroup/memory" */
	char directory[CGROUP_PATH_BYTES]; /* of our group, at or below the mount */
};

/* Finds the group of this process for a controller ("memory", "cpu"). */
bool cgroup_path_find(struct cgroup_path *path, struct host *host, const char *controller);

/* Moves to the parent group: shortens path->directory. Returns false at the mount. */
bool cgroup_path_up(struct cgroup_path *path);

#endif
