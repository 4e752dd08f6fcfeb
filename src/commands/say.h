/* SPDX-License-Identifier: Apache-2.0
 *
 * say.h: what a command says on stderr. Names of files and of other people's programs stand in it, so no control character but the
 * line's end reaches the terminal.
 */
#ifndef COMMANDS_SAY_H
#define COMMANDS_SAY_H

/* Text without '\n' at its end is the beginning of a line. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
