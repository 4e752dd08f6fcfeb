/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_ledger.h: missing and damaged parts of a recording, in sentences.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_LEDGER_H
#define IMPORTERS_RECORDING_RECORDING_LEDGER_H

#include "importers/recording/recording.h"

void recording_ledger_stream(struct recording *recording, const struct recorded_session *session,
                             const struct stream *stream);
void recording_ledger_file(struct recording *recording, const struct recorded_file *file);
void recording_ledger_process(struct recording *recording, const struct recorded_process *process);

#endif
