/* SPDX-License-Identifier: Apache-2.0
 *
 * background.h: what an agent needs once and its thread shall not pay for. The drainer does it with its next pass. It may take locks of
 * libraries, so a fork waits for it: in the child they would be held for ever.
 */
#ifndef RECORDER_BACKGROUND_H
#define RECORDER_BACKGROUND_H

void background_ask(void (*call)(void)); /* Any thread; one call at a time. */
void background_work(void);              /* By the drainer. */

void background_hold(void);   /* Before a fork: nothing is at work, and nothing begins. Bounded. */
void background_go_on(void);  /* After it. */
void background_forget(void); /* After it, in the child. */

#endif
