/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_torch_classes.c: what a record says about a training, by the kind and the text of its symbol.
 */
#include "importers/recording_torch_scan.h"

#include "pytorch/names.h"

#include <string.h>

static bool is_text(const char *text, uint32_t length, const char *whole)
{
	return length == strlen(whole) && !memcmp(text, whole, length);
}

/* A name of a class: no "aten::", no "TorchDynamo Cache Lookup". What torch.compile makes takes a number only with a graph. */
static bool is_function(const char *text, uint32_t length)
{
	return !memchr(text, ':', length) && !memchr(text, ' ', length) && !is_text(text, length, "CompiledFunction");
}

static enum symbol_class class_of_operator(const char *text, uint32_t length)
{
	bool is_many = pytorch_takes_many(text, length);
	if (pytorch_begins_n(text, length, PYTORCH_SCALER))
		return CLASS_SCALER;
	if (pytorch_is_of_sampler(text, length))
		return CLASS_SAMPLER;
	if (pytorch_begins_n(text, length, PYTORCH_COLLECTIVE))
		return CLASS_COLLECTIVE;
	if (pytorch_begins_n(text, length, PYTORCH_MODE))
		return CLASS_MODE;
	if (pytorch_begins_n(text, length, PYTORCH_COMPILED))
		return CLASS_COMPILED;
	if (pytorch_begins_n(text, length, PYTORCH_ENGINE))
		return CLASS_NODE;
	if (pytorch_zeroes(text, length))
		return is_many ? CLASS_ZERO_MANY : CLASS_ZERO;
	if (pytorch_writes(text, length))
		return is_many ? CLASS_WRITE_MANY : CLASS_WRITE;
	if (is_function(text, length))
		return CLASS_FUNCTION;
	return is_text(text, length, "aten::add")    ? CLASS_ADD
	       : is_text(text, length, PYTORCH_ONES) ? CLASS_ONES
	                                             : CLASS_OP;
}

enum symbol_class torch_class_of(uint8_t kind, const char *text, uint32_t length)
{
	switch (kind) {
	case STEPSCOPE_SYMBOL_TEXT:
		return is_text(text, length, "torch.optimizer")    ? CLASS_OPTIMIZER_KEY
		       : is_text(text, length, "torch.module")     ? CLASS_MODULE_KEY
		       : is_text(text, length, "torch.loader_end") ? CLASS_LOADER_END_KEY
		                                                   : CLASS_UNKNOWN;
	case STEPSCOPE_SYMBOL_RANGE:
		return is_text(text, length, "torch.save")           ? CLASS_SAVE
		       : is_text(text, length, "torch.compile")      ? CLASS_COMPILE
		       : is_text(text, length, PYTORCH_LOADER_START) ? CLASS_LOADER_START
		       : is_text(text, length, PYTORCH_LOADER_AGAIN) ? CLASS_LOADER_START
		       : is_text(text, length, PYTORCH_LOADER_STOP)  ? CLASS_LOADER_STOP
		                                                     : CLASS_UNKNOWN;
	case STEPSCOPE_SYMBOL_OP:
		return class_of_operator(text, length);
	case STEPSCOPE_SYMBOL_BACKWARD:
		return pytorch_begins_n(text, length, PYTORCH_ACCUMULATE) ? CLASS_ACCUMULATE : CLASS_GRADIENT;
	case STEPSCOPE_SYMBOL_SCRIPT:
		return CLASS_OP;
	case STEPSCOPE_SYMBOL_MODULE:
		return CLASS_MODULE;
	case STEPSCOPE_SYMBOL_ANNOTATION:
		return pytorch_begins_n(text, length, PYTORCH_OPTIMIZER_STEP)        ? CLASS_OPTIMIZER
		       : pytorch_begins_n(text, length, PYTORCH_OPTIMIZER_ZERO_GRAD) ? CLASS_ZERO_GRAD
		       : pytorch_begins_n(text, length, PYTORCH_LOADER_HERE)         ? CLASS_DATA_HERE
		       : pytorch_begins_n(text, length, PYTORCH_LOADER)              ? CLASS_DATA
		                                                                     : CLASS_UNKNOWN;
	default:
		return CLASS_UNKNOWN;
	}
}
