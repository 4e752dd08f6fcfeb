/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict_sentences.h: a verdict in words: the texts of the table `verdict`, of a gate's message and of METRIC_REASON.
 * Nothing is decided here. verdict_sentences.c has the answer and its certainty, verdict_sentences_cause.c the cause,
 * verdict_sentences_cuts.c the costs that replays remove, verdict_sentences_facts.c the facts about the runs; each file begins with its words.
 *
 * The words are in compare/, not in output/, because they are cells: every writer prints the same table, as text, CSV
 * or JSON. The gate, which output/ does not own, uses the sentence too.
 *
 * All texts are in the arena or constants. A function returns NULL if its cell is missing.
 */
#ifndef COMPARE_VERDICT_SENTENCES_H
#define COMPARE_VERDICT_SENTENCES_H

#include "compare/comparison_build.h"

struct verdict_words {
	const struct comparison *comparison; /* all its tables except `verdict` */
	const struct compared_sides *sides;
	const struct verdict *verdict;
	struct arena *arena;
};

/* "a step takes 10.0 % longer, 11.00 ms instead of 10.00 ms (95 %: +9.9 % to +10.1 %); unchecked: hardware" */
const char *verdict_sentence(const struct verdict_words *words);

/* "not the same: torch 2.12 -> 2.13" */
const char *verdict_explanation_text(const struct verdict_words *words);

/* "operator: aten::mm +1.250 ms (1.5 times the calls); kernel: ..." */
const char *verdict_cause_text(const struct verdict_words *words);

/* "data +35.04 ms, launch -1.20 ms; 210.0 us of the difference are explained by no cut"; or the side that has no replay,
 * if the other side has one. NULL: neither has a replay, or the difference is too small. */
const char *verdict_by_cut_text(const struct verdict_words *words);

/* "5.20 ms by `data`, came 4.90 ms": savings that the base promised, of costs that the new side no longer has. */
const char *verdict_promised_text(const struct verdict_words *words);

/* "about 5 runs a side, made in turns (base, new, base, new), would tell a change of 3 % from none" */
const char *verdict_needed_text(const struct verdict_words *words);

/* Returns why the cell of verdict_needed_text() is missing. */
const char *verdict_not_needed_text(const struct verdict_words *words);

/* "new 'cut': events are missing (16722)": the first damaged run of each side, and the number of others. */
const char *verdict_damage_text(const struct verdict_words *words);

/* "new 'dpo' did not complete: its status is 'failed'": the first run that failed. */
const char *verdict_failure_text(const struct verdict_words *words);

/* Returns why it is unknown whether a step has the same work on both sides. */
const char *verdict_work_text(const struct verdict_words *words);

/* "work (only the base notes any: model_name pythia-70m); ..." */
const char *verdict_unchecked_text(const struct verdict_words *words);

/* "repeated runs: they scatter by 1.2 %" */
const char *verdict_noise_text(const struct verdict_words *words);

/* "medians of steps; Student's t of the runs" */
const char *verdict_method_text(const struct verdict_words *words);

/* Returns why times of steps are not comparable: operators were recorded on one side only. For sides with prices.is_unlike. */
const char *operators_unlike_text(const struct compared_sides *sides, struct arena *arena);

/* "new cannot be replayed: a replay needs two complete steps"; of several runs with the name of this one. problem NULL: it
 * is unknown. */
const char *replay_missing_text(const struct compared_sides *sides, int side, size_t run, const char *problem,
                                struct arena *arena);

/* ---- parts of these, for the files that implement this header ---- */

/* Returns how much was subtracted from the times of the sides for recorded operators. */
const char *operators_price_text(const struct compared_sides *sides, struct arena *arena);

/* "micro-batch 2 -> 1, ... and 2 more": the differences of work. */
const char *work_changes_text(const struct comparison *comparison, struct arena *arena);

/* "work, hardware": verdict_unchecked_text() with one word each. */
const char *unchecked_kinds_text(const struct verdict_words *words);

/* Returns the list, which is NULL at first, with one more item. */
const char *sentences_join(struct arena *arena, const char *list, const char *separator, const char *item);

/* template_write() for an array. */
#define WRITE_TEXTS(arena, template, texts) template_write(arena, template, texts, sizeof(texts) / sizeof((texts)[0]))

#endif
