/* SPDX-License-Identifier: Apache-2.0
 *
 * run_manifest.h: run.json, schema stepscope.run/1: who started which command, where and with which settings. It is
 * written once at the start, for people and scripts; readers of recordings do not need it.
 */
#ifndef RUN_RUN_MANIFEST_H
#define RUN_RUN_MANIFEST_H

#include "base/buffer.h"
#include "base/error.h"
#include "recorder/options.h"
#include "run/run_directory.h"

/* Writes run.json unless it exists. */
enum status run_manifest_write(const struct run_directory *directory, char *const *argv,
                               const struct record_settings *settings, struct error *err) MUST_CHECK;

struct run_manifest_ids {
	char run_id[64];
	char job[160];
};
/* Reads the ids of an existing run.json. Returns false if it is missing or unreadable. */
bool run_manifest_read_ids(struct run_manifest_ids *ids, int directory_fd);

void run_manifest_remove(int directory_fd);

/* Adds the command line as one line, quoted where a shell needs it, without secrets. */
void run_manifest_command_line(struct buffer *out, char *const *argv);

#endif
