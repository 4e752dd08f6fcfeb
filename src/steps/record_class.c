/* SPDX-License-Identifier: Apache-2.0
 *
 * record_class.c: see record_class.h. The names are those of pytorch/names.h.
 */
#include "steps/record_class.h"

#include "pytorch/names.h"
#include "steps/infer_steps.h"

#include <string.h>

struct class_name {
	const char *name;
	enum record_class class;
};

/* Returns CLASS_UNKNOWN if the text is none of the names, or begins with none of them. The last name is NULL. */
static enum record_class find_class(const struct class_name *names, const char *text, size_t length, bool is_whole)
{
	for (; names->name; names++)
		if (is_whole ? strlen(names->name) == length && memcmp(names->name, text, length) == 0
		             : pytorch_begins_n(text, length, names->name))
			return names->class;
	return CLASS_UNKNOWN;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
	size_t bytes = strlen(end);
	return length >= bytes && memcmp(text + length - bytes, end, bytes) == 0;
}

/* Returns true for the name of a Python class: no "aten::", no "TorchDynamo Cache Lookup". A function that
 * torch.compile made takes a number only with a graph. */
static bool is_function(const char *text, size_t length)
{
	static const char compiled[] = "CompiledFunction";
	return !memchr(text, ':', length) && !memchr(text, ' ', length) &&
	       !(length == sizeof compiled - 1 && memcmp(text, compiled, length) == 0);
}

static enum record_class class_of_text(const char *text, size_t length)
{
	static const struct class_name names[] = {{"torch.optimizer", CLASS_OPTIMIZER_KEY},
	                                          {"torch.module", CLASS_MODULE_KEY},
	                                          {"torch.loader", CLASS_LOADER_KEY},
	                                          {"torch.loader_end", CLASS_LOADER_END_KEY},
	                                          {NULL, CLASS_UNKNOWN}};
	return find_class(names, text, length, true);
}

static enum record_class class_of_range(const char *text, size_t length)
{
	static const struct class_name names[] = {{PYTORCH_SAVE, CLASS_SAVE},
	                                          {PYTORCH_COMPILE, CLASS_COMPILE},
	                                          {PYTORCH_LOADER_START, CLASS_LOADER_START},
	                                          {PYTORCH_LOADER_AGAIN, CLASS_LOADER_START},
	                                          {PYTORCH_LOADER_STOP, CLASS_LOADER_STOP},
	                                          {NULL, CLASS_UNKNOWN}};
	enum record_class class = find_class(names, text, length, true);
	if (class != CLASS_UNKNOWN)
		return class;
	if (pytorch_profiler_step(text, length))
		return CLASS_PROFILER_STEP;
	return pytorch_is_rare(text, length) ? CLASS_RARE : CLASS_UNKNOWN;
}

static enum record_class class_of_annotation(const char *text, size_t length)
{
	static const struct class_name beginnings[] = {{PYTORCH_OPTIMIZER_STEP, CLASS_OPTIMIZER},
	                                               {PYTORCH_OPTIMIZER_ZERO_GRAD, CLASS_ZERO_GRAD},
	                                               {PYTORCH_LOADER_HERE, CLASS_DATA_HERE},
	                                               {PYTORCH_LOADER, CLASS_DATA},
	                                               {NULL, CLASS_UNKNOWN}};
	enum record_class class = find_class(beginnings, text, length, false);
	if (class != CLASS_UNKNOWN)
		return class;
	return pytorch_profiler_step(text, length) ? CLASS_PROFILER_STEP : CLASS_UNKNOWN;
}

static enum record_class class_of_engine(const char *text, size_t length)
{
	const size_t before = sizeof PYTORCH_ENGINE - 1;
	bool is_accumulation = pytorch_begins_n(text + before, length - before, PYTORCH_ACCUMULATE);
	return is_accumulation ? CLASS_ENGINE_ACCUMULATE : CLASS_ENGINE;
}

