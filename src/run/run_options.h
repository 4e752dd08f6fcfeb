/* SPDX-License-Identifier: Apache-2.0
 *
 * run_options.h: the options of `stepscope run`: its own, and one per row of the recorder's table. Settings come from
 * YAML files, then STEPSCOPE_* variables, then --set, then options; the later one wins.
 */
#ifndef RUN_RUN_OPTIONS_H
#define RUN_RUN_OPTIONS_H

#include "base/error.h"
#include "base/options.h"
#include "recorder/options.h"

struct run_settings {
	struct record_settings given; /* borrows texts that live as long as the program */
	struct record_options resolved;
	char list[4096]; /* for the children: STEPSCOPE_OPTIONS */
	const char *out; /* the value of --out; NULL: not given */
	bool is_host_off;
};

/* Returns the table for command lines; it is the same at every call. */
const struct option *run_options_table(void);

/* Call after the command line was parsed into that table. */
enum status run_options_resolve(struct run_settings *settings, struct error *err) MUST_CHECK;

/* Returns true if the variable is one of the recorder's options: children find those in STEPSCOPE_OPTIONS instead.
 * `entry` is NAME=value. */
bool run_options_is_variable(const char *entry);

/* Removes all variables of stepscope from our own environment: our own recording must not follow them. */
void run_options_clear_environment(void);

#endif
