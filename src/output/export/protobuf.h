/* SPDX-License-Identifier: Apache-2.0
 *
 * protobuf.h: writes Protocol Buffers. Small messages are built in a struct proto (of fixed size; the caller knows the
 * sizes) and nested; the caller writes the outermost one.
 */
#ifndef OUTPUT_EXPORT_PROTOBUF_H
#define OUTPUT_EXPORT_PROTOBUF_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum proto_wire {
	PROTO_VARINT = 0,
	PROTO_FIXED64 = 1,
	PROTO_BYTES = 2,
	PROTO_FIXED32 = 5
};

static inline char *proto_put_varint(char *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (char)(value | 0x80);
		value >>= 7;
	}
	*at++ = (char)value;
	return at;
}

struct proto {
	size_t length;
	char data[4096];
};

/* Starts a message. (An initialiser would zero all of it.) */
static inline void proto_clear(struct proto *proto)
{
	proto->length = 0;
}

static inline char *proto_room(struct proto *proto, size_t bytes)
{
	assert(sizeof(proto->data) - proto->length >= bytes);
	return proto->data + proto->length;
}

static inline void proto_varint(struct proto *proto, uint32_t field, uint64_t value)
{
	char *at = proto_put_varint(proto_room(proto, 16), field << 3 | PROTO_VARINT);

	proto->length = (size_t)(proto_put_varint(at, value) - proto->data);
}

static inline void proto_fixed64(struct proto *proto, uint32_t field, uint64_t value)
{
	char *at = proto_put_varint(proto_room(proto, 16), field << 3 | PROTO_FIXED64);

	memcpy(at, &value, 8);
	proto->length = (size_t)(at + 8 - proto->data);
}

static inline void proto_double(struct proto *proto, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, 8);
	proto_fixed64(proto, field, bits);
}

static inline void proto_bytes(struct proto *proto, uint32_t field, const void *bytes, size_t length)
{
	char *at = proto_put_varint(proto_room(proto, length + 16), field << 3 | PROTO_BYTES);

	at = proto_put_varint(at, length);
	memcpy(at, bytes, length);
	proto->length = (size_t)(at + length - proto->data);
}

static inline void proto_text(struct proto *proto, uint32_t field, const char *text)
{
	proto_bytes(proto, field, text, strlen(text));
}

static inline void proto_message(struct proto *proto, uint32_t field, const struct proto *message)
{
	proto_bytes(proto, field, message->data, message->length);
}

#endif
