/* SPDX-License-Identifier: Apache-2.0
 *
 * python_places.c: see the header.
 */
#include "analysis/shared/python_places.h"

#include "base/memory.h"

#include <string.h>

#define STACK_FRAMES 4096u

/* Returns the part of the file after its last "/lib/python3.NN/" or "/lib64/python3.NN/"; NULL: there is none. */
static const char *behind_library(const char *file)
{
	const char *found = NULL;
	for (const char *at = strstr(file, "/python3."); at; at = strstr(at + 1, "/python3.")) {
		const char *end = at + strlen("/python3.");
		bool is_in_lib = (at - file >= 4 && !memcmp(at - 4, "/lib", 4)) ||
		                 (at - file >= 6 && !memcmp(at - 6, "/lib64", 6));
		end += strspn(end, "0123456789t");
		if (is_in_lib && *end == '/')
			found = end + 1;
	}
	return found;
}

static const char *behind(const char *file, const char *folder)
{
	const char *found = NULL;
	for (const char *at = strstr(file, folder); at; at = strstr(at + 1, folder))
		found = at + strlen(folder);
	return found;
}

static const char *behind_packages(const char *file)
{
	const char *found = behind(file, "/site-packages/");
	if (!found)
		found = behind(file, "/dist-packages/");
	if (!found)
		found = behind_library(file);
	return found;
}

const char *python_folder(const struct model *model)
{
	return model_meta(model, MODEL_NONE, "cwd");
}

const char *python_short_file(const char *file, const char *folder)
{
	const char *found = behind_packages(file);
	size_t length = folder ? strlen(folder) : 0;
	if (found)
		return found;
	return length > 1 && !strncmp(file, folder, length) && file[length] == '/' && file[length + 1]
	               ? file + length + 1
	               : file;
}

/* Returns true if the file is not the user's: it is of an installed package, Python's own library or an uninstalled
 * stepscope, or it is no real file ("<frozen ...>", code of torch.fx). */
static bool is_library(const char *file)
{
	return !*file || !strncmp(file, "<frozen ", 8) || !strncmp(file, "<eval_with_key>", 15) ||
	       behind_packages(file) || strstr(file, "/stepscope/_");
}

void python_frame_text(const struct model *model, const struct stack_node *frame, const char *folder,
                       struct buffer *out)
{
	const char *name = model_text(model, frame->frame), *file = model_text(model, frame->file);
	if (!*name && !*file)
		buffer_add_text(out, "(more frames)");
	else if (!*file && !frame->line)
		buffer_add_text(out, name);
	else if (frame->line)
		buffer_printf(out, "%s(%u): %s", python_short_file(file, folder), frame->line, name);
	else
		buffer_printf(out, "%s(?): %s", python_short_file(file, folder), name);
}

uint32_t *python_user_frames(const struct model *model)
{
	uint32_t *users = memory_resize(NULL, model->stacks_count + 1, sizeof *users);
	users[0] = 0;
	for (uint32_t i = 1; i < model->stacks_count; i++) { /* a caller has a smaller number */
		const struct stack_node *frame = &model->stacks[i];
		users[i] = is_library(model_text(model, frame->file)) ? users[frame->parent] : i;
	}
	return users;
}

const char *python_stack_text(const struct model *model, uint32_t stack, struct arena *arena)
{
	uint32_t path[STACK_FRAMES], count = 0;
	const char *folder = python_folder(model);
	struct buffer text;
	if (!stack)
		return "(no stack of Python)";
	for (; stack && count < STACK_FRAMES; stack = model->stacks[stack].parent)
		path[count++] = stack;
	buffer_init(&text, 1 << 20);
	while (count--) {
		python_frame_text(model, &model->stacks[path[count]], folder, &text);
		buffer_add_text(&text, count ? ";" : "");
	}
	const char *copy = arena_dup_n(arena, text.data, text.length);
	buffer_release(&text);
	return copy;
}
