/* SPDX-License-Identifier: Apache-2.0
 *
 * device_peaks.c: see device_peaks.h. Numbers are from data sheets, in 10^12 operations per second, dense. If a sheet
 * gives them with sparsity, they are halved.
 */
#include "analysis/devices/device_peaks.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct peaks { /* 0: unsupported, or not given by its maker */
	const char *pattern, *device, *source;
	double fp64, fp64_matrix, fp32, tf32, fp16, bf16, fp8, int8;
};

/* The first row counts whose words are all in the name, each as a whole word: special names come before general
 * ones. */
static const struct peaks table[] = {
	{"V100 PCIE", "V100 PCIe", "NVIDIA V100 data sheet", 7, 0, 14, 0, 112, 0, 0, 0},
	{"V100", "V100 SXM2", "NVIDIA V100 data sheet", 7.8, 0, 15.7, 0, 125, 0, 0, 0},
	{"Tesla T4", "T4", "NVIDIA T4 data sheet", 0, 0, 8.1, 0, 65, 0, 0, 130},
	{"A100", "A100", "NVIDIA A100 data sheet", 9.7, 19.5, 19.5, 156, 312, 312, 0, 624},
	{"A30", "A30", "NVIDIA A30 data sheet", 5.2, 10.3, 10.3, 82, 165, 165, 0, 330},
	{"A10", "A10", "NVIDIA A10 data sheet", 0, 0, 31.2, 62.5, 125, 125, 0, 250},
	{"A40", "A40", "NVIDIA A40 data sheet", 0, 0, 37.4, 74.8, 149.7, 149.7, 0, 299.3},
	{"RTX A6000", "RTX A6000", "NVIDIA RTX A6000 data sheet", 0, 0, 38.7, 77.4, 154.8, 154.8, 0, 309.7},
	{"L40S", "L40S", "NVIDIA L40S data sheet", 0, 0, 91.6, 183, 362.05, 362.05, 733, 733},
	{"L40", "L40", "NVIDIA L40 data sheet", 0, 0, 90.5, 90.5, 181.05, 181.05, 362, 362},
	{"L4", "L4", "NVIDIA L4 data sheet", 0, 0, 30.3, 60, 121, 121, 242.5, 242.5},
	{"H100 PCIe", "H100 PCIe", "NVIDIA H100 data sheet", 26, 51, 51, 378, 756, 756, 1513, 1513},
	{"H100 NVL", "H100 NVL", "NVIDIA H100 data sheet", 30, 60, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5},
	{"H100", "H100 SXM", "NVIDIA H100 data sheet", 34, 67, 67, 494.5, 989.5, 989.5, 1979, 1979},
	{"H200 NVL", "H200 NVL", "NVIDIA H200 data sheet", 30, 60, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5},
	{"H200", "H200 SXM", "NVIDIA H200 data sheet", 34, 67, 67, 494.5, 989.5, 989.5, 1979, 1979},
	{"B200", "B200", "NVIDIA HGX B200 data sheet, an eighth of it", 37, 37, 75, 1125, 2250, 2250, 4500, 4500},
	{"RTX 3090", "RTX 3090", "NVIDIA Ampere GA102 white paper", 0, 0, 35.6, 35.6, 71, 71, 0, 284},
	{"RTX 4090", "RTX 4090", "NVIDIA Ada white paper", 0, 0, 82.6, 82.6, 165.2, 165.2, 330.3, 660.6},
	{"MI210", "MI210", "AMD Instinct MI210 data sheet", 22.6, 45.3, 45.3, 0, 181, 181, 0, 181},
	{"MI250X", "half an MI250X", "AMD Instinct MI250X data sheet, half of it", 23.95, 47.85, 47.85, 0, 191.5, 191.5,
         0, 191.5},
	{"MI300X", "MI300X", "AMD Instinct MI300X data sheet", 81.7, 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9,
         2614.9},
	{"MI325X", "MI325X", "AMD Instinct MI325X data sheet", 81.7, 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9,
         2614.9},
};

static bool is_part_of_word(char letter)
{
	return isalnum((unsigned char)letter);
}

static bool device_peaks_has_word(const char *name, const char *word, size_t length)
{
	for (const char *at = name; *at; at++)
		if (!strncasecmp(at, word, length) && (at == name || !is_part_of_word(at[-1])) &&
		    !is_part_of_word(at[length]))
			return true;
	return false;
}

static bool has_words(const char *name, const char *words)
{
	while (*words) {
		size_t length = strcspn(words, " ");

		if (!device_peaks_has_word(name, words, length))
			return false;
		words += length + (words[length] == ' ');
	}
	return true;
}

static double device_peaks_choose(const struct peaks *row, const char *dtype, bool is_tensor_core, const char **unit)
{
	*unit = row->pattern[0] == 'M' && row->pattern[1] == 'I' ? "matrix cores" : "tensor cores";
	if (!strcmp(dtype, "float16"))
		return row->fp16;
	if (!strcmp(dtype, "bfloat16"))
		return row->bf16;
	if (!strncmp(dtype, "float8_", 7))
		return row->fp8;
	if (!strcmp(dtype, "int8"))
		return row->int8;
	if (!strcmp(dtype, "float32") && is_tensor_core && row->tf32 > 0) {
		*unit = "TF32 on tensor cores";
		return row->tf32;
	}
	if (!strcmp(dtype, "float64") && is_tensor_core && row->fp64_matrix > 0)
		return row->fp64_matrix;
	*unit = "without tensor cores";
	return !strcmp(dtype, "float32") ? row->fp32 : !strcmp(dtype, "float64") ? row->fp64 : 0;
}

bool device_peak_find(struct device_peak *peak, const char *name, const char *dtype, bool is_tensor_core)
{
	if (has_words(name, "MIG")) /* a part of a device; the name does not tell its size */
		return false;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct peaks *row = &table[i];

		if (!has_words(name, row->pattern))
			continue;
		*peak = (struct device_peak){.device = row->device, .source = row->source};
		peak->flops_per_s = 1e12 * device_peaks_choose(row, dtype, is_tensor_core, &peak->unit);
		return peak->flops_per_s > 0;
	}
	return false;
}
