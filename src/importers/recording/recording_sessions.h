/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_sessions.h: a session in the second pass. Its names and streams exist only while its files are read.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_SESSIONS_H
#define IMPORTERS_RECORDING_RECORDING_SESSIONS_H

#include "importers/recording/recording.h"

void recording_open_session(struct recorded_session *session);
/* Delivers waiting spans and links, adds missing parts to the ledger, and empties the session. */
void recording_end_session(struct recording *recording, struct recorded_session *session);
void recording_empty_session(struct recorded_session *session);

#endif
