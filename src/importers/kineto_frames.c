/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_frames.c: see kineto_frames.h. Kineto cuts the folder of packages off a file's name ("torch/nn/modules/linear.py"), so what is not
 * the user's own is known by its first word only.
 */
#include "importers/kineto_frames.h"

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

/* "file(line): function"; what is not so is a function of no file: "<built-in function isinstance>". */
static struct stack_node take_apart(struct model *model, uint32_t parent, uint32_t name)
{
	struct stack_node node = {.parent = parent, .frame = name};
	const char *text = model_text(model, name), *bracket = text;
	char file[4096];
	while ((bracket = strchr(bracket, '('))) {
		char *end;
		unsigned long line = strtoul(bracket + 1, &end, 10);
		if (end > bracket + 1 && strncmp(end, "): ", 3) == 0 && line <= UINT32_MAX) {
			const char *folder = is_library(text) ? "/site-packages/" : "";
			snprintf(file, sizeof file, "%s%.*s", folder, (int)(bracket - text), text);
			node.line = (uint32_t)line;
			node.file = intern_add(&model->strings, file);
			node.frame = intern_add(&model->strings, end + 3);
			break;
		}
		bracket++;
	}
	return node;
}

uint32_t kineto_frame(struct model *model, struct number_map *frames, uint32_t parent, uint32_t name)
{
	uint64_t key = (uint64_t)parent << 32 | name;
	uint32_t found = number_map_find(frames, key);
	if (found == NUMBER_MAP_NONE) {
		const struct stack_node node = take_apart(model, parent, name);
		found = model_add_frame(model, &node);
		number_map_set(frames, key, found);
	}
	return found;
}
