/* SPDX-License-Identifier: Apache-2.0
 *
 * escape.c: see the header.
 */
#include "output/text/escape.h"

#include "base/text.h"
#include "base/utf8.h"

#include <string.h>

#define MOST_BYTES ((size_t)1 << 20)

/* Returns true for U+FFFE and U+FFFF, which XML forbids, and for characters that hide or turn text. The latter are
 * U+200B to U+200F, U+202A to U+202E, U+2066 to U+2069, and U+FEFF. */
static bool is_unwanted(const char *text, size_t length)
{
	static const char *const ranges[][2] = {{"\u200b", "\u200f"},
	                                        {"\u202a", "\u202e"},
	                                        {"\u2066", "\u2069"},
	                                        {"\ufeff", "\ufeff"},
	                                        {"\xef\xbf\xbe", "\xef\xbf\xbf"}};

	for (size_t i = 0; length == 3 && i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		if (memcmp(text, ranges[i][0], 3) >= 0 && memcmp(text, ranges[i][1], 3) <= 0)
			return true;
	}
	return false;
}

/* Iterates over the characters of a text. */
struct escape_walk {
	struct buffer clean;
	size_t at;
};

static void walk_begin(struct escape_walk *walk, const char *text)
{
	*walk = (struct escape_walk){0};
	buffer_init(&walk->clean, MOST_BYTES);
	text_clean(&walk->clean, text, strlen(text));
}

static const char *walk_next(struct escape_walk *walk, size_t *length)
{
	const char *here = walk->clean.data + walk->at;

	if (walk->at >= walk->clean.length)
		return NULL;
	*length = utf8_length(here, walk->clean.length - walk->at);
	*length = *length ? *length : 1;
	walk->at += *length;
	if (!is_unwanted(here, *length))
		return here;
	*length = 3;
	return UTF8_REPLACEMENT;
}

static void add_entity(struct buffer *out, char c)
{
	buffer_printf(out, "&#%d;", c);
}

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Returns true within "snake_case", "tokens/s" and "train.py", but not within "__init__", "https://" and "www.", which
 * would become markup or links. */
static bool is_within_word(const char *here, bool is_first)
{
	if (is_first || !is_alnum(here[-1]))
		return false;
	if (*here == '.')
		return strncasecmp(here - 1, "w", 1) != 0;
	return (*here == '_' || *here == '/') && is_alnum(here[1]);
}

/* Writes possible markup as a numeric entity, which both Markdown and HTML decode. */
static void add_markdown(struct buffer *out, const char *here, size_t length, bool is_first)
{
	static const char harmless[] = " ,:;()=+-%";

	if (length > 1 || is_alnum(*here) || strchr(harmless, *here) || is_within_word(here, is_first))
		buffer_add(out, here, length);
	else
		add_entity(out, *here);
}

void escape_markdown(struct buffer *out, const char *text, size_t most)
{
	struct escape_walk walk;
	const char *here;
	size_t length, count = 0;

	walk_begin(&walk, text);
	while ((here = walk_next(&walk, &length)) && count++ < most)
		add_markdown(out, here, length, here == walk.clean.data);
	if (here)
		buffer_add_text(out, "…");
	buffer_release(&walk.clean);
}

void escape_markdown_code(struct buffer *out, const char *text, size_t most)
{
	buffer_add_text(out, "<code>");
	escape_markdown(out, text, most);
	buffer_add_text(out, "</code>");
}

void escape_xml(struct buffer *out, const char *text)
{
	struct escape_walk walk;
	const char *here;
	size_t length;

	walk_begin(&walk, text);
	while ((here = walk_next(&walk, &length))) {
		if (*here == '&')
			buffer_add_text(out, "&amp;");
		else if (*here == '<')
			buffer_add_text(out, "&lt;");
		else if (*here == '>') /* also because ]]> ends a section */
			buffer_add_text(out, "&gt;");
		else if (*here == '"')
			buffer_add_text(out, "&quot;");
		else if (*here == '\'')
			buffer_add_text(out, "&apos;");
		else
			buffer_add(out, here, length);
	}
	buffer_release(&walk.clean);
}

static void escape_workflow(struct buffer *out, const char *text, const char *also)
{
	struct escape_walk walk;
	const char *here;
	size_t length;

	walk_begin(&walk, text);
	while ((here = walk_next(&walk, &length))) {
		if (*here == '%' || (length == 1 && strchr(also, *here)))
			buffer_printf(out, "%%%02X", *here);
		else
			buffer_add(out, here, length);
	}
	buffer_release(&walk.clean);
}

/* The text has no newlines any more: text after a newline would be a separate command. */
void escape_workflow_message(struct buffer *out, const char *text)
{
	escape_workflow(out, text, "");
}

void escape_workflow_property(struct buffer *out, const char *text)
{
	escape_workflow(out, text, ":,");
}
