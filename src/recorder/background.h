/* SPDX-License-Identifier: Apache-2.0
 *
 * background.h: runs a function once in the recorder's thread, so that the agent's thread does not pay for it. The
 * drainer runs it with its next pass. The function may take locks of libraries. A fork waits for it, because in the
 * child those locks would be held forever.
 */
#ifndef RECORDER_BACKGROUND_H
#define RECORDER_BACKGROUND_H

void background_ask(void (*call)(void)); /* Any thread; replaces a pending call. */
void background_work(void);              /* Called by the drainer. */

void background_hold(void);   /* Before a fork: waits until no call runs, and lets none start. Bounded. */
void background_go_on(void);  /* After the fork, in the parent. */
void background_forget(void); /* After the fork, in the child. */

#endif
