/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_groups.h: process groups of collectives.
 */
#ifndef IMPORTERS_RECORDING_RECORDING_GROUPS_H
#define IMPORTERS_RECORDING_RECORDING_GROUPS_H

#include "importers/recording/recording.h"

/* Call after all spans and facts are in the model. */
void recording_add_groups(struct recording *recording);

#endif
