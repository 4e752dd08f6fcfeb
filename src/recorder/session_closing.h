/* SPDX-License-Identifier: Apache-2.0
 *
 * session_closing.h: the last facts of a recording, and the line on stderr that describes the capture and how to view
 * it.
 */
#ifndef RECORDER_SESSION_CLOSING_H
#define RECORDER_SESSION_CLOSING_H

/* Call it while the recording still accepts events. */
void session_put_closing(void);

#endif
