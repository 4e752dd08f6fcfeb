/* SPDX-License-Identifier: Apache-2.0
 *
 * run_options.c: combines the four sources of settings. The recorder defines the meaning of each option.
 */
#include "run/run_options.h"

#include "base/yaml_flat.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MAXIMUM_ROWS 40
#define OUT_OPTION "out"
#define BOOL_UNSET 2

extern char **environ;

static const char *out_directory;
static const char *config_file;
static struct option_list overrides;
static bool is_host_off;

/* clang-format off */
static const struct option own_options[] = {
	OPTION_GROUP("Run"),
	OPTION_TEXT("out", 'o', &out_directory, "DIR", "run directory (default: stepscope-runs/<time>_<program>_<pid>)"),
	OPTION_TEXT("config", 'c', &config_file, "FILE",
		"YAML file with the options below (default: ./stepscope.yaml if it exists)"),
	OPTION_LIST("set", 0, &overrides, "KEY=VALUE",
		"set an option by its name in a YAML file, such as profiler.enabled=true; repeatable"),
	OPTION_FLAG("no-host", 0, &is_host_off, "do not record the machine (CPU, memory, disk, network, pressure, cgroup)"),
	OPTION_GROUP("Recording"),
	OPTION_END,
};
/* clang-format on */
#define OWN_COUNT (sizeof(own_options) / sizeof(own_options[0]) - 1)

static struct option table[OWN_COUNT + MAXIMUM_ROWS + 1];
static const char *texts[MAXIMUM_ROWS];
/* bool, or BOOL_UNSET if the option was not given: read as bytes only */
static unsigned char flags[MAXIMUM_ROWS];
static char helps[MAXIMUM_ROWS][400];

static bool run_options_is_own(const char *name)
{
	return !strcmp(name, OUT_OPTION);
}

static void make_row(struct option *option, int row)
{
	const struct record_option *source = &record_options_table[row];
	bool is_flag = source->type == RECORD_BOOL;
	const char *name = source->flag + strlen("--");
	size_t length = strlen(source->help);

	if (is_flag && !strcmp(source->fallback, "true"))
		snprintf(helps[row], sizeof(helps[row]), "%s (on; --no-%s turns it off)", source->help, name);
	else if (!is_flag && source->fallback[0] && length && source->help[length - 1] == ')')
		snprintf(helps[row], sizeof(helps[row]), "%.*s; default: %s)", (int)length - 1, source->help,
		         source->fallback);
	else if (!is_flag && source->fallback[0])
		snprintf(helps[row], sizeof(helps[row]), "%s (default: %s)", source->help, source->fallback);
	else
		snprintf(helps[row], sizeof(helps[row]), "%s", source->help);
	*option = (struct option){
		.type = is_flag ? OPTION_TYPE_FLAG : OPTION_TYPE_TEXT,
		.name = name,
		.value = is_flag ? (void *)&flags[row] : (void *)&texts[row],
		.argument = is_flag ? NULL : source->argument,
		.help = helps[row],
	};
}

const struct option *run_options_table(void)
{
	size_t count = OWN_COUNT;

	if (table[0].type != OPTION_TYPE_END)
		return table;
	memcpy(table, own_options, sizeof(own_options));
	memset(flags, BOOL_UNSET, sizeof(flags));
	for (int row = 0; record_options_table[row].name && row < MAXIMUM_ROWS; row++) {
		if (!run_options_is_own(record_options_table[row].name))
			make_row(&table[count++], row);
	}
	table[count] = (struct option)OPTION_END;
	return table;
}

bool run_options_is_variable(const char *entry)
{
	size_t length = strcspn(entry, "=");

	for (int row = 0; record_options_table[row].name; row++) {
		const char *name = record_options_table[row].environment;

		if (strlen(name) == length && !strncmp(name, entry, length))
			return true;
	}
	return false;
}

void run_options_clear_environment(void)
{
	for (char **entry = environ; *entry;) {
		char name[128];
		size_t length = strcspn(*entry, "=");

		if (strncmp(*entry, "STEPSCOPE", 9) != 0 || length >= sizeof(name)) {
			entry++;
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)length, *entry);
		if (unsetenv(name) != 0)
			entry++;
	}
}

/* ---- sources ---- */

static enum status run_options_refuse(struct error *err, const char *problem)
{
	const char *hint = strstr(problem, ", did you mean ");

	if (!hint)
		return error_set(err, STATUS_USAGE, "%s", problem);
	error_set(err, STATUS_USAGE, "%.*s", (int)(hint - problem), problem);
	error_hint(err, "%s", hint + 2);
	return STATUS_USAGE;
}

