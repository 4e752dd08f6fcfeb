/* SPDX-License-Identifier: Apache-2.0
 *
 * record_class.h: what a record of PyTorch says of a training, by its kind and its name. Importers ask once for each
 * name.
 *
 *     enum record_class class = record_class_of(NAME_OF_ANNOTATION, name, strlen(name));
 *     uint8_t token = record_token(class);   // for struct train_record
 */
#ifndef STEPS_RECORD_CLASS_H
#define STEPS_RECORD_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum record_source { /* of a recording; a trace has NAME_OF_TRACED and NAME_OF_ANNOTATION only */
	NAME_OF_OPERATOR,
	NAME_OF_TRACED,   /* an operator or a node of a graph; PyTorch up to 1.10 also wrote annotations so */
	NAME_OF_GRADIENT, /* a node of a graph */
	NAME_OF_SCRIPT,   /* a function of TorchScript */
	NAME_OF_MODULE,
	NAME_OF_ANNOTATION,
	NAME_OF_RANGE,
	NAME_OF_TEXT, /* the key of an argument */
};

enum record_class {
	CLASS_UNKNOWN, /* a range, a phase, ...: around records */
	/* operators */
	CLASS_OP,
	CLASS_MOVE, /* of data, or room for data; computes nothing */
	CLASS_LAYER,
	CLASS_ADD,        /* first in CLASS_ACCUMULATE, it adds a gradient to the one that was there; so does a write */
	CLASS_ONES,       /* makes the first gradient of a backward, if the program gives it none */
	CLASS_WRITE,      /* to a tensor, in place */
	CLASS_WRITE_MANY, /* to a list of tensors */
	CLASS_ZERO,
	CLASS_ZERO_MANY,
	CLASS_FUNCTION,   /* a torch.autograd.Function of the program: takes a number also where no graph is made */
	CLASS_COLLECTIVE, /* an operator with a number that no graph remembers */
	/* no operators in this sense */
	CLASS_SAMPLER, /* an operator that a loader calls by itself: no work on a batch */
	CLASS_MODE,    /* the work of a dispatch mode for a call that is no operator, such as a range's begin */
	CLASS_SCALER,  /* the gradient scaler's update */
	CLASS_ENGINE,  /* the engine's work on a node of a graph */
	CLASS_ENGINE_ACCUMULATE, /* the same for CLASS_ACCUMULATE */
	CLASS_NODE,              /* the node itself: has the number of the operator that made it */
	CLASS_ACCUMULATE,        /* the node that adds up a gradient */
	CLASS_DATA,
	CLASS_DATA_HERE, /* by a loader without workers */
	CLASS_OPTIMIZER,
	CLASS_ZERO_GRAD,
	CLASS_OPTIMIZER_KEY, /* of the argument that says which optimizer it is */
	CLASS_MODULE,
	CLASS_MODULE_KEY,     /* of the argument that says which module it is, and its mode */
	CLASS_LOADER_KEY,     /* of the argument that says whose batch is awaited; then its end is told, too: */
	CLASS_LOADER_END_KEY, /* of the argument that says that no batch came */
	CLASS_LOADER_START,
	CLASS_LOADER_STOP,
	CLASS_SAVE,
	CLASS_COMPILED,      /* code made by torch.compile: its calls count, unless it is an optimizer's call */
	CLASS_PROFILER_STEP, /* of torch.profiler: a range around records, which marks a step */
	CLASS_COMPILE,       /* traces whole forwards and backwards, which no step makes */
	CLASS_RARE,          /* a range like any other; recorded in steps without operators, too */
};

enum record_class record_class_of(enum record_source kind, const char *text, size_t length);
/* enum train_token; TOKEN_OP for classes without a token of their own. */
uint8_t record_token(enum record_class class);

static inline bool record_is_operator(enum record_class class)
{
	return class >= CLASS_OP && class <= CLASS_COLLECTIVE;
}

/* Returns true for operators that write to tensors in place. */
static inline bool record_writes(enum record_class class)
{
	return class >= CLASS_WRITE && class <= CLASS_ZERO_MANY;
}

static inline bool record_zeroes(enum record_class class)
{
	return class == CLASS_ZERO || class == CLASS_ZERO_MANY;
}

/* Returns true for parts of a program's loop that PyTorch names by itself: a wait for data, an optimizer's calls. */
static inline bool record_is_of_loop(enum record_class class)
{
	return class == CLASS_DATA || class == CLASS_DATA_HERE || class == CLASS_OPTIMIZER || class == CLASS_ZERO_GRAD;
}

#endif
