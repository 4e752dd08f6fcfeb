/* SPDX-License-Identifier: Apache-2.0
 *
 * what_if.c: the table `what_if`: the step without each cost that a replay can remove.
 */
#include "analysis/analysis_context.h"
#include "analysis/what_if/replayed.h"
#include "analysis/what_if/what_if_table.h"

static enum status run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct what_if *what_if = replayed_get(context);

	(void)err;
	what_if_table_init(table, what_if);
	what_if_table_add_cuts(table, what_if);
	return STATUS_OK;
}

const struct analysis analysis_what_if = {
	.name = "what_if",
	.row = "cost that a replay can remove",
	.question = "how long would a step take without each cost?",
	.run = run,
};
