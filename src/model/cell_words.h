/* SPDX-License-Identifier: Apache-2.0
 *
 * cell_words.h: the words in cells of tables that rules, limits and users' queries compare with. They are a promise, like the names of tables
 * and columns: a word that changes stands in the release notes. tools/embed_texts refuses a built-in rule that compares a column with a word
 * that is not listed here, so keep the form: a comment with the columns, then the words.
 */
#ifndef MODEL_CELL_WORDS_H
#define MODEL_CELL_WORDS_H

/* step_breakdown.part */
#define CELL_COMPUTE "compute kernels"
#define CELL_EXPOSED_COMMUNICATION "exposed communication"
#define CELL_EXPOSED_COPIES "exposed copies"
#define CELL_IDLE_QUEUED "idle: queued"
#define CELL_IDLE_LAUNCH "idle: launch"
#define CELL_IDLE_DATA "idle: data wait"
#define CELL_IDLE_SYNC "idle: synchronization"
#define CELL_IDLE_RUNTIME "idle: runtime calls"
#define CELL_IDLE_HOST "idle: host"
#define CELL_IDLE_NOTHING "idle: nothing recorded"

/* what_if.cut */
#define CELL_CUT_NOTHING "nothing removed"
#define CELL_CUT_DATA "data"
#define CELL_CUT_SYNC "sync"
#define CELL_CUT_LAUNCH "launch"
#define CELL_CUT_HOST "host"
#define CELL_CUT_PERIODIC "periodic"
#define CELL_CUT_GROWTH "growth"
#define CELL_CUT_COMM "comm"
#define CELL_CUT_RANK "rank"
#define CELL_CUT_DEVICE "device"
#define CELL_CUT_COPY "copy"
#define CELL_CUT_ALLOC "alloc"
#define CELL_CUT_OPTIMIZER "optimizer"
#define CELL_CUT_PRECISION "precision"
#define CELL_CUT_RECOMPUTE "recompute"
#define CELL_CUT_GARBAGE "gc"
#define CELL_CUT_COMPILE "compile"
#define CELL_CUT_CHECKPOINT "checkpoint"
#define CELL_CUT_EVALUATION "evaluation"
#define CELL_CUT_WORKERS "workers"
#define CELL_CUT_HANDOVER "handover"
#define CELL_CUT_PROCESSORS "processors"

/* what_if.place */
#define CELL_CUT_BETWEEN "between the steps"
#define CELL_CUT_ONCE "once"
#define CELL_CUT_WHOLE "the whole call"
#define CELL_CUT_HALF "bf16"
#define CELL_CUT_NO_PHASE "operators in no phase"

/* between_steps.part */
#define CELL_BETWEEN_STEPS "between steps: "
#define CELL_BETWEEN_REMOVED "between steps: operators were removed"
#define CELL_BEFORE_STEPS "before the first step"
#define CELL_STEPS "steps"
#define CELL_STEPS_MISSED "steps that were not recorded"
#define CELL_AFTER_STEPS "after the last step"

/* run_time.part */
#define CELL_RUN_START "start"
#define CELL_RUN_COMPILATION "compilation"
#define CELL_RUN_FIRST_BATCHES "first batches"
#define CELL_RUN_STEPS "steps"
#define CELL_RUN_EVALUATION "evaluation"
#define CELL_RUN_CHECKPOINTS "checkpoints"
#define CELL_RUN_IDLE "idle"
#define CELL_RUN_UNKNOWN "unknown"
#define CELL_RUN_END "end"

/* phases.name, rank_phases.phase, steps.phase */
#define CELL_PHASE_DATA "data"
#define CELL_PHASE_FORWARD "forward"
#define CELL_PHASE_BACKWARD "backward"
#define CELL_PHASE_OPTIMIZER "optimizer"
#define CELL_PHASE_COMMUNICATION "communication"
#define CELL_PHASE_CHECKPOINT "checkpoint"
#define CELL_PHASE_EVALUATION "evaluation"
#define CELL_PHASE_OTHER "other"

/* rank_phases.phase */
#define CELL_PHASE_STEP "step"

/* data_loader.part */
#define CELL_LOADER_LOOP "loop"

/* data_loader.limited_by */
#define CELL_LOADER_DATASET "dataset code"
#define CELL_LOADER_COLLATE "collate"
#define CELL_LOADER_SAMPLER "sampler"
#define CELL_LOADER_PINNING "pinning memory"
#define CELL_LOADER_HANDING_OVER "handing over"
#define CELL_LOADER_FEW_WORKERS "too few workers"
#define CELL_LOADER_START "start of workers"
#define CELL_LOADER_MAIN_PROCESS "main process"
#define CELL_LOADER_NOTHING "nothing"

