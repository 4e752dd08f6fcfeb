/* SPDX-License-Identifier: Apache-2.0
 *
 * session_facts.h: facts about the recording, as pairs of a key and a value. A fact is a name of kind META and a mark
 * of it, so it survives a kill like every event.
 */
#ifndef RECORDER_SESSION_FACTS_H
#define RECORDER_SESSION_FACTS_H

/* Records a fact of this process. Both texts are cut where they are too long. */
void session_meta(const char *key, const char *value);
/* The same with the process named in the value ("<what>process 123"): a forked child has its parent's names too, and a
 * reader that knows only names must tell whose fact it is. */
void session_meta_own(const char *key, const char *what);

/* What one event costs on this machine. */
double session_measure_event_ns(void);
/* The facts that begin each recording. */
void session_put_facts(void);

#endif
