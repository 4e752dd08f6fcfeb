/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup_path.h: where the files of our control group are, in version 1 (a tree per controller) and version 2 (one tree).
 */
#ifndef HOST_CGROUP_PATH_H
#define HOST_CGROUP_PATH_H

#include "host/source.h"

#define CGROUP_PATH_BYTES 1024

struct cgroup_path {
	int version;                       /* 1 or 2; 0: not found */
	char mount[CGROUP_PATH_BYTES];     /* "/sys/fs/cgroup/memory" */
	char directory[CGROUP_PATH_BYTES]; /* of our group, at or below the mount */
};

/* The group of this process for a controller ("memory", "cpu"). */
bool cgroup_path_find(struct cgroup_path *path, struct host *host, const char *controller);

/* To the group above: shortens path->directory. False at the mount. */
bool cgroup_path_up(struct cgroup_path *path);

#endif
