/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_groups.h: process groups of collectives.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_GROUPS_H
#define IMPORTERS_RECORDING_RECORDING_GROUPS_H

#include "importers/recording/recording.h"

/* When all spans and facts are there. */
void recording_add_groups(struct recording *recording);

#endif