/* `taken` counts the recognized keys: a lenient reader skips the rest. */
static enum status set(struct record_settings *given, const char *key, const char *value, const char *origin,
                       int *taken, struct error *err)
{
	char problem[512] = "";

	if (record_settings_set(given, key, value, origin, taken != NULL, problem, sizeof(problem))) {
		if (taken)
			++*taken;
		return STATUS_OK;
	}
	return problem[0] ? run_options_refuse(err, problem) : STATUS_OK;
}

/* Returns true if the file contains only options, without a block: every key at its top level is one of our
 * options. If one key is not, the file is the configuration of a training, whose keys may share our names with
 * another meaning. */
static bool is_of_options(const struct yaml_flat *file)
{
	for (int i = 0; i < file->count; i++) {
		if (record_key_of(file->entries[i].key) != RECORD_KEY_OPTION)
			return false;
	}
	return file->count > 0;
}

static bool is_nothing(const char *value)
{
	return !value[0] || !strcmp(value, "~") || !strcasecmp(value, "null");
}

/* Returns true for "profiler:" without a value: all options have their defaults. */
static bool is_empty_block(const struct yaml_entry *entry)
{
	const char *dot = strrchr(entry->key, '.');

	return is_nothing(entry->value) && record_key_of(dot ? dot + 1 : entry->key) == RECORD_KEY_BLOCK;
}

/* A file that is read: its options are in one block, and each option occurs once. */
struct config {
	const char *path;
	struct yaml_flat *file;
	bool is_lenient;
	int taken;                                      /* recognized entries */
	const struct yaml_entry *block;                 /* the first entry in a block */
	const struct yaml_entry *options[MAXIMUM_ROWS]; /* the first entry of each option */
};

static enum status check_block(struct config *config, const struct yaml_entry *entry, size_t length, struct error *err)
{
	const struct yaml_entry *other = config->block;
	size_t other_length;

	if (!other) {
		config->block = entry;
		return STATUS_OK;
	}
	record_key_row(other->key, &other_length);
	if (other_length == length && !memcmp(other->key, entry->key, length))
		return STATUS_OK;
	error_set(err, STATUS_USAGE, "'%s' has two blocks of options: '%.*s' (line %d) and '%.*s' (line %d)",
	          config->path, (int)other_length, other->key, other->line, (int)length, entry->key, entry->line);
	error_hint(err, "keep one of them");
	return STATUS_USAGE;
}

/* Returns the length of "steps" in "steps.0". */
static size_t length_without_item(const char *key)
{
	size_t length = strlen(key);

	while (length && isdigit((unsigned char)key[length - 1]))
		length--;
	return length && key[length - 1] == '.' ? length - 1 : strlen(key);
}

/* Refuses an option that is given twice. An option has several names, and a file may have it at the top level and in a
 * block. */
static enum status check_once(struct config *config, const struct yaml_entry *entry, struct error *err)
{
	size_t block, length = length_without_item(entry->key);
	int row = record_key_row(entry->key, &block);
	const struct yaml_entry *other = row >= 0 && row < MAXIMUM_ROWS ? config->options[row] : NULL;

	if (block && check_block(config, entry, block, err))
		return STATUS_USAGE;
	if (row >= 0 && row < MAXIMUM_ROWS && !other)
		config->options[row] = entry;
	if (!other || !strcmp(other->value, entry->value) ||
	    (length == length_without_item(other->key) && !memcmp(other->key, entry->key, length)))
		return STATUS_OK;
	error_set(err, STATUS_USAGE, "'%s' line %d: '%s' is the same option as '%s' in line %d", config->path,
	          entry->line, entry->key, other->key, other->line);
	error_hint(err, "keep one of them");
	return STATUS_USAGE;
}

static enum status read_entry(struct record_settings *given, struct config *config, const struct yaml_entry *entry,
                              struct error *err)
{
	const char *path = config->path;
	bool is_ours = !config->is_lenient || record_key_of(entry->key) == RECORD_KEY_BLOCK;
	int before = config->taken;
	enum status status;

	if ((entry->is_alias || entry->document > 1) && !is_ours)
		return STATUS_OK;
	if (entry->is_alias)
		return error_set(err, STATUS_USAGE, "'%s' line %d: aliases (*name) are not supported; write the value",
		                 path, entry->line);
	if (entry->document > 1)
		return error_set(err, STATUS_USAGE,
		                 "'%s' line %d: the file has a second document; write all options in the first", path,
		                 entry->line);
	if (is_empty_block(entry)) {
		config->taken++;
		return STATUS_OK;
	}
	status = set(given, entry->key, entry->value, arena_printf(&config->file->arena, "%s:%d", path, entry->line),
	             config->is_lenient ? &config->taken : NULL, err);
	if (status || (config->is_lenient && config->taken == before))
		return status;
	return check_once(config, entry, err);
}

