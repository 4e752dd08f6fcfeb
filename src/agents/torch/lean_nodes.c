/* SPDX-License-Identifier: Apache-2.0
 *
 * lean_nodes.c: see lean_nodes.h. torch::autograd::Node::name() is virtual: the address of Node's own function gives
 * its place in a class's table. A class that inherits that function is named after its type; classes that PyTorch
 * generates return a fixed text.
 */
#include "agents/torch/lean_nodes.h"

#include "base/hash.h"
#include "pytorch/names.h"

#include <dlfcn.h>

#define TYPES 512u /* PyTorch has some four hundred classes; a program uses some tens */
#define WAYS 4u
#define TABLE_WORDS 24u
#define TAKEN ((const void *)1)

struct text { /* std::string */
	char *data;
	size_t length;
	char local[16];
};

struct type {             /* filled once */
	const char *name; /* first: a schema starts with the address of its name. NULL: nodes have different names */
	const void *functions; /* table of the class, at the start of its objects; NULL: free; TAKEN: being filled;
	                        * atomic */
	char bytes[96];
};

static struct type types[TYPES];

static struct {                  /* written once */
	uintptr_t start, end;    /* where libtorch_cpu, which is never unloaded, has its tables */
	const void *name;        /* Node's own */
	unsigned place;          /* index of name() in a table */
	void (*release)(void *); /* operator delete */
} nodes;

static const void *const *functions_of(const void *node)
{
	const void *const *functions;
	memcpy(&functions, node, sizeof(functions));
	return functions;
}

bool lean_nodes_find(const struct loaded *loaded)
{
	uint64_t words[TABLE_WORDS];
	const void *const *table = loaded->handle ? dlsym(loaded->handle, "_ZTVN5torch8autograd4NodeE") : NULL;
	void *release = dlsym(RTLD_DEFAULT, "_ZdlPv");
	nodes.name = loaded->handle ? dlsym(loaded->handle, "_ZNK5torch8autograd4Node4nameB5cxx11Ev") : NULL;
	*(void **)&nodes.release = release || !loaded->handle ? release : dlsym(loaded->handle, "_ZdlPv");
	nodes.start = loaded->relro_start;
	nodes.end = loaded->relro_end;
	unsigned count = table && nodes.name ? process_read_words((uint64_t)(uintptr_t)(table + 2), words, TABLE_WORDS)
	                                     : 0;
	for (nodes.place = 0; nodes.place < count; nodes.place++)
		if (words[nodes.place] == (uintptr_t)nodes.name)
			return nodes.release != NULL;
	return false;
}

const char *lean_nodes_name(const void *node, char text[LEAN_NODE_NAME_BYTES])
{
	static const char before[] = PYTORCH_ENGINE;
	void (*name)(struct text * result, const void *node);
	struct text result;
	memcpy(&name, &functions_of(node)[nodes.place], sizeof(name));
	name(&result, node);
	size_t room = LEAN_NODE_NAME_BYTES - sizeof(before), length = result.length < room ? result.length : room;
	memcpy(text, before, sizeof(before) - 1);
	memcpy(text + sizeof(before) - 1, result.data, length);
	text[sizeof(before) - 1 + length] = '\0';
	if (result.data != result.local)
		nodes.release(result.data);
	return text;
}

/* Returns true if PyTorch generates the class. The word before its table points to data about the type, whose second
 * word points to the type's name. */
static bool is_generated(const void *const *functions)
{
	static const char begin[] = "N5torch8autograd9generated";
	char text[sizeof(begin)] = "";
	uint64_t type[2] = {0};
	return process_copy((uint64_t)(uintptr_t)functions[-1], type, sizeof(type)) &&
	       process_copy(type[1], text, sizeof(text) - 1) && memcmp(text, begin, sizeof(begin) - 1) == 0;
}

static bool has_one_name(const void *const *functions)
{
	uintptr_t at = (uintptr_t)functions;
	return at >= nodes.start && at < nodes.end && (functions[nodes.place] == nodes.name || is_generated(functions));
}

static const void *schema_of(const struct type *type)
{
	return type->name ? type : NULL;
}

static __attribute__((noinline, cold)) const void *remember(const void *node, struct type *type)
{
	const void *const *functions = functions_of(node);
	const void *none = NULL;
	char text[LEAN_NODE_NAME_BYTES];
	size_t length = has_one_name(functions) ? strlen(lean_nodes_name(node, text)) : sizeof(type->bytes);
	if (!__atomic_compare_exchange_n(&type->functions, &none, TAKEN, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return NULL; /* another thread fills it: next time */
	if (length < sizeof(type->bytes)) {
		memcpy(type->bytes, text, length + 1);
		type->name = type->bytes;
	}
	__atomic_store_n(&type->functions, (const void *)functions, __ATOMIC_RELEASE);
	return schema_of(type);
}

const void *lean_nodes_schema(const void *node)
{
	const void *functions = functions_of(node);
	uint64_t hash = hash_word((uintptr_t)functions) >> 32;
	for (unsigned way = 0; way < WAYS; way++) {
		struct type *type = &types[(hash + way) % TYPES];
		const void *known = __atomic_load_n(&type->functions, __ATOMIC_ACQUIRE);
		if (__builtin_expect(known == functions, 1))
			return schema_of(type);
		if (!known)
			return remember(node, type);
	}
	return NULL;
}
