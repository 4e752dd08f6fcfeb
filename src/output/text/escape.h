/* SPDX-License-Identifier: Apache-2.0
 *
 * escape.h: names from other people's programs, made fit for what a CI system reads. Each first becomes valid UTF-8 without control
 * characters (base/text.h), so that one name is one line, and loses the marks that turn the direction of text round. JSON has its own
 * writer.
 */
#ifndef OUTPUT_TEXT_ESCAPE_H
#define OUTPUT_TEXT_ESCAPE_H

#include "base/buffer.h"

/* Text of GitHub's Markdown, also in a cell of a table: nothing in it is markup, a link or a mention of somebody. Cut to `most`
 * characters. */
void escape_markdown(struct buffer *out, const char *text, size_t most);

/* The same as code. */
void escape_markdown_code(struct buffer *out, const char *text, size_t most);

/* Text or attribute of XML 1.0. */
void escape_xml(struct buffer *out, const char *text);

/* The message of a workflow command of GitHub (::error::message), and the value of one of its properties. */
void escape_workflow_message(struct buffer *out, const char *text);
void escape_workflow_property(struct buffer *out, const char *text);

#endif
