/* SPDX-License-Identifier: Apache-2.0
 *
 * loading.h: a loader and its loop in our own recordings, as the model of loader_model.h needs them, and how long a step
 * takes with more workers, or if handing over a batch cost nothing.
 */
#ifndef REPLAY_LOADING_H
#define REPLAY_LOADING_H

#include "replay/graph.h"
#include "replay/loader_model.h"

#define LOADING_HANDOVER_NS 150e3 /* of a batch that is easy to hand over, at each side */

struct replay_loading {
	struct loader_case loader; /* with the processors that the run had */
	double processors;         /* that it may use */
	double batch_ns;           /* measured, from one batch to the next */
	double step_ns;            /* the same by the model */
	uint32_t enough;           /* workers with which a step is as short as with more, but for a fiftieth */
	double enough_ns;          /* from one batch to the next with these */
	double handed_ns;          /* with the workers that it has, if handing over cost nearly nothing */
};

/* Sets graph->loading if the model explains the measured time. The graph has its steps and threads. */
void replay_loading_find(struct replay_graph *graph, const struct replay_loader *loader);
void replay_loading_release(struct replay_loading *loading); /* accepts NULL */

#endif