static enum record_class class_of_operator(const char *text, size_t length)
{
	static const struct class_name beginnings[] = {{PYTORCH_SCALER, CLASS_SCALER},
	                                               {PYTORCH_COLLECTIVE, CLASS_COLLECTIVE},
	                                               {PYTORCH_MODE, CLASS_MODE},
	                                               {PYTORCH_COMPILED, CLASS_COMPILED},
	                                               {NULL, CLASS_UNKNOWN}};
	static const struct class_name names[] = {
		{"aten::add", CLASS_ADD}, {PYTORCH_ONES, CLASS_ONES}, {NULL, CLASS_UNKNOWN}};
	bool is_many = pytorch_takes_many(text, length);
	enum record_class class = find_class(beginnings, text, length, false);
	if (class != CLASS_UNKNOWN)
		return class;
	if (pytorch_begins_n(text, length, PYTORCH_ENGINE))
		return class_of_engine(text, length);
	if (pytorch_is_of_sampler(text, length))
		return CLASS_SAMPLER;
	if (pytorch_zeroes(text, length))
		return is_many ? CLASS_ZERO_MANY : CLASS_ZERO;
	if (pytorch_writes(text, length))
		return is_many ? CLASS_WRITE_MANY : CLASS_WRITE;
	if (pytorch_is_layer(text, length))
		return CLASS_LAYER;
	if (pytorch_moves(text, length))
		return CLASS_MOVE;
	if (is_function(text, length))
		return CLASS_FUNCTION;
	class = find_class(names, text, length, true);
	return class == CLASS_UNKNOWN ? CLASS_OP : class;
}

static enum record_class class_of_gradient(const char *text, size_t length)
{
	return pytorch_begins_n(text, length, PYTORCH_ACCUMULATE) ? CLASS_ACCUMULATE : CLASS_NODE;
}

static enum record_class class_of_traced(const char *text, size_t length)
{
	enum record_class class = class_of_annotation(text, length);
	if (class != CLASS_UNKNOWN)
		return class;
	bool is_engine = pytorch_begins_n(text, length, PYTORCH_ENGINE);
	bool is_node = pytorch_begins_n(text, length, PYTORCH_ACCUMULATE) || ends_with(text, length, "Backward") ||
	               ends_with(text, length, "Backward0");
	return is_node && !is_engine ? class_of_gradient(text, length) : class_of_operator(text, length);
}

enum record_class record_class_of(enum record_source kind, const char *text, size_t length)
{
	switch (kind) {
	case NAME_OF_OPERATOR:
		return class_of_operator(text, length);
	case NAME_OF_TRACED:
		return class_of_traced(text, length);
	case NAME_OF_GRADIENT:
		return class_of_gradient(text, length);
	case NAME_OF_SCRIPT:
		return CLASS_OP;
	case NAME_OF_MODULE:
		return CLASS_MODULE;
	case NAME_OF_ANNOTATION:
		return class_of_annotation(text, length);
	case NAME_OF_RANGE:
		return class_of_range(text, length);
	case NAME_OF_TEXT:
		return class_of_text(text, length);
	}
	return CLASS_UNKNOWN;
}

uint8_t record_token(enum record_class class)
{
	static const uint8_t tokens[] = {
		[CLASS_ENGINE] = TOKEN_BACKWARD,     [CLASS_ENGINE_ACCUMULATE] = TOKEN_BACKWARD,
		[CLASS_NODE] = TOKEN_BACKWARD,       [CLASS_ACCUMULATE] = TOKEN_BACKWARD,
		[CLASS_DATA] = TOKEN_DATA,           [CLASS_DATA_HERE] = TOKEN_DATA,
		[CLASS_OPTIMIZER] = TOKEN_OPTIMIZER, [CLASS_ZERO_GRAD] = TOKEN_ZERO_GRAD,
		[CLASS_SCALER] = TOKEN_SCALER,       [CLASS_SAVE] = TOKEN_SAVE,
		[CLASS_LOADER_START] = TOKEN_LOADER, [CLASS_LOADER_STOP] = TOKEN_LOADER_END,
	};
	return class < sizeof tokens && tokens[class] ? tokens[class] : TOKEN_OP;
}
