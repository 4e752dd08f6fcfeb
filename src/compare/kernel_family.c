/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_family.c: see the header.
 */
#include "compare/kernel_family.h"

#include "model/device_names.h"

#include <ctype.h>
#include <string.h>

/* The first word that occurs in the name decides. */
static const struct family_word {
	const char *word, *family;
} family_words[] = {
	{"flash", "attention"},           {"fmha", "attention"},           {"attention", "attention"},
	{"implicit_gemm", "convolution"}, {"convolve", "convolution"},     {"winograd", "convolution"},
	{"wgrad", "convolution"},         {"dgrad", "convolution"},        {"fprop", "convolution"},
	{"conv", "convolution"},          {"gemm", "matrix product"},      {"gemv", "matrix product"},
	{"cutlass", "matrix product"},    {"nvjet", "matrix product"},     {"Cijk_", "matrix product"},
	{"splitK", "matrix product"},     {"layer_norm", "normalization"}, {"batch_norm", "normalization"},
	{"bn_fw", "normalization"},       {"bn_bw", "normalization"},      {"rms_norm", "normalization"},
	{"softmax", "softmax"},
};

/* "void at::native::add_kernel_2<4, float>(int)" -> "at::native::add_kernel" */
static const char *bare_name(const char *name, struct arena *arena)
{
	size_t length = 0, kept = 0;
	char *bare;

	if (!strncmp(name, "void ", 5))
		name += 5;
	while (name[length] && name[length] != '<' && name[length] != '(')
		length++;
	bare = arena_dup_n(arena, name, length);
	for (size_t i = 0; i < length; i++)
		if (!isdigit((unsigned char)bare[i]))
			bare[kept++] = bare[i];
	bare[kept] = '\0';
	while (kept && bare[kept - 1] == '_')
		bare[--kept] = '\0';
	return kept ? bare : name;
}

const char *kernel_family(const char *name, struct arena *arena)
{
	if (is_communication_kernel(name)) {
		const char *collective = collective_of_name(name);

		return collective ? collective : "communication";
	}
	for (size_t i = 0; i < sizeof(family_words) / sizeof(family_words[0]); i++)
		if (strstr(name, family_words[i].word))
			return family_words[i].family;
	return bare_name(name, arena);
}