/* The entries live as long as the program, because settings borrow their origins from them. */
static enum status read_config(struct record_settings *given, const char *path, bool is_lenient, struct error *err)
{
	static struct yaml_flat yaml[3];
	static int files;
	struct yaml_flat *file = &yaml[files++ % 3];
	enum status status = yaml_flat_read(file, path, err);
	struct config config = {.path = path, .file = file, .is_lenient = is_lenient && !is_of_options(file)};

	for (int i = 0; !status && i < file->count; i++)
		status = read_entry(given, &config, &file->entries[i], err);
	if (!status && config.is_lenient && !config.taken) {
		error_set(err, STATUS_USAGE, "'%s' has no options for stepscope", path);
		error_hint(err, "write them in a block 'stepscope:', 'profiler:' or 'profiling:', or in a file without "
		                "other keys; see stepscope help run");
		return STATUS_USAGE;
	}
	return status;
}

static enum status read_configs(struct record_settings *given, struct error *err)
{
	const char *home = getenv("XDG_CONFIG_HOME");
	char path[1024] = "";
	enum status status = STATUS_OK;

	if (home && home[0])
		snprintf(path, sizeof(path), "%s/stepscope/config.yaml", home);
	else if (getenv("HOME"))
		snprintf(path, sizeof(path), "%s/.config/stepscope/config.yaml", getenv("HOME"));
	if (path[0] && access(path, R_OK) == 0)
		status = read_config(given, path, false, err);
	if (status)
		return status;
	/* a file named with --config may be the configuration of the whole training */
	if (config_file)
		return read_config(given, config_file, true, err);
	return access("stepscope.yaml", R_OK) == 0 ? read_config(given, "stepscope.yaml", false, err) : STATUS_OK;
}

static enum status read_overrides(struct record_settings *given, struct error *err)
{
	for (int i = 0; i < overrides.count; i++) {
		const char *equals = strchr(overrides.items[i], '=');
		char key[256];
		enum status status;

		if (!equals || equals == overrides.items[i] || (size_t)(equals - overrides.items[i]) >= sizeof(key))
			return error_set(err, STATUS_USAGE, "--set wants KEY=VALUE, got '%s'", overrides.items[i]);
		snprintf(key, sizeof(key), "%.*s", (int)(equals - overrides.items[i]), overrides.items[i]);
		status = set(given, key, equals + 1, "--set", NULL, err);
		if (status)
			return status;
	}
	return STATUS_OK;
}

static enum status read_options(struct record_settings *given, struct error *err)
{
	enum status status = STATUS_OK;

	for (int row = 0; !status && record_options_table[row].name && row < MAXIMUM_ROWS; row++) {
		const struct record_option *option = &record_options_table[row];

		if (run_options_is_own(option->name))
			continue;
		if (option->type != RECORD_BOOL && texts[row])
			status = set(given, option->name, texts[row], option->flag, NULL, err);
		else if (option->type == RECORD_BOOL && flags[row] != BOOL_UNSET)
			status = set(given, option->name, flags[row] ? "true" : "false", option->flag, NULL, err);
	}
	return status;
}

static enum status run_options_read_all(struct record_settings *given, struct error *err)
{
	static struct record_settings layer; /* static because it is large, and its origins must live as long as the
	                                      * program */
	char problem[512] = "";
	enum status status = read_configs(given, err);

	if (status)
		return status;
	if (!record_settings_environment(&layer, environ, problem, sizeof(problem)))
		return run_options_refuse(err, problem);
	record_settings_overlay(given, &layer);
	layer = (struct record_settings){0};
	status = read_overrides(&layer, err);
	if (!status)
		status = read_options(&layer, err);
	if (!status)
		record_settings_overlay(given, &layer);
	return status;
}

/* Makes the list for the children, without the directory: they get that in STEPSCOPE_RUN_DIR. */
static enum status make_list(struct run_settings *settings, struct error *err)
{
	struct record_settings for_children = settings->given;
	bool is_any = false;

	for (int row = 0; record_options_table[row].name && row < MAXIMUM_ROWS; row++) {
		if (run_options_is_own(record_options_table[row].name))
			for_children.is_set[row] = false;
		is_any = is_any || for_children.is_set[row];
	}
	settings->list[0] = '\0';
	if (is_any && !record_settings_format(&for_children, settings->list, sizeof(settings->list)))
		return error_set(err, STATUS_USAGE, "the options are too long: more than %zu bytes",
		                 sizeof(settings->list));
	return STATUS_OK;
}

enum status run_options_resolve(struct run_settings *settings, struct error *err)
{
	const char *wanted = settings->resolved.run_directory;
	char problem[512] = "";
	enum status status = run_options_read_all(&settings->given, err);

	if (status)
		return status;
	if (!record_options_resolve(&settings->resolved, &settings->given, problem, sizeof(problem)))
		return run_options_refuse(err, problem);
	settings->out = out_directory ? out_directory : wanted[0] ? wanted : NULL;
	settings->is_host_off = is_host_off;
	return make_list(settings, err);
}
