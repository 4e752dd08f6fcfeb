/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces in gzip, zstd and UTF-16, whole, cut and damaged.
 */
#include "base/input_stream.h"
#include "kineto_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

static size_t gzip(const char *text, size_t length, unsigned char *out, size_t capacity)
{
	z_stream stream = {.next_in = (Bytef *)(uintptr_t)text,
	                   .avail_in = (uInt)length,
	                   .next_out = out,
	                   .avail_out = (uInt)capacity};
	assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	deflateEnd(&stream);
	return stream.total_out;
}

/* J19 */
static void compressed_traces(void **state)
{
	static const struct test_case good = {"gzip", "", A_AND_B, NULL, 0},
				      cut = {"gzip, cut", "", A_AND_B, "1 the compressed data is cut off", 0};
	static const char first[] = HEAD A ",", second[] = B TAIL, all[] = HEAD A "," B TAIL;
	unsigned char bytes[2048];
	size_t length = gzip(all, sizeof all - 1, bytes, sizeof bytes);
	check_case(&good, bytes, length);
	check_case(&cut, bytes, length - 6); /* in its check sum */
	bytes[length - 6] ^= 1;
	check_case(&cut, bytes, length);
	length = gzip(first, sizeof first - 1, bytes, sizeof bytes);
	length += gzip(second, sizeof second - 1, bytes + length, sizeof bytes - length);
	check_case(&good, bytes, length);
	for (size_t cut_at = 12; cut_at < length; cut_at++) { /* J08: at any byte */
		struct model model;
		struct error err = {0};
		enum status status = load(bytes, cut_at, &model, &err);
		assert_true(status == STATUS_OK || status == STATUS_INPUT);
		model_release(&model);
	}
	memset(bytes + length, 0, 32); /* tapes and some stores fill up with zeros, as gzip knows */
	check_case(&good, bytes, length + 32);
	bytes[length + 31] = 'x';
	check_case(&cut, bytes, length + 32);
}

#define MEMBERS 24

static size_t zstd(const char *text, size_t length, unsigned char *out, size_t capacity)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	length = ZSTD_compress2(context, out, capacity, text, length);
	assert_false(ZSTD_isError(length));
	ZSTD_freeCCtx(context);
	return length;
}

/* MEMBERS events, each a member of gzip (or a frame of zstd), and where those begin. */
static size_t pack_members(unsigned char *bytes, size_t capacity, size_t begins[MEMBERS + 1], bool is_zstd)
{
	size_t length = 0;
	for (int i = 0; i < MEMBERS; i++) {
		char text[256];
		int n = snprintf(text, sizeof text, "%s" OP("m%02d", "%d", "1") "%s", i ? "" : HEAD, i, 2 * i + 1,
		                 i + 1 < MEMBERS ? ",\n" : TAIL);
		begins[i] = length;
		length += (is_zstd ? zstd : gzip)(text, (size_t)n, bytes + length, capacity - length);
	}
	begins[MEMBERS] = length;
	return length;
}

/* All must be there but `damaged` and the `lost` behind it; when one of those is not, it must be said. */
static void check_members(const unsigned char *bytes, size_t length, int damaged, int lost, const char *what)
{
	struct test_case said = {what, "", "", "1 places where the compressed data is damaged", 0};
	struct model model;
	struct error err = {0};
	struct buffer spans;
	bool is_all = true;
	assert_int_equal(load(bytes, length, &model, &err), STATUS_OK);
	describe(&model, &spans);
	for (int i = 0; i < MEMBERS; i++) {
		char span[64];
		snprintf(span, sizeof span, "m%02d %d+1000\n", i, 1000 * (2 * i + 1));
		bool is_here = strstr(spans.data, span);
		if (!is_here && (i < damaged || i > damaged + lost))
			fail_msg("%s: event %d is not there:\n%s", what, i, spans.data);
		is_all &= is_here;
	}
	if (!is_all)
		check_ledger(&said, &model);
	buffer_release(&spans);
	model_release(&model);
}

/* J19: what follows a damaged member is read. */
static void members_behind_a_damaged_one(void **state)
{
	static unsigned char bytes[16384];
	for (int is_zstd = 0; is_zstd < 2; is_zstd++) {
		size_t begins[MEMBERS + 1], length = pack_members(bytes, sizeof bytes, begins, is_zstd);
		for (size_t bit = 8 * begins[7]; bit < 8 * begins[8]; bit++) {
			char what[64];
			snprintf(what, sizeof what, "%s, bit %zu of a member", is_zstd ? "zstd" : "gzip",
			         bit - 8 * begins[7]);
			bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
			check_members(bytes, length, 7, 0, what);
			bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
		}
		memset(bytes + begins[3] + 30, 0, begins[5] - begins[3]); /* a hole from member to member */
		check_members(bytes, length, 3, 2, "a hole");
	}
}

/* Of many lengths, read in small pieces: the end of the data and the end of its output do not come together. */
static void compressed_input_in_pieces(void **state)
{
	static unsigned char bytes[1 << 16];
	static char text[40000];
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)(i * i % 251);
	for (size_t length = 1; length < sizeof text; length = length * 5 / 4 + 1) {
		for (size_t capacity = 1; capacity < 3000; capacity = capacity * 7 + 2) {
			size_t compressed = gzip(text, length, bytes, sizeof bytes), done = 0, n = 1;
			struct input_stream *input;
			struct error err;
			char path[64], piece[3000];
			int fd = memfd_create("gzip", 0);
			assert_int_equal(write(fd, bytes, compressed), compressed);
			snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
			assert_int_equal(input_open(path, &input, &err), STATUS_OK);
			for (; n > 0; done += n) {
				assert_int_equal(input_read(input, piece, capacity, &n, &err), STATUS_OK);
				assert_memory_equal(piece, text + done, n);
			}
			assert_int_equal(done, length);
			input_close(input);
			close(fd);
		}
	}
}

/* J19: both byte orders, with and without a mark. */
static void traces_in_utf16(void **state)
{
	static const struct test_case expected = {"UTF-16", "", A_AND_B, "1 the text is UTF-16", 0};
	static const char text[] = HEAD A "," B TAIL;
	char bytes[2 * sizeof text];
	for (int form = 0; form < 4; form++) {
		bool is_big = form & 1, has_mark = form & 2;
		size_t length = 0;
		if (has_mark) {
			memcpy(bytes, is_big ? "\xfe\xff" : "\xff\xfe", 2);
			length = 2;
		}
		for (size_t i = 0; i + 1 < sizeof text; i++, length += 2) {
			bytes[length + is_big] = text[i];
			bytes[length + !is_big] = 0;
		}
		check_case(&expected, bytes, length);
		unsigned char packed[2 * sizeof bytes];
		check_case(&expected, packed, gzip(bytes, length, packed, sizeof packed));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compressed_traces),
		cmocka_unit_test(members_behind_a_damaged_one),
		cmocka_unit_test(compressed_input_in_pieces),
		cmocka_unit_test(traces_in_utf16),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
