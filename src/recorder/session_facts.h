/* SPDX-License-Identifier: Apache-2.0
 *
 * session_facts.h: facts about the recording, as pairs of a key and a value. A fact is a name of kind META and a mark
 * of that name, so it survives a kill like every event.
 */
#ifndef RECORDER_SESSION_FACTS_H
#define RECORDER_SESSION_FACTS_H

/* Records a fact of this process. Texts that are too long are cut. */
void session_meta(const char *key, const char *value);
/* Like session_meta(), with the process in the value ("<what>process 123"). A forked child also has its parent's names,
 * and a reader that sees only names must know which process a fact belongs to. */
void session_meta_own(const char *key, const char *what);

/* Returns the cost of one event on this machine. */
double session_measure_event_ns(void);
/* Records the facts at the start of each recording. */
void session_put_facts(void);

#endif
