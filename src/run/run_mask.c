/* SPDX-License-Identifier: Apache-2.0
 *
 * run_mask.c: secrets are values with a telling name, passwords in URLs, and words with the token prefix of a
 * well-known service. Words inside one argument (sh -c "...") are checked one by one.
 */
#include "run/run_mask.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool contains(const char *text, size_t length, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= length; i++) {
		if (!strncasecmp(text + i, word, n))
			return true;
	}
	return false;
}

/* Returns true if a part of the name ends with the word: hf_token, --token, authToken, --db-pass; not tokenizer,
 * max_tokens, passes. */
static bool has_part(const char *name, size_t length, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= length; i++) {
		if (!strncasecmp(name + i, word, n) && (i + n == length || !isalpha((unsigned char)name[i + n])))
			return true;
	}
	return false;
}

static bool is_secret_name(const char *name, size_t length)
{
	static const char *const words[] = {"key",           "secret", "passw", "passphrase", "pwd", "credential",
	                                    "authorization", "bearer", "jwt",   "cookie",     NULL};

	for (int i = 0; words[i]; i++) {
		if (contains(name, length, words[i]))
			return true;
	}
	return has_part(name, length, "token") || has_part(name, length, "pass");
}

/* Returns true for tokens with a well-known prefix. */
static bool is_secret_value(const char *text, size_t length)
{
	static const char *const prefixes[] = {"hf_",       "ghp_",  "gho_",  "ghs_", "github_pat_", "glpat-",
	                                       "sk-",       "xoxb-", "xoxp-", "AKIA", "ASIA",        "eyJ",
	                                       "dckr_pat_", "pypi-", "ya29.", NULL};

	while (length && strchr("\"'", text[0]))
		text++, length--;
	for (int i = 0; prefixes[i]; i++) {
		size_t n = strlen(prefixes[i]);

		if (length >= n + 16 && !strncmp(text, prefixes[i], n) && !memchr(text, '/', length))
			return true;
	}
	return false;
}

/* Returns the length of "scheme://" at the start of text, or 0. */
static size_t scheme_length(const char *text, size_t length)
{
	size_t i = 0;

	while (i < length && (isalnum((unsigned char)text[i]) || strchr("+.-", text[i])))
		i++;
	return i && i + 3 <= length && !strncmp(text + i, "://", 3) ? i + 3 : 0;
}

/* Copies "user:password@" of a URL without the password. A long user without a password is a token, and masked too.
 * Returns the bytes consumed. */
static size_t mask_user(struct buffer *out, const char *text, size_t length)
{
	const char *end, *at = NULL, *colon;

	for (end = text; end < text + length && !strchr("/?#", *end); end++) {
		if (*end == '@')
			at = end;
	}
	if (!at)
		return 0;
	colon = memchr(text, ':', (size_t)(at - text));
	if (colon)
		buffer_add(out, text, (size_t)(colon + 1 - text));
	if (colon || at - text >= 20)
		buffer_add_text(out, RUN_MASK);
	else
		buffer_add(out, text, (size_t)(at - text));
	return (size_t)(at - text);
}

/* Masks one of the parts that ?, & and ; separate: name=value or a bare value. */
static void mask_part(struct buffer *out, const char *text, size_t length)
{
	const char *equals = memchr(text, '=', length);
	size_t name = equals ? (size_t)(equals - text) : 0;
	size_t scheme;

	if (equals && is_secret_name(text, name) && name + 1 < length) {
		buffer_add(out, text, name + 1);
		buffer_add_text(out, RUN_MASK);
		return;
	}
	if (equals) {
		buffer_add(out, text, name + 1);
		text += name + 1;
		length -= name + 1;
	}
	if (is_secret_value(text, length)) {
		buffer_add_text(out, RUN_MASK);
		return;
	}
	while (length && strchr("\"'", text[0])) {
		buffer_add(out, text++, 1);
		length--;
	}
	scheme = scheme_length(text, length);
	if (scheme) {
		size_t user;

		buffer_add(out, text, scheme);
		user = mask_user(out, text + scheme, length - scheme);
		text += scheme + user;
		length -= scheme + user;
	}
	buffer_add(out, text, length);
}

static void mask_word(struct buffer *out, const char *text, size_t length)
{
	size_t start = 0;

	for (size_t i = 0; i <= length; i++) {
		if (i < length && !strchr("?&;", text[i]))
			continue;
		mask_part(out, text + start, i - start);
		if (i < length)
			buffer_add(out, text + i, 1);
		start = i + 1;
	}
}

/* Returns true if the word names a secret that follows as the next word: --password, Authorization:, Bearer. */
static bool announces_secret(const char *text, size_t length)
{
	if (memchr(text, '=', length))
		return false;
	while (length && strchr("\"'", text[0]))
		text++, length--;
	if (length > 1 && text[0] == '-')
		return is_secret_name(text, length);
	return (length > 1 && text[length - 1] == ':' && is_secret_name(text, length - 1)) ||
	       (length == 6 && !strncasecmp(text, "bearer", 6));
}

void run_mask_argument(struct buffer *out, const char *argument, bool *is_secret)
{
	while (*argument) {
		size_t blanks = strspn(argument, " \t\r\n");
		size_t word = strcspn(argument + blanks, " \t\r\n");
		const char *text = argument + blanks;

		buffer_add(out, argument, blanks);
		argument += blanks + word;
		if (!word)
			continue;
		if (announces_secret(text, word)) {
			buffer_add(out, text, word);
			*is_secret = true;
			continue;
		}
		if (*is_secret && text[0] != '-')
			buffer_add_text(out, RUN_MASK);
		else
			mask_word(out, text, word);
		*is_secret = false;
	}
}

void run_mask_variable(struct buffer *out, const char *name, const char *value)
{
	bool is_secret = false;

	if (is_secret_name(name, strlen(name)))
		buffer_add_text(out, value[0] ? RUN_MASK : "");
	else
		run_mask_argument(out, value, &is_secret);
}
