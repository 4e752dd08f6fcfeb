/* SPDX-License-Identifier: Apache-2.0
 *
 * say.h: prints messages of a command on stderr. They contain names of files and of other programs, so only the final
 * newline reaches the terminal as a control character.
 */
#ifndef COMMANDS_SAY_H
#define COMMANDS_SAY_H

/* Text without a final '\n' is the start of a line. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