/* host_waits.cause */
#define CELL_WAIT_DATA "waiting for data"
#define CELL_WAIT_VALUE "reading a value of a tensor (item, is_nonzero)"
#define CELL_WAIT_SAVE "torch.save"
#define CELL_WAIT_LOAD "torch.load"
#define CELL_WAIT_GARBAGE "garbage collection"
#define CELL_WAIT_COMPILATION "compilation"
#define CELL_WAIT_WORKERS "starting workers of a data loader"
#define CELL_WAIT_WORKERS_END "stopping workers of a data loader"
#define CELL_WAIT_EVALUATION "evaluation"
#define CELL_WAIT_CHECKPOINT "checkpoint"
#define CELL_WAIT_ISSUING "communication: issuing it"
#define CELL_WAIT_COLLECTIVE "communication: waiting for it"
#define CELL_WAIT_OPTIMIZER "optimizer"

/* operator_patterns.pattern */
#define CELL_PATTERN_ZERO "gradients filled with zeros"
#define CELL_PATTERN_SINGLE "optimizer tensor by tensor"
#define CELL_PATTERN_INDEX "loop over an index"
#define CELL_PATTERN_NEW_COPY "tensor made on the host and copied"
#define CELL_PATTERN_CONV_BIAS "bias before batch norm"
#define CELL_PATTERN_ODD_SIZES "sizes that tensor cores dislike"

/* kernels.class */
#define CELL_CLASS_COMPUTE "compute"
#define CELL_CLASS_COMMUNICATION "communication"

/* kernels.work */
#define CELL_WORK_MATRIX "matrix"
#define CELL_WORK_MEMORY "memory"

/* kernels.product */
#define CELL_PRODUCT_FLOAT32 "float32"
#define CELL_PRODUCT_TF32 "TF32"

/* communication.collective */
#define CELL_SEND_RECEIVE "sendrecv"

/* copies.direction */
#define CELL_COPY_FILL "fill"
#define CELL_COPY_TO_DEVICE "host to device"
#define CELL_COPY_TO_HOST "device to host"
#define CELL_COPY_ON_DEVICES "device to device"
#define CELL_COPY_TO_PEER "peer to peer"
#define CELL_COPY_ON_HOST "host to host"

/* memory_failures.why */
#define CELL_FAILURE_FRAGMENTED "fragmented"
#define CELL_FAILURE_FULL "full"

/* out_of_memory.device, memory.device */
#define CELL_DEVICE_HOST "host"

/* out_of_memory.how */
#define CELL_OOM_EXCEPTION "exception"
#define CELL_OOM_GROUP "control group"
#define CELL_OOM_KERNEL "kernel"
#define CELL_OOM_ALLOCATOR "allocator"

/* out_of_memory.growth_source */
#define CELL_OOM_ALLOCATIONS "allocations"
#define CELL_OOM_RESIDENT "resident memory"

/* memory_segments.pool, step_time.process, processes.process, memory.category */
#define CELL_ALL "all"

/* ops.kind, between_ranges.kind */
#define CELL_KIND_OP "op"
#define CELL_KIND_RANGE "range"
#define CELL_KIND_ANNOTATION "annotation"
#define CELL_REST "rest"

/* ops.name */
#define CELL_NO_OPERATION "(in no operation or range)"

/* launches.call */
#define CELL_NO_LAUNCH "(not in the trace)"

/* processes.role */
#define CELL_ROLE_TRAINER "trainer"

/* processes.end */
#define CELL_END_UNCLOSED "did not close its recording"

/* ledger.what */
#define CELL_LEDGER_DROPPED "dropped"
#define CELL_LEDGER_DAMAGED "damaged"
#define CELL_LEDGER_TORN_TAIL "torn tail"
#define CELL_LEDGER_MISSING_TAIL "missing tail"

/* runs.side of compare */
#define CELL_SIDE_BASE "base"
#define CELL_SIDE_NEW "new"

/* ledger.code */
#define CELL_CODE_WRITERS "several writers"
#define CELL_CODE_NO_EVENTS "no events"
#define CELL_CODE_AMBIGUOUS_STEPS "ambiguous steps"
#define CELL_CODE_UNCERTAIN_STEPS "uncertain steps"

/* ledger.where */
#define CELL_UNKNOWN_TYPE "unknown type"

#endif
