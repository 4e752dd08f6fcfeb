/* SPDX-License-Identifier: Apache-2.0
 *
 * hex_id.h: ids of 16 bytes written as 32 hexadecimal digits, with or without dashes, and the boot id of the running
 * system. The boot id changes at each boot and differs between machines. There is no .c file, because the recorder uses
 * it too.
 *
 *     uint8_t id[HEX_ID_BYTES];
 *     bool is_ours = hex_id_of_boot(id) && memcmp(id, header->boot_id, sizeof(id)) == 0;
 */
#ifndef BASE_HEX_ID_H
#define BASE_HEX_ID_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define HEX_ID_BYTES 16

/* Returns false unless the text has 32 digits; the rest of the id is then zero. Skips other characters between the
 * digits. */
static inline bool hex_id_parse(uint8_t id[HEX_ID_BYTES], const char *text)
{
	int count = 0;

	memset(id, 0, HEX_ID_BYTES);
	for (; *text && count < 2 * HEX_ID_BYTES; text++) {
		int digit = *text >= '0' && *text <= '9'   ? *text - '0'
		            : *text >= 'a' && *text <= 'f' ? *text - 'a' + 10
		                                           : -1;

		if (digit < 0)
			continue;
		id[count / 2] = (uint8_t)(id[count / 2] << 4 | digit);
		count++;
	}
	return count == 2 * HEX_ID_BYTES;
}

/* Returns false, with an id of zeros, if the boot id is unknown: there is no /proc, or no free descriptor. */
static inline bool hex_id_of_boot(uint8_t id[HEX_ID_BYTES])
{
	char text[64] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, text, sizeof(text) - 1) < 0)
			text[0] = '\0';
		close(fd);
	}
	return hex_id_parse(id, text);
}

#endif
