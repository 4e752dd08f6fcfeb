/* SPDX-License-Identifier: Apache-2.0
 *
 * escape.h: escapes names of other programs for CI systems. Each name first becomes valid UTF-8 without control
 * characters (base/text.h), so that it is one line, and loses its direction marks. JSON has its own writer.
 */
#ifndef OUTPUT_TEXT_ESCAPE_H
#define OUTPUT_TEXT_ESCAPE_H

#include "base/buffer.h"

/* Writes text for GitHub's Markdown, also in a cell of a table: nothing in it becomes markup, a link or a mention. Cuts
 * it to `most` characters. */
void escape_markdown(struct buffer *out, const char *text, size_t most);

/* As escape_markdown(), but as code. */
void escape_markdown_code(struct buffer *out, const char *text, size_t most);

/* Writes text or an attribute of XML 1.0. */
void escape_xml(struct buffer *out, const char *text);

/* Write the message of a GitHub workflow command (::error::message), and the value of one of its properties. */
void escape_workflow_message(struct buffer *out, const char *text);
void escape_workflow_property(struct buffer *out, const char *text);

#endif
