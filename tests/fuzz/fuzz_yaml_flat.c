/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_yaml_flat.c: reads any bytes as YAML and checks what the header promises of the entries or of the error.
 */
#include "base/yaml_flat.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_right)
{
	if (!is_right)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct yaml_flat yaml;
	struct error err = {0};
	enum status status = yaml_flat_parse(&yaml, (const char *)data, size, "input", &err);

	if (status) {
		check(err.status == status && !strncmp(err.text, "'input'", 7));
		check(yaml.count == 0 && !yaml.entries);
	} else {
		check(err.text[0] == '\0' && yaml.count <= 10000);
	}
	for (int i = 0; i < yaml.count; i++) {
		check(yaml.entries[i].key[0] && strlen(yaml.entries[i].key) <= 4096);
		check(yaml.entries[i].line >= 1 && yaml.entries[i].line <= (int)size + 1);
		check(strlen(yaml.entries[i].value) <= size * 3);
	}
	yaml_flat_release(&yaml);
	return 0;
}
