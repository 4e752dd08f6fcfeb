/* SPDX-License-Identifier: Apache-2.0
 *
 * test_escape.c: names that would be markup, commands or broken bytes in what CI systems read.
 */
#include "output/text/escape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef void (*escape)(struct buffer *, const char *);

static void markdown(struct buffer *out, const char *text)
{
	escape_markdown(out, text, 1000);
}

static void check(escape function, const char *text, const char *expected)
{
	struct buffer out;

	buffer_init(&out, 1 << 20);
	buffer_add_text(&out, "");
	function(&out, text);
	assert_string_equal(out.data ? out.data : "", expected);
	buffer_release(&out);
}

static void markdown_takes_no_markup(void **state)
{
	check(markdown, "aten::mm, 4 + 4 = 8 (50 %)", "aten::mm, 4 + 4 = 8 (50 %)");
	check(markdown, "a|b\\|c", "a&#124;b&#92;&#124;c");
	check(markdown, "<b>&amp;", "&#60;b&#62;&#38;amp;");
	check(markdown, "`x` *y* _z_ ~w~ [a](b) ![c] #12",
	      "&#96;x&#96; &#42;y&#42; &#95;z&#95; &#126;w&#126; &#91;a&#93;(b) "
	      "&#33;&#91;c&#93; &#35;12");
	check(markdown, "@everybody https://x.y www.z", "&#64;everybody https:&#47;&#47;x.y www&#46;z");
	check(markdown, "one\nline\r\n\t\x01", "one line    ");
	check(markdown, "snake_case __init__ a/b // train.py",
	      "snake_case &#95;&#95;init&#95;&#95; a/b &#47;&#47; train.py");
	check(markdown, "bad \xff\xc3(", "bad \xef\xbf\xbd\xef\xbf\xbd(");
	check(markdown, "turn \u202e\u200bround", "turn \xef\xbf\xbd\xef\xbf\xbdround");
	check(markdown, "über", "über");
	check(markdown, "", "");
}

static void markdown_is_cut_between_characters(void **state)
{
	struct buffer out;

	buffer_init(&out, 1 << 20);
	escape_markdown_code(&out, "üüüü", 2);
	escape_markdown_code(&out, "ab", 2);
	assert_string_equal(out.data, "<code>üü…</code><code>ab</code>");
	buffer_release(&out);
}

static void xml_is_well_formed(void **state)
{
	check(escape_xml, "]]> <a b=\"c\" d='e'> & x", "]]&gt; &lt;a b=&quot;c&quot; d=&apos;e&apos;&gt; &amp; x");
	check(escape_xml, "\x01\x1f\x7f|\xef\xbf\xbe|\xef\xbf\xbf|\xed\xa0\x80|",
	      "   |\xef\xbf\xbd|\xef\xbf\xbd|"
	      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|");
}

static void a_workflow_command_stays_one(void **state)
{
	check(escape_workflow_message, "50 %\n::error::x", "50 %25 ::error::x");
	check(escape_workflow_property, "a:b,c%\r", "a%3Ab%2Cc%25 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(markdown_takes_no_markup),
		cmocka_unit_test(markdown_is_cut_between_characters),
		cmocka_unit_test(xml_is_well_formed),
		cmocka_unit_test(a_workflow_command_stays_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
