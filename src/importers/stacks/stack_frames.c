/* SPDX-License-Identifier: Apache-2.0
 *
 * stack_frames.c: see stack_frames.h. Profilers cut the packages' folder off a file name
 * ("torch/nn/modules/linear.py"). So files that are not the user's are recognised only by the first word of their
 * names.
 */
#include "importers/stacks/stack_frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const libraries[] = {
	/* packages that training runs in */
	"torch/",
	"torchvision/",
	"torchaudio/",
	"numpy/",
	"transformers/",
	"accelerate/",
	"datasets/",
	"lightning/",
	"pytorch_lightning/",
	"lightning_fabric/",
	"deepspeed/",
	"triton/",
	"pandas/",
	"PIL/",
	"tqdm/",
	"peft/",
	"trl/",
	/* Python's own */
	"threading.py",
	"contextlib.py",
	"functools.py",
	"typing.py",
	"enum.py",
	"abc.py",
	"inspect.py",
	"os.py",
	"re.py",
	"copy.py",
	"copyreg.py",
	"queue.py",
	"pickle.py",
	"random.py",
	"weakref.py",
	"tempfile.py",
	"warnings.py",
	"types.py",
	"dataclasses.py",
	"selectors.py",
	"socket.py",
	"codecs.py",
	"linecache.py",
	"tokenize.py",
	"runpy.py",
	"traceback.py",
	"logging/",
	"multiprocessing/",
	"concurrent/",
	"importlib/",
	"json/",
	"collections/",
	"asyncio/",
	"unittest/",
	"encodings/",
	"<frozen ",
	"<string>",
};

static bool is_library(const char *file)
{
	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
		if (strncmp(file, libraries[i], strlen(libraries[i])) == 0)
			return true;
	return false;
}

static bool is_digits(const char *text, size_t length)
{
	return length > 0 && length < 10 && strspn(text, "0123456789") >= length;
}

uint32_t stack_frame_file(struct model *model, const char *file, size_t length)
{
	char text[4096];
	if (!is_library(file))
		return intern_add_n(&model->strings, file, length);
	snprintf(text, sizeof text, "/site-packages/%.*s", (int)(length < sizeof text ? length : sizeof text), file);
	return intern_add(&model->strings, text);
}

static void stack_frames_set_place(struct model *model, struct stack_node *node, const char *file, size_t length,
                                   const char *line)
{
	node->file = stack_frame_file(model, file, length);
	node->line = line ? (uint32_t)strtoul(line, NULL, 10) : 0;
}

/* Parses "file(line): function". */
static bool is_kineto(struct model *model, const char *text, struct stack_node *node)
{
	for (const char *bracket = text; (bracket = strchr(bracket, '(')); bracket++) {
		size_t digits = strspn(bracket + 1, "0123456789");
		const char *end = bracket + 1 + digits;
		if (!is_digits(bracket + 1, digits) || (strncmp(end, "): ", 3) != 0 && strncmp(end, "):_", 3) != 0))
			continue;
		stack_frames_set_place(model, node, text, (size_t)(bracket - text), bracket + 1);
		node->frame = intern_add(&model->strings, end + 3);
		return true;
	}
	return false;
}

/* Parses "function (file:line)" and "function (file)". A file has a dot in its name or is "<string>". */
static bool is_pyspy(struct model *model, const char *text, struct stack_node *node)
{
	const char *bracket = strrchr(text, '('), *end = bracket ? bracket + strlen(bracket) - 1 : NULL;
	if (!bracket || bracket < text + 2 || bracket[-1] != ' ' || *end != ')')
		return false;
	const char *file = bracket + 1, *line = memrchr(file, ':', (size_t)(end - file));
	if (line && !is_digits(line + 1, (size_t)(end - line - 1)))
		line = NULL;
	size_t file_length = (size_t)((line ? line : end) - file);
	if (!file_length || (!line && *file != '<' && !memchr(file, '.', file_length)))
		return false;
	stack_frames_set_place(model, node, file, file_length, line ? line + 1 : NULL);
	node->frame = intern_add_n(&model->strings, text, (size_t)(bracket - 1 - text));
	return true;
}

/* Parses "file:function:line". */
static bool is_austin(struct model *model, const char *text, struct stack_node *node)
{
	const char *end = strstr(text, ".py:"), *line = strrchr(text, ':');
	if (!end || line <= end + 4 || !is_digits(line + 1, strlen(line + 1)))
		return false;
	stack_frames_set_place(model, node, text, (size_t)(end + 3 - text), line + 1);
	node->frame = intern_add_n(&model->strings, end + 4, (size_t)(line - end - 4));
	return true;
}

uint32_t stack_frame(struct model *model, struct number_map *frames, uint32_t parent, uint32_t name)
{
	uint64_t key = (uint64_t)parent << 32 | name;
	uint32_t found = number_map_find(frames, key);
	if (found == NUMBER_MAP_NONE) {
		struct stack_node node = {.parent = parent, .frame = name};
		const char *text = model_text(model, name);
		if (!is_kineto(model, text, &node) && !is_pyspy(model, text, &node))
			is_austin(model, text, &node);
		found = model_add_frame(model, &node);
		number_map_set(frames, key, found);
	}
	return found;
}
