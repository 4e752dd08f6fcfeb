/* SPDX-License-Identifier: Apache-2.0
 *
 * start_problem.h: the reasons why a recording did not start. The text for the user (session_problem()) is separate,
 * and no code depends on it.
 */
#ifndef RECORDER_START_PROBLEM_H
#define RECORDER_START_PROBLEM_H

enum start_problem {
	START_OK,
	START_IS_OFF,    /* enabled=false */
	START_TOO_LATE,  /* the program is ending */
	START_HAS_OTHER, /* another copy of the library records in this process */
	START_NO_OPTIONS,
	START_NO_DIRECTORY,
	START_NO_MEMORY,
	START_NO_FILE,
	START_NOT_STOPPED /* the previous recording has not ended in time */
};

#endif
