/* SPDX-License-Identifier: Apache-2.0
 *
 * diagnosis.h: what is wrong with a run, as tables: `findings` ordered by the time they would save, `checks` with one row per
 * rule (found, nothing, or "cannot tell" and why), `verdict` with one row, and `times`: what each rule took, and each table that was made for them.
 *
 *     struct diagnosis diagnosis;
 *     if (diagnosis_run(&diagnosis, &report, &rules, err))
 *             return err->status;
 *     ...
 *     diagnosis_release(&diagnosis);
 *
 * Rules are SQL over the tables of analyses. The engine asks what a rule needs, runs it, and ranks. If the run can be
 * replayed (table `what_if`), a rule names a cut, and its saving is that of the replay. A built-in rule that names none then
 * has no saving.
 */
#ifndef DIAGNOSIS_DIAGNOSIS_H
#define DIAGNOSIS_DIAGNOSIS_H

#include "analysis/report.h"
#include "analysis/step_times/run_parts.h"
#include "diagnosis/rule_set.h"
#include "replay/what_if.h"

enum finding_column {
	FINDING_RULE,
	FINDING_TITLE,
	FINDING_SEVERITY,
	FINDING_PLACE,
	FINDING_EVIDENCE,
	FINDING_SAVING,
	FINDING_RATIO,
	FINDING_TIME,
	FINDING_SAME,
	FINDING_CONFIDENCE,
	FINDING_CERTAINTY,
	FINDING_VERDICT,
	FINDING_ADVICE,
	FINDING_WRONG,
	FINDING_CUT,
	FINDING_CUT_PLACE,
	FINDING_LOW,
	FINDING_HIGH,
	FINDING_COLUMNS,
};

enum check_column {
	CHECK_RULE,
	CHECK_TITLE,
	CHECK_RESULT,
	CHECK_FINDINGS,
	CHECK_REASON,
	CHECK_COLUMNS,
};

enum time_column {
	TIME_CPU,
	TIME_KIND, /* rule, table, or shared: by tables */
	TIME_NAME,
	TIME_COLUMNS,
};

enum verdict_column {
	VERDICT_VERDICT,
	VERDICT_RATIO,
	VERDICT_MARGIN,
	VERDICT_SENTENCE,
	VERDICT_PARTS,
	VERDICT_SAVING,
	VERDICT_SAVING_RATIO,
	VERDICT_WHOLE,     /* "a step", or "the whole trace" where that has no steps: what parts are of */
	VERDICT_SAVING_OF, /* the same of savings, or "a step with the time behind it" where a finding is about that */
	VERDICT_HEADLINE, /* what is said before it, of a rule that has a headline; missing: none of these found anything */
	VERDICT_RUN,      /* parts of the wall time of the run, the largest first */
	VERDICT_LEFT_OUT, /* steps that count nowhere here, as they are start-up, or have lost work of devices, or its durations */
	VERDICT_COLUMNS,
};

#define CHECK_FOUND "found"
#define CHECK_NOTHING "nothing"
#define CHECK_CANNOT_TELL "cannot tell"

struct diagnosis {
	struct table findings, checks, verdict, times;
	const struct run_parts *run; /* where the wall time of the run goes; owned by the report */
	struct what_if *what_if;     /* the replays that tell savings, owned by the report; NULL: the run has none */
	const char *
		unsound; /* why a run of which no rule says anything may not be healthy; NULL: nothing is known against it */
	const char *
		torn; /* why nothing is said of devices, as no step of a damaged input has all that they did; NULL: one has */
};

/* Of steps that nobody chose the start-up is left out, of a damaged input those that have lost work of devices: the report is that of the
 * others then. Before the report's first table.
 * STATUS_USAGE when a rule's SELECT is wrong; then nothing needs to be released. */
enum status diagnosis_run(struct diagnosis *diagnosis, struct report *report, const struct rule_set *rules,
                          struct error *err) MUST_CHECK;
void diagnosis_release(struct diagnosis *diagnosis);

#endif
