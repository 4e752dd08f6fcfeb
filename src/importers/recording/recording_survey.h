/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_survey.h: the first pass over all files. It groups them into processes and sessions, and notes clocks,
 * streams, drops and where the events of each stream start.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_SURVEY_H
#define IMPORTERS_RECORDING_RECORDING_SURVEY_H

#include "importers/recording/recording.h"

/* Leaves out files that are not recordings. If no file is usable, returns the error of the first one. */
enum status recording_survey(struct recording *recording, struct error *err) MUST_CHECK;

#endif
