/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_survey.h: the first pass over all files: groups them into processes and sessions, and notes clocks,
 * streams, drops and where the events of each stream begin.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_SURVEY_H
#define IMPORTERS_RECORDING_RECORDING_SURVEY_H

#include "importers/recording/recording.h"

/* Files that are no recordings are left out. If none is usable, the error of the first one is passed on. */
enum status recording_survey(struct recording *recording, struct error *err) MUST_CHECK;

#endif
