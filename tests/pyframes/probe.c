/* SPDX-License-Identifier: Apache-2.0
 *
 * probe.c: what src/pyframes reads of the calling thread, for check_stacks.py, which knows better.
 */
#include "pyframes/frames.h"

#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

static bool read_other(void *context, uint64_t address, void *to, size_t bytes)
{
	struct iovec into = {to, bytes}, from = {(void *)(uintptr_t)address, bytes};
	(void)context;
	return process_vm_readv(getpid(), &into, 1, &from, 1, 0) == (ssize_t)bytes;
}

static char text[PYFRAMES_MAX * 1600];

__attribute__((visibility("default"))) const char *probe_stack(const char *version, void *state, void *code_type,
                                                               int how);

/* "LINE NAME\nFILE\n" per frame, innermost first, then how it ended; how: 0 as one's own memory, 1 the short way, 2 as another process's. */
const char *probe_stack(const char *version, void *state, void *code_type, int how)
{
	const struct pyframes_memory memory = {.read = how == 2 ? read_other : NULL};
	struct pyframes_frame frames[PYFRAMES_MAX];
	struct pyframes_place place;
	enum pyframes_end end = PYFRAMES_ROOT;
	unsigned count;
	int length = 0;
	const struct pyframes_layout *layout = pyframes_layout_find(version, text, sizeof(text));
	if (!layout)
		return text;
	uint64_t thread_state = (uint64_t)(uintptr_t)state;
	if (how == 1) {
		uint64_t at = pyframes_innermost(layout, thread_state);
		count = pyframes_walk_own(layout, &at, 0, frames, PYFRAMES_MAX);
		end = at ? PYFRAMES_CUT : PYFRAMES_ROOT;
	} else {
		count = pyframes_walk(layout, &memory, thread_state, frames, PYFRAMES_MAX, &end);
	}
	text[0] = 0;
	for (unsigned i = 0; i < count; i++) {
		if (!pyframes_describe(layout, &memory, (uint64_t)(uintptr_t)code_type, &frames[i], &place))
			return "a frame could not be read";
		length += snprintf(text + length, sizeof(text) - (size_t)length, "%u %s\n%s\n", place.line, place.name,
		                   place.file);
	}
	snprintf(text + length, sizeof(text) - (size_t)length, "%s",
	         end == PYFRAMES_ROOT  ? ""
	         : end == PYFRAMES_CUT ? "cut"
	                               : "broken");
	return text;
}
