/* SPDX-License-Identifier: Apache-2.0
 *
 * data_loader_columns.c: see the header.
 */
#include "analysis/loader/data_loader_columns.h"

#define OF_PARTS                                                                                                       \
	"without workers, time from the first wait to the last, loop by loop; with workers, time from each worker's "  \
	"first batch to its last"

const struct table_column data_loader_columns[LOADER_COLUMNS] = {
	[LOADER_PROCESS] = {.name = "process",
                            .type = TABLE_TEXT,
                            .role = ROLE_KEY,
                            .definition = "process that loops over the loader: rank, or pid"},
	[LOADER_NAME] = {.name = "loader",
                         .type = TABLE_TEXT,
                         .role = ROLE_KEY,
                         .definition = "number of the loader in the process, and its data"},
	[LOADER_PART] =
		{.name = "part",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition = "loop: the loop that waits for batches, with all its workers; otherwise one worker"},
	[LOADER_BATCHES] = {.name = "batches",
                            .type = TABLE_INT,
                            .unit = UNIT_COUNT,
                            .definition = "batches that the loop received; for a worker, batches that it made",
                            .rules = RULE_NOT_NEGATIVE},
	[LOADER_WAIT] = {.name = "wait_ns",
                         .title = "wait",
                         .type = TABLE_INT,
                         .unit = UNIT_NS,
                         .definition = "time that the loop waited for batches",
                         .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                         .other = "loop_ns"},
	[LOADER_WAIT_P50] = {.name = "wait_p50_ns",
                             .title = "p50",
                             .type = TABLE_DOUBLE,
                             .unit = UNIT_NS,
                             .definition = "median wait for a batch"},
	[LOADER_WAIT_MAX] = {.name = "wait_max_ns",
                             .title = "max",
                             .type = TABLE_DOUBLE,
                             .unit = UNIT_NS,
                             .definition = "longest wait for a batch"},
	[LOADER_WAIT_RATIO] =
		{.name = "wait_ratio",
                 .title = "wait %",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .definition = "share of the loop's time in which it waited",
                 .denominator =
                         "time from the first wait to the last, loop by loop, without steps that have no operators and so no "
                         "recorded waits",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[LOADER_LOOP] = {.name = "loop_ns",
                         .title = "loop",
                         .type = TABLE_INT,
                         .unit = UNIT_NS,
                         .definition = "time from the first wait to the last, loop by loop",
                         .rules = RULE_NOT_NEGATIVE},
	[LOADER_DATASET] = {.name = "dataset_ns",
                            .title = "dataset",
                            .type = TABLE_INT,
                            .unit = UNIT_NS,
                            .definition = "time in the dataset's code",
                            .rules = RULE_NOT_NEGATIVE},
	[LOADER_DATASET_RATIO] = {.name = "dataset_ratio",
                                  .title = "dataset %",
                                  .type = TABLE_DOUBLE,
                                  .unit = UNIT_RATIO,
                                  .role = ROLE_SHARE,
                                  .definition = "share of time in the dataset's code",
                                  .denominator = OF_PARTS,
                                  .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[LOADER_COLLATE] = {.name = "collate_ns",
                            .title = "collate",
                            .type = TABLE_INT,
                            .unit = UNIT_NS,
                            .definition = "time in the function that makes a batch of samples",
                            .rules = RULE_NOT_NEGATIVE},
	[LOADER_COLLATE_RATIO] = {.name = "collate_ratio",
                                  .title = "collate %",
                                  .type = TABLE_DOUBLE,
                                  .unit = UNIT_RATIO,
                                  .role = ROLE_SHARE,
                                  .definition = "share of time in the function that makes a batch of samples",
                                  .denominator = OF_PARTS,
                                  .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[LOADER_SAMPLER] =
		{.name = "sampler_ns",
                 .title = "sampler",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "part of the waits in the sampler, which chooses the samples of a batch; it runs in the loop's "
                         "process, even with workers",
                 .rules = RULE_NOT_NEGATIVE},
	[LOADER_SAMPLER_RATIO] = {.name = "sampler_ratio",
                                  .title = "sampler %",
                                  .type = TABLE_DOUBLE,
                                  .unit = UNIT_RATIO,
                                  .role = ROLE_SHARE,
                                  .definition = "share of the loop's time in the sampler",
                                  .denominator = "time from the first wait to the last, loop by loop",
                                  .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[LOADER_PIN] =
		{.name = "pin_ns",
                 .title = "pinning",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "time in pinning batches for the device: part of the waits; with workers, in a separate thread",
                 .rules = RULE_NOT_NEGATIVE},
	[LOADER_PIN_RATIO] =
		{.name = "pin_ratio",
                 .title = "pinning %",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .definition = "share of time in pinning",
                 .denominator =
                         "time from the first wait to the last, loop by loop; with workers, time of the pinning thread from "
                         "its first batch to its last",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[LOADER_IDLE_RATIO] = {.name = "idle_ratio",
                               .title = "idle %",
                               .type = TABLE_DOUBLE,
                               .unit = UNIT_RATIO,
                               .role = ROLE_SHARE,
                               .definition = "share of time in which a worker made no batch",
                               .denominator = "time from the worker's first batch to its last",
                               .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[LOADER_READY] = {.name = "ready",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_NONE,
                          .definition = "mean number of batches that were ready when the loop asked for one"},
	[LOADER_START] =
		{.name = "startup_ns",
                 .title = "start",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "for a worker, time from its first instant to its first batch; for a loader, waits for the first "
                         "batches of its loops, one per worker",
                 .rules = RULE_NOT_NEGATIVE},
	[LOADER_WORKERS] =
		{.name = "workers_ns",
                 .title = "starting",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "time in iter(loader), before the first waits: starting the workers (in each loop, without "
                         "persistent_workers) and the sampler for their first batches. It covers all steps, including those "
                         "without recorded waits",
                 .rules = RULE_NOT_NEGATIVE},
	[LOADER_DISPATCHED] =
		{.name = "dispatched",
                 .type = TABLE_INT,
                 .unit = UNIT_COUNT,
                 .definition =
                         "batches whose samples the loop sent to its workers, in all steps; for a worker, those sent to it",
                 .rules = RULE_NOT_NEGATIVE,
                 .is_hidden = true},
	[LOADER_DISPATCH] = {.name = "dispatch_ns",
                             .title = "dispatch",
                             .type = TABLE_INT,
                             .unit = UNIT_NS,
                             .definition = "time in which the loop chose these samples and sent them, in "
                                           "all steps",
                             .rules = RULE_NOT_NEGATIVE,
                             .is_hidden = true},
	[LOADER_PICKLING] =
		{.name = "pickling_ns",
                 .title = "pickling",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition = "time in which workers pickled finished batches, in a thread beside the dataset, "
                               "in all steps",
                 .rules = RULE_NOT_NEGATIVE,
                 .is_hidden = true},
	[LOADER_PICKLED_BYTES] =
		{.name = "pickled_bytes",
                 .title = "pickled",
                 .type = TABLE_INT,
                 .unit = UNIT_BYTES,
                 .definition = "bytes of the pickled batches; the data of tensors is in shared memory and not in them",
                 .rules = RULE_NOT_NEGATIVE,
                 .is_hidden = true},
	[LOADER_UNPICKLING] =
		{.name = "unpickling_ns",
                 .title = "unpickling",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition =
                         "time in which batches of workers were unpickled, in all steps: in the loop's waits, or in the "
                         "thread that pins",
                 .rules = RULE_NOT_NEGATIVE,
                 .is_hidden = true},
	[LOADER_END] = {.name = "end", .type = TABLE_TEXT, .definition = "how the worker ended, if it failed"},
	[LOADER_LIMIT] =
		{.name = "limited_by",
                 .title = "limited by",
                 .type = TABLE_TEXT,
                 .definition =
                         "dataset code, collate, sampler, pinning memory, handing over, main process, too few workers, start of workers, or nothing"},
	[LOADER_SENTENCE] = {.name = "sentence",
                             .type = TABLE_TEXT,
                             .definition = "the limit in one sentence, with the numbers"},
};
