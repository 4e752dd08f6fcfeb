/* SPDX-License-Identifier: Apache-2.0
 *
 * banned.h: makes the use of some functions an error. The build includes it everywhere with -include.
 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

/* The system's headers come first, so that the macros do not change their declarations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BANNED(name) use_of_##name##_is_banned_see_base_banned_h
#undef strcpy
#define strcpy(...) BANNED(strcpy)
#undef strcat
#define strcat(...) BANNED(strcat)
#undef strncpy
#define strncpy(...) BANNED(strncpy)
#undef strtok
#define strtok(...) BANNED(strtok)
#undef sprintf
#define sprintf(...) BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) BANNED(vsprintf)
#undef atoi
#define atoi(...) BANNED(atoi)
#undef atof
#define atof(...) BANNED(atof)
#undef gmtime
#define gmtime(...) BANNED(gmtime)
#undef localtime
#define localtime(...) BANNED(localtime)

#endif
