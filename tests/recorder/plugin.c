/* SPDX-License-Identifier: Apache-2.0
 *
 * plugin.c: a library that marks its work with names in its own memory, and is unloaded (row P06).
 */
#include <stepscope/stepscope.h>

STEPSCOPE_API void plugin_work(void);

void plugin_work(void)
{
	static char name[] = "name in the library's data";

	STEPSCOPE_RANGE_PUSH("literal in the library");
	stepscope_range_push(name);
	stepscope_range_pop();
	stepscope_range_pop();
}
