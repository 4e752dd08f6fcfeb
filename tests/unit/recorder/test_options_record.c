/* SPDX-License-Identifier: Apache-2.0
 *
 * test_options_record.c: what to record, by list, environment, YAML and override: accepted, refused, and read back.
 */
#include "base/yaml_flat.h"
#include "recorder/option_rows.h"
#include "recorder/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* ---- helpers ---- */

static struct record_options resolved(const struct record_settings *settings)
{
	struct record_options options = {0};
	char problem[256];

	if (!record_options_resolve(&options, settings, problem, sizeof(problem)))
		fail_msg("%s", problem);
	return options;
}

static struct record_options resolved_list(const char *list)
{
	struct record_settings settings = {0};
	char problem[256];

	if (!record_settings_parse(&settings, list, "test", problem, sizeof(problem)))
		fail_msg("'%s': %s", list, problem);
	return resolved(&settings);
}

/* A list without an origin must be refused with this line, in the setting or in the decision. */
static void check_refused(const char *list, const char *line)
{
	struct record_settings settings = {0};
	struct record_options options;
	char problem[256];

	if (record_settings_parse(&settings, list, NULL, problem, sizeof(problem)) &&
	    record_options_resolve(&options, &settings, problem, sizeof(problem)))
		fail_msg("'%s' was accepted", list);
	assert_string_equal(problem, line);
}

/* As `stepscope run --config FILE` does: foreign keys are passed over, anything else must be fine. */
static void set_yaml(struct record_settings *settings, const char *text)
{
	struct yaml_flat yaml;
	struct error err = {0};
	char problem[256];

	if (yaml_flat_parse(&yaml, text, strlen(text), "train.yaml", &err))
		fail_msg("%s", err.text);
	for (int i = 0; i < yaml.count; i++) {
		if (!record_settings_set(settings, yaml.entries[i].key, yaml.entries[i].value, "train.yaml", true,
		                         problem, sizeof(problem)) &&
		    problem[0])
			fail_msg("%s", problem);
	}
	yaml_flat_release(&yaml);
}

static void check_yaml_refused(const char *key, const char *value, const char *line)
{
	struct record_settings settings = {0};
	char problem[256] = "left over";

	assert_false(record_settings_set(&settings, key, value, "train.yaml:7", true, problem, sizeof(problem)));
	assert_string_equal(problem, line);
}

static void set(struct record_settings *settings, const char *key, const char *value, const char *origin)
{
	char problem[256];

	if (!record_settings_set(settings, key, value, origin, false, problem, sizeof(problem)))
		fail_msg("%s", problem);
	assert_string_equal(problem, "");
}

static void check_steps(const struct record_options *options, int count, ...)
{
	va_list numbers;

	assert_int_equal(options->mode, RECORD_STEPS);
	assert_int_equal(options->step_range_count, count);
	va_start(numbers, count);
	for (int i = 0; i < count; i++) {
		assert_int_equal(options->steps[i].first, va_arg(numbers, int64_t));
		assert_int_equal(options->steps[i].last, va_arg(numbers, int64_t));
	}
	va_end(numbers);
}

#define RANGE(first, last) (int64_t)(first), (int64_t)(last)

/* ---- the table ---- */

static void the_table_is_complete_and_its_names_are_unique(void **state)
{
	for (int row = 0; row < ROW_COUNT; row++) {
		const struct record_option *option = &record_options_table[row];
		char flag[64] = "--", variable[64] = "STEPSCOPE_";

		assert_non_null(option->name);
		assert_int_equal(record_option_row(option->name), row);
		for (size_t i = 0; option->name[i]; i++) {
			flag[2 + i] = option->name[i] == '_' ? '-' : option->name[i];
			variable[10 + i] = option->name[i] == '_' ? '_' : (char)(option->name[i] - 'a' + 'A');
		}
		assert_string_equal(option->flag, flag);
		assert_string_equal(option->environment, row == ROW_OUT ? "STEPSCOPE_RUN_DIR" : variable);
		assert_true(option->argument[0] && option->help[0] && option->fallback && option->yaml);
	}
	assert_null(record_options_table[ROW_COUNT].name);
	assert_int_equal(record_option_row("nothing"), -1);
}

static void the_defaults_of_the_table_are_those_of_the_program(void **state)
{
	struct record_options defaults, options;
	struct record_settings settings = {0};

	record_options_init(&defaults);
	options = resolved(&settings);
	assert_memory_equal(&options, &defaults, sizeof(options));
	for (int row = 0; row < ROW_COUNT; row++) {
		bool is_schedule = row >= ROW_START_STEP && row <= ROW_FREQUENCY;

		memset(&settings, 0, sizeof(settings));
		set(&settings, record_options_table[row].name, record_options_table[row].fallback, "test");
		if (is_schedule)
			continue;
		options = resolved(&settings);
		if (row == ROW_POOL)
			defaults.pool_bytes = 16 << 20;
		if (row == ROW_STEPS) { /* all of them: that is a wish */
			assert_true(options.budget == 0 && !strcmp(options.asked, "--steps"));
			options.budget = defaults.budget;
			options.asked = NULL;
		}
		assert_memory_equal(&options, &defaults, sizeof(options));
		defaults.pool_bytes = 0;
	}
}

/* ---- the guides ---- */

static void the_block_of_guide_001_is_accepted(void **state)
{
	struct record_settings settings = {0};
	struct record_options options;

	set_yaml(&settings,
	         "name: dpo_profiled\n"
	         "description: DPO training with profiler enabled for performance analysis\n"
	         "model_name: EleutherAI/pythia-70m\n"
	         "use_peft: true\nlora_r: 16\nlora_alpha: 32\nlora_dropout: 0.05\n"
	         "training_type: dpo\nmax_steps: 80\nbatch_size: 2\ngradient_accumulation_steps: 4\n"
	         "learning_rate: 5.0e-5\nmax_length: 256\nwarmup_steps: 10\nbeta: 0.1\nmax_prompt_length: 64\n"
	         "dataset_name: Anthropic/hh-rlhf\ndataset_split: train\ndataset_size: 512\nseed: 42\n"
	         "output_dir: ./profiler_output\nmetrics_warmup_steps: 10\n"
	         "profiler:\n"
	         "  enabled: true\n"
	         "  start_step: 50      # Start after warmup\n"
	         "  num_steps: 20       # Profile 20 steps\n"
	         "  output_dir: ./profiler_traces\n"
	         "  record_shapes: true\n"
	         "  profile_memory: true\n"
	         "  with_stack: false   # Keep false for speed\n");
	options = resolved(&settings);
	check_steps(&options, 1, RANGE(50, 69));
	assert_true(options.with_shapes && options.with_memory && !options.with_lines);
	assert_string_equal(options.run_directory, "./profiler_traces");
	assert_int_equal(options.keep_bytes, 0);
}

static void the_block_and_the_overrides_of_guide_004_are_accepted(void **state)
{
	static const char block[] = "profiler:\n"
				    "  enabled: false           # Enable profiling\n"
				    "  type: simple             # 'simple', 'advanced', 'pytorch'\n"
				    "  dirpath: ./profiles      # Output directory\n"
				    "  filename: profile        # Base filename\n";
	struct record_settings settings = {0};
	struct record_options options;

	set_yaml(&settings, block);
	assert_int_equal(resolved(&settings).mode, RECORD_OFF);
	set(&settings, "training.profiler.enabled", "true", "training.profiler.enabled=true");
	options = resolved(&settings);
	check_steps(&options, 0);
	assert_string_equal(options.run_directory, "./profiles");
	set(&settings, "training.profiler.type", "pytorch", "training.profiler.type=pytorch");
	set(&settings, "++training.profiler.dirpath", "./my_profiles", "");
	set(&settings, "training.profiler.filename", "my_run", "");
	options = resolved(&settings);
	assert_int_equal(options.mode, RECORD_ALWAYS);
	assert_true(options.with_shapes && options.with_memory && !options.with_lines);
	assert_string_equal(options.run_directory, "./my_profiles");
	set(&settings, "training.profiler.type", "advanced", "");
	options = resolved(&settings);
	assert_true(options.mode == RECORD_ALWAYS && !options.with_shapes && !options.with_memory);
}

static void the_names_of_guides_000_and_003_are_accepted(void **state)
{
	struct record_settings settings = {0};
	struct record_options options;

	set(&settings, "enable-profiling", "true", "");
	set(&settings, "profiler-output-dir", "./my_traces", "");
	set(&settings, "profiler-wait-steps", "10", "");
	set(&settings, "profiler-warmup-steps", "2", "");
	set(&settings, "profiler-active-steps", "5", "");
	set(&settings, "profiler-repeat", "2", "");
	options = resolved(&settings);
	assert_true(options.mode == RECORD_SCHEDULE && options.wait == 10 && options.warmup == 2 &&
	            options.active == 5 && options.repeat == 2);
	assert_string_equal(options.run_directory, "./my_traces");

	options = resolved_list(
		"profile=true,export_trace=true,export_memory_timeline=true,profiling_outputs=p,repeat=0,"
		"wait_steps=3,warmup_steps=2,active_steps=1,profiling_frequency=10,with_shapes=false");
	assert_true(options.wait == 7 && options.warmup == 2 && options.active == 1 && options.repeat == 0);
	assert_int_equal(options.profiling_frequency, 10);
	assert_true(options.with_shapes && options.with_memory && options.with_lines);
	assert_string_equal(options.run_directory, "p");
	assert_string_equal(resolved_list("profiling_output=p").run_directory, "p");
}

static void frequency_counts_only_with_repeat_0(void **state)
{
	struct record_options options = resolved_list("repeat=1,wait=1,warmup=1,active=1,profiling_frequency=10");

	assert_true(options.wait == 1 && options.profiling_frequency == 0);
	options = resolved_list("profiling_frequency=2");
	assert_true(options.wait == 0 && options.warmup == 1 && options.active == 1);
	options = resolved_list("profiling_frequency=1");
	assert_true(options.wait == 0 && options.warmup == 0 && options.active == 1);
	options = resolved_list("profiling_frequency=4,warmup=2,active=2");
	assert_int_equal(options.wait, 0);
	check_refused("profiling_frequency=3,warmup=2,active=2",
	              "profiling_frequency must be at least warmup + active (2 + 2), got 3");
	check_refused("profiling_frequency=3,active=4",
	              "profiling_frequency must be at least warmup + active (0 + 4), got 3");
	check_refused("profiling_frequency=0", "profiling_frequency must be 1 or more, got 0");
}

static void foreign_keys_of_a_yaml_file_are_passed_over(void **state)
{
	check_yaml_refused("model_name", "x", "");
	check_yaml_refused("steps", "5", "");
	check_yaml_refused("enabled", "perhaps", "");
	check_yaml_refused("training.epochs", "x", "");
	check_yaml_refused("data.loader.batch_size", "4", "");
	check_yaml_refused("profiler", "simple", "");
	check_yaml_refused("wandb.enabled", "false", "");
	check_yaml_refused("profiler_backend", "x", "");
}

/* ---- refusals ---- */

static void a_misspelt_key_is_refused_with_the_nearest_name(void **state)
{
	check_yaml_refused("profiler.star_step", "50",
	                   "unknown option 'profiler.star_step' (train.yaml:7); did you mean 'profiler.start_step'?");
	check_yaml_refused(
		"training.profiler.typ", "simple",
		"unknown option 'training.profiler.typ' (train.yaml:7); did you mean 'training.profiler.type'?");
	check_yaml_refused("profilr.enabled", "true",
	                   "unknown option 'profilr.enabled' (train.yaml:7); did you mean 'profiler.enabled'?");
	check_yaml_refused("profiler_wait_step", "1",
	                   "unknown option 'profiler_wait_step' (train.yaml:7); did you mean 'profiler_wait_steps'?");
	check_yaml_refused("profiler.colour", "red", "unknown option 'profiler.colour' (train.yaml:7)");
	check_yaml_refused("profiler.wait.0", "3",
	                   "unknown option 'profiler.wait.0' (train.yaml:7); did you mean 'profiler.wait'?");
	check_refused("wiat=3", "unknown option 'wiat'; did you mean 'wait'?");
	check_refused("training.epochs=2", "unknown option 'training.epochs'");
	check_refused("=3", "unknown option ''");
	check_refused("wait", "wait has no value, write wait=...");
	check_refused("a\x1b[31m=1", "unknown option 'a?[31m'");
}

static void a_malformed_value_is_refused(void **state)
{
	static const char *const empty_names[][2] = {
		{"shapes::memory", "shapes::memory"},
		{"shapes\\,\\,memory", "shapes,,memory"},
		{":shapes", ":shapes"},
		{"shapes\\,", "shapes,"},
		{":", ":"},
	};

	check_refused("active=0", "active must be 1 or more, got 0");
	check_refused("num_steps=0", "num_steps must be 1 or more, got 0");
	check_refused("wait=-1", "wait must be 0 or more, got -1");
	check_refused("skip_first=-99999999999999999999", "skip_first must be 0 or more, got -99999999999999999999");
	check_refused("repeat=18446744073709551616",
	              "repeat must be at most 1000000000000000, got 18446744073709551616");
	check_refused("warmup=1.5", "warmup must be a whole number, got '1.5'");
	check_refused("warmup=0x10", "warmup must be a whole number, got '0x10'");
	check_refused("enabled=maybe", "enabled must be true or false, got 'maybe'");
	check_refused("pool=16X", "pool wants a size such as 64M or 1.5G, got '16X'");
	check_refused("pool=-16M", "pool wants a size such as 64M or 1.5G, got '-16M'");
	check_refused("pool=1000", "pool must be 64K or more, or 0, got '1000'");
	check_refused("keep_size=9999999999T", "keep_size is too large: '9999999999T'");
	check_refused("keep_time=10 parsecs", "keep_time wants a time such as 30s, 10m or 250ms, got '10 parsecs'");
	check_refused("keep_time=1.2345s", "keep_time wants a time such as 30s, 10m or 250ms, got '1.2345s'");
	check_refused("keep_time=1.s", "keep_time wants a time such as 30s, 10m or 250ms, got '1.s'");
	check_refused("sync_every=1000000000d", "sync_every is too long: '1000000000d'");
	check_refused("steps=60-50", "steps wants numbers and ranges such as 50-60,100, got '60-50'");
	check_refused("steps=-5", "steps wants numbers and ranges such as 50-60,100, got '-5'");
	check_refused("steps=1\\,\\,2", "steps wants numbers and ranges such as 50-60,100, got '1,,2'");
	check_refused("steps=:", "steps wants numbers and ranges such as 50-60,100, got ':'");
	check_refused("steps=1::2", "steps wants numbers and ranges such as 50-60,100, got '1::2'");
	check_refused("ranks=local1", "ranks wants numbers and ranges such as 50-60,100, got 'local1'");
	check_refused("type=pitorch", "type does not accept 'pitorch'; did you mean 'pytorch'?");
	check_refused("type=kineto", "type does not accept 'kineto'; it accepts simple, advanced and pytorch");
	check_refused("with=shapes:line", "with does not accept 'line'; did you mean 'lines'?");
	for (size_t i = 0; i < sizeof(empty_names) / sizeof(empty_names[0]); i++) {
		char list[64], line[128];

		snprintf(list, sizeof(list), "with=%s", empty_names[i][0]);
		snprintf(line, sizeof(line), "with has an empty name in '%s'; it accepts shapes, memory and lines",
		         empty_names[i][1]);
		check_refused(list, line);
	}
	check_yaml_refused("profiler.with.1", "", "profiler.with.1 (train.yaml:7) is an empty item of a list");
	check_yaml_refused("profiler.steps.0", "null", "profiler.steps.0 (train.yaml:7) is an empty item of a list");
}

static void what_would_mean_nothing_is_refused(void **state)
{
	static const char no_cycle[] = "repeat counts cycles, but no option defines a cycle: add active, wait or warmup";
	static const char no_wait[] = "skip_first_wait leaves out the first wait, but the cycle has no wait: add wait";

	check_refused("repeat=2", no_cycle);
	check_refused("repeat=2,skip_first=10", no_cycle);
	check_refused("repeat=2,profiling_frequency=10", no_cycle);
	check_refused("skip_first_wait=1", no_wait);
	check_refused("skip_first_wait=1,active=2", no_wait);
	assert_int_equal(resolved_list("repeat=2,active=1").repeat, 2);
	assert_int_equal(resolved_list("repeat=2,wait=0").repeat, 2);
	assert_int_equal(resolved_list("repeat=0").mode, RECORD_SCHEDULE);
	assert_int_equal(resolved_list("enabled=false,repeat=2").mode, RECORD_OFF);
	assert_int_equal(resolved_list("skip_first_wait=1,profiling_frequency=5").skip_first_wait, 1);
}

/* `stepscope run` asks, to refuse a file that says an option twice. */
static void a_key_tells_its_option_and_its_block(void **state)
{
	static const struct {
		const char *key;
		int row;
		size_t block;
	} keys[] = {
		{"wait", ROW_WAIT, 0},
		{"profiler.wait_steps", ROW_WAIT, 8},
		{"training.profiler.schedule.wait", ROW_WAIT, 17},
		{"runs.0.profiling.steps.1", ROW_STEPS, 16},
		{"stepscope.profiler.with", ROW_WITH, 9},
		{"profiler.filename", -1, 8},
		{"profiler", -1, 0},
		{"profiler_wait_steps", ROW_WAIT, 0},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		size_t block = 99;

		assert_int_equal(record_key_row(keys[i].key, &block), keys[i].row);
		assert_int_equal(block, keys[i].block);
	}
}

static void what_is_too_long_is_refused(void **state)
{
	struct record_settings settings = {0};
	char problem[256], text[2000], list[2100];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_false(record_settings_set(&settings, "out", text, "--out", false, problem, sizeof(problem)));
	assert_string_equal(problem, "--out is too long: at most 1023 bytes");
	text[1023] = '\0';
	set(&settings, "out", text, "--out");
	assert_string_equal(resolved(&settings).run_directory, text);
	snprintf(list, sizeof(list), "pool=%s", text);
	check_refused(list, "pool is too long: at most 255 bytes");
	text[1023] = 'x';
	snprintf(list, sizeof(list), "wait=1,out=%s", text);
	check_refused(list, "list of options has an entry that is too long");
	for (size_t i = 0; i < 33; i++)
		snprintf(text + 4 * i, 5, i < 32 ? "%zu:" : "%zu", 100 + 2 * i);
	snprintf(list, sizeof(list), "steps=%s", text);
	check_refused(list, "steps takes at most 32 ranges");
}

static void contradictions_name_both_origins(void **state)
{
	struct record_settings settings = {0};
	struct record_options options;
	char *environment[] = {(char[]){"STEPSCOPE_WAIT=5"}, NULL};
	char problem[256];

	assert_true(record_settings_environment(&settings, environment, problem, sizeof(problem)));
	set(&settings, "steps", "50-60", "--steps");
	assert_false(record_options_resolve(&options, &settings, problem, sizeof(problem)));
	assert_string_equal(problem,
	                    "--steps and STEPSCOPE_WAIT contradict each other: the first is a list of steps, the "
	                    "second a schedule");
	check_refused("steps=1,start_step=2",
	              "steps and start_step contradict each other: both select the steps to record");
	check_refused(
		"num_steps=1,repeat=2",
		"num_steps and repeat contradict each other: the first is a window of steps, the second a schedule");
	check_refused("steps=all,active=2",
	              "steps and active contradict each other: the first is a list of steps, the second a schedule");
	check_refused("type=simple,active=2",
	              "type and active contradict each other: type=simple records steps and phases only");
	check_refused("type=simple,steps=1-2",
	              "type and steps contradict each other: type=simple records steps and phases only");
	check_refused("with=lines,with_stack=no",
	              "with and with_stack contradict each other: one records it, the other does not");
	check_refused("segment_size=2G,keep_size=1G",
	              "segment_size and keep_size contradict each other: one file would be larger than the kept data");
	memset(&settings, 0, sizeof(settings));
	set(&settings, "profiler.start_step", "3", "train.yaml:12");
	set(&settings, "wait", "3", "--wait");
	assert_false(record_options_resolve(&options, &settings, problem, sizeof(problem)));
	assert_string_equal(problem,
	                    "start_step (train.yaml:12) and --wait contradict each other: the first is a window of "
	                    "steps, the second a schedule");
	assert_int_equal(resolved_list("enabled=false,steps=1,wait=3").mode, RECORD_OFF);
	assert_int_equal(resolved_list("type=simple,steps=none").mode, RECORD_STEPS);
}

/* ---- values ---- */

static void values_mean_what_they_say(void **state)
{
	struct record_options options = resolved_list(
		"pool=1.5M,keep_size=2GiB,keep_time=10m,segment_size=65536,sync_every=250ms,cost_every=50,"
		"sample_process=off,ranks=0:8-15");

	assert_int_equal(options.pool_bytes, 3 << 19);
	assert_int_equal(options.keep_bytes, INT64_C(2) << 30);
	assert_int_equal(options.keep_ns, INT64_C(600000000000));
	assert_int_equal(options.segment_bytes, 65536);
	assert_int_equal(options.fdatasync_ns, 250000000);
	assert_int_equal(options.cost_every, 50);
	assert_false(options.is_self_sampled);
	assert_int_equal(options.ranks, RANKS_LIST);
	assert_int_equal(options.rank_range_count, 2);
	assert_int_equal(resolved_list("keep_time=30").keep_ns, INT64_C(30000000000));
	assert_int_equal(resolved_list("keep_time=1.5h").keep_ns, INT64_C(5400000000000));
	assert_int_equal(resolved_list("keep_time=0.001us").keep_ns, 1);
	assert_int_equal(resolved_list("keep_size=64kb").keep_bytes, 65536);
	assert_int_equal(resolved_list("ranks=local0").ranks, RANKS_LOCAL0);
	assert_int_equal(resolved_list("").keep_bytes, 256 << 20);
	assert_int_equal(resolved_list("keep_size=0").keep_bytes, 0);
	assert_int_equal(resolved_list("active=1").keep_bytes, 0);
}

static double budget_of(const char *list)
{
	return resolved_list(list).budget;
}

static void a_budget_is_a_share_or_none(void **state)
{
	assert_true(budget_of("") == 0.03);
	assert_true(budget_of("budget=3%") == 0.03);
	assert_true(budget_of("budget=3") == 0.03);
	assert_true(budget_of("budget=0.5 %") == 0.005);
	assert_true(budget_of("budget=100%") == 1);
	assert_true(budget_of("budget=none") == 0);
	assert_true(budget_of("budget=") == 0.03);
	assert_int_equal(resolved_list("cost_every=8").cost_every, 8);
	assert_true(budget_of("cost_every=8") > 0);
}

/* Whoever asks for steps has them whole. */
static void what_was_asked_for_is_whole(void **state)
{
	static const char *const wishes[][2] = {{"steps=all", "--steps"},
	                                        {"steps=5-7", "--steps"},
	                                        {"steps=none", "--steps"},
	                                        {"wait=1", "--wait"},
	                                        {"start_step=5", "--start-step"},
	                                        {"num_steps=5", "--num-steps"},
	                                        {"type=pytorch", "--type"},
	                                        {"type=simple", "--type"},
	                                        {"export_memory_timeline=true", "--export-memory-timeline"}};

	for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++)
		for (int with = 0; with < 3; with++) {
			static const char *const others[] = {"", ",budget=1%", ",cost_every=8"};
			char list[64];

			snprintf(list, sizeof(list), "%s%s", wishes[i][0], others[with]);
			struct record_options options = resolved_list(list);

			assert_true(options.budget == 0);
			assert_int_equal(options.cost_every, 0);
			assert_string_equal(options.asked, wishes[i][1]);
		}
	assert_null(resolved_list("type=advanced").asked);
	assert_true(budget_of("type=advanced") == 0.03);
	assert_null(resolved_list("budget=none").asked);
}

static void wrong_budgets_are_refused(void **state)
{
	struct record_settings settings = {0};
	struct record_options options;
	char problem[256];

	check_refused("budget=0", "budget must be more than 0 and at most 100 percent, or none, got '0'");
	check_refused("budget=101%", "budget must be more than 0 and at most 100 percent, or none, got '101%'");
	check_refused("budget=much", "budget wants a share such as 3% or 0.5%, or none, got 'much'");
	check_refused("budget=3%%", "budget wants a share such as 3% or 0.5%, or none, got '3%%'");
	check_refused("budget=-1", "budget wants a share such as 3% or 0.5%, or none, got '-1'");
	set(&settings, "budget", "1%", "--budget");
	set(&settings, "cost_every", "8", "STEPSCOPE_COST_EVERY");
	assert_false(record_options_resolve(&options, &settings, problem, sizeof(problem)));
	assert_string_equal(problem,
	                    "--budget and STEPSCOPE_COST_EVERY contradict each other: the first limits the cost of "
	                    "recording, the second sets in how many steps operators are recorded");
}

static void ranges_are_sorted_and_joined(void **state)
{
	struct record_options options = resolved_list("steps=100:50-60:61:3-4:55-70");

	check_steps(&options, 3, RANGE(3, 4), RANGE(50, 70), RANGE(100, 100));
	options = resolved_list("steps=50-:10:7-8:9");
	check_steps(&options, 2, RANGE(7, 10), RANGE(50, INT64_MAX));
	options = resolved_list("steps=50-:10:60-70:0-");
	check_steps(&options, 1, RANGE(0, INT64_MAX));
	options = resolved_list("start_step=50");
	check_steps(&options, 1, RANGE(50, INT64_MAX));
	options = resolved_list("num_steps=5");
	check_steps(&options, 1, RANGE(0, 4));
}

static void items_of_a_yaml_list_add_up(void **state)
{
	struct record_settings settings = {0};
	struct record_options options;

	set_yaml(&settings, "stepscope:\n  steps: [50-60, 100]\n  with: [shapes, lines]\n  ranks:\n  - 0\n  - 8\n");
	options = resolved(&settings);
	check_steps(&options, 2, RANGE(50, 60), RANGE(100, 100));
	assert_true(options.with_shapes && !options.with_memory && options.with_lines);
	assert_int_equal(options.rank_range_count, 2);
	set_yaml(&settings, "profiler: {steps: [7]}\n");
	options = resolved(&settings);
	check_steps(&options, 1, RANGE(7, 7));
}

static void an_empty_value_gives_the_default_back(void **state)
{
	struct record_settings settings = {0};

	set(&settings, "wait", "5", "");
	set(&settings, "wait", "", "");
	assert_int_equal(resolved(&settings).mode, RECORD_ALWAYS);
	set(&settings, "profiler.wait", "5", "");
	set(&settings, "profiler.wait", "null", "");
	assert_int_equal(resolved(&settings).mode, RECORD_ALWAYS);
	set(&settings, "out", "null", "");
	assert_string_equal(resolved(&settings).run_directory, "null");
}

static void a_refused_value_leaves_what_was_set(void **state)
{
	struct record_settings settings = {0}, before;
	char problem[256];

	set(&settings, "steps", "5", "--steps");
	before = settings;
	assert_false(record_settings_set(&settings, "steps", "x", "--steps", false, problem, sizeof(problem)));
	assert_false(record_settings_set(&settings, "profiler.steps.1", "x", "", false, problem, sizeof(problem)));
	assert_memory_equal(&settings, &before, sizeof(settings));
}

/* ---- environment, overlay ---- */

static void stepscope_options_wins_over_single_variables(void **state)
{
	struct record_settings settings = {0};
	struct record_options options;
	char problem[256];
	char *environment[] = {(char[]){"STEPSCOPE_WAIT=5"},
	                       (char[]){"STEPSCOPE_ACTIVE=2"},
	                       (char[]){"STEPSCOPE_OPTIONS=wait=9"},
	                       (char[]){"STEPSCOPE_RUN_DIR=/runs/a,b=c"},
	                       (char[]){"STEPSCOPE=1"},
	                       (char[]){"STEPSCOPE_DEBUG=1"},
	                       (char[]){"STEPSCOPE_WAIT"},
	                       (char[]){"HOME=/root"},
	                       NULL};

	set(&settings, "wait", "7", "call");
	assert_true(record_settings_environment(&settings, environment, problem, sizeof(problem)));
	options = resolved(&settings);
	assert_true(options.wait == 9 && options.active == 2);
	assert_string_equal(options.run_directory, "/runs/a,b=c");
	assert_true(record_settings_environment(&settings, NULL, problem, sizeof(problem)));
}

static void a_misspelt_variable_is_refused(void **state)
{
	struct record_settings settings = {0};
	char problem[256];
	char *environment[] = {(char[]){"STEPSCOPE_WIAT=5"}, NULL};
	char *malformed[] = {(char[]){"STEPSCOPE_ACTIVE=0"}, NULL};

	assert_false(record_settings_environment(&settings, environment, problem, sizeof(problem)));
	assert_string_equal(problem, "unknown variable 'STEPSCOPE_WIAT'; did you mean 'STEPSCOPE_WAIT'?");
	assert_false(record_settings_environment(&settings, malformed, problem, sizeof(problem)));
	assert_string_equal(problem, "STEPSCOPE_ACTIVE must be 1 or more, got 0");
}

/* Two lists, the second above the first, must make this one. */
static void check_overlay(const char *under, const char *over, const char *both)
{
	struct record_settings settings = {0}, above = {0};
	char problem[256], list[512];

	assert_true(record_settings_parse(&settings, under, "under", problem, sizeof(problem)));
	assert_true(record_settings_parse(&above, over, "over", problem, sizeof(problem)));
	record_settings_overlay(&settings, &above);
	record_settings_format(&settings, list, sizeof(list));
	assert_string_equal(list, both);
}

static void an_overlay_replaces_another_way_to_choose_steps(void **state)
{
	check_overlay("wait=1,pool=1M", "with=shapes", "wait=1,with=shapes,pool=1M");
	check_overlay("wait=1,pool=1M", "steps=5-6", "steps=5-6,pool=1M");
	check_overlay("wait=5,active=3", "active=2", "wait=5,active=2");
	check_overlay("start_step=50,num_steps=20", "num_steps=5", "start_step=50,num_steps=5");
	check_overlay("start_step=50,num_steps=20", "wait=5", "wait=5");
	check_overlay("steps=3", "start_step=50", "start_step=50");
	check_overlay("budget=1%", "cost_every=8", "cost_every=8");
	check_overlay("cost_every=8", "budget=none", "budget=none");
	check_overlay("cost_every=8,wait=1", "steps=5-6", "steps=5-6,cost_every=8");
	check_overlay("profiling_frequency=10,active=2", "wait=5", "wait=5,active=2");
	check_overlay("type=simple", "steps=5", "steps=5");
	check_overlay("type=pytorch", "steps=5", "steps=5,type=pytorch");
	check_overlay("steps=5", "type=pytorch", "steps=5,type=pytorch");
	check_overlay("wait=5", "type=simple", "type=simple");
	check_overlay("enabled=false,out=a", "enabled=true,out=b", "enabled=true,out=b");
}

/* ---- round trip ---- */

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static const char *random_value(const struct record_option *option, uint32_t *seed, char *out, size_t bytes)
{
	static const char *const texts[] = {"all",         "local0",        "none",  "5",      "50-60,100",
	                                    "0:8-15",      "shapes,memory", "lines", "simple", "PyTorch",
	                                    "/a,b\\c=d e", "\\\\,\\",       "50-"};
	static const char *const bools[] = {"true", "no", "1", "OFF"};
	static const char *const sizes[] = {"0", "64k", "1.25G", "16 MiB"};
	static const char *const times[] = {"0", "10m", "1.5 h", "30", "7ms"};
	static const char *const shares[] = {"3%", "0.5", "NONE", "100 %"};
	uint32_t number = next_random(seed);

	switch (option->type) {
	case RECORD_BOOL:
		return bools[number % 4];
	case RECORD_BYTES:
		return sizes[number % 4];
	case RECORD_DURATION:
		return times[number % 5];
	case RECORD_SHARE:
		return shares[number % 4];
	case RECORD_COUNT:
		snprintf(out, bytes, "%s%u", number % 2 ? "0" : "", 1 + number % 9999);
		return out;
	case RECORD_TEXT:
		break;
	}
	return texts[number % (sizeof(texts) / sizeof(texts[0]))];
}

static void check_round_trip(const struct record_settings *settings)
{
	struct record_settings again = {0};
	struct record_options options, options_again;
	char list[8192], list_again[8192], problem[256], problem_again[256];
	size_t length = record_settings_format(settings, list, sizeof(list));
	bool is_good;

	assert_int_equal(length, strlen(list));
	if (!record_settings_parse(&again, list, NULL, problem, sizeof(problem)))
		fail_msg("'%s': %s", list, problem);
	assert_memory_equal(again.is_set, settings->is_set, sizeof(again.is_set));
	record_settings_format(&again, list_again, sizeof(list_again));
	assert_string_equal(list, list_again);
	is_good = record_options_resolve(&options, settings, problem, sizeof(problem));
	assert_true(is_good == record_options_resolve(&options_again, &again, problem_again, sizeof(problem_again)));
	assert_string_equal(problem, problem_again);
	if (is_good) {
		assert_string_equal(options.run_directory, options_again.run_directory);
		memset(options.run_directory, 0, sizeof(options.run_directory));
		memset(options_again.run_directory, 0, sizeof(options_again.run_directory));
		assert_memory_equal(&options, &options_again, sizeof(options));
	}
}

static void a_formatted_list_reads_back_the_same(void **state)
{
	uint32_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		struct record_settings settings = {0};
		char problem[256], number[32];
		int count = 1 + (int)(next_random(&seed) % 6);

		while (count--) {
			int row = (int)(next_random(&seed) % ROW_COUNT);
			const char *value = random_value(&record_options_table[row], &seed, number, sizeof(number));

			record_settings_set(&settings, record_options_table[row].name, value, NULL, false, problem,
			                    sizeof(problem));
		}
		check_round_trip(&settings);
	}
}

static void a_list_that_does_not_fit_is_not_cut(void **state)
{
	struct record_settings settings = {0};
	char list[64];

	set(&settings, "wait", "5", "");
	set(&settings, "out", "/runs/a", "");
	assert_int_equal(record_settings_format(&settings, list, sizeof(list)), strlen("wait=5,out=/runs/a"));
	assert_string_equal(list, "wait=5,out=/runs/a");
	for (size_t bytes = 0; bytes <= strlen("wait=5,out=/runs/a"); bytes++)
		assert_int_equal(record_settings_format(&settings, list, bytes), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_complete_and_its_names_are_unique),
		cmocka_unit_test(the_defaults_of_the_table_are_those_of_the_program),
		cmocka_unit_test(the_block_of_guide_001_is_accepted),
		cmocka_unit_test(the_block_and_the_overrides_of_guide_004_are_accepted),
		cmocka_unit_test(the_names_of_guides_000_and_003_are_accepted),
		cmocka_unit_test(frequency_counts_only_with_repeat_0),
		cmocka_unit_test(foreign_keys_of_a_yaml_file_are_passed_over),
		cmocka_unit_test(a_misspelt_key_is_refused_with_the_nearest_name),
		cmocka_unit_test(a_malformed_value_is_refused),
		cmocka_unit_test(what_would_mean_nothing_is_refused),
		cmocka_unit_test(a_key_tells_its_option_and_its_block),
		cmocka_unit_test(what_is_too_long_is_refused),
		cmocka_unit_test(contradictions_name_both_origins),
		cmocka_unit_test(values_mean_what_they_say),
		cmocka_unit_test(a_budget_is_a_share_or_none),
		cmocka_unit_test(what_was_asked_for_is_whole),
		cmocka_unit_test(wrong_budgets_are_refused),
		cmocka_unit_test(ranges_are_sorted_and_joined),
		cmocka_unit_test(items_of_a_yaml_list_add_up),
		cmocka_unit_test(an_empty_value_gives_the_default_back),
		cmocka_unit_test(a_refused_value_leaves_what_was_set),
		cmocka_unit_test(stepscope_options_wins_over_single_variables),
		cmocka_unit_test(a_misspelt_variable_is_refused),
		cmocka_unit_test(an_overlay_replaces_another_way_to_choose_steps),
		cmocka_unit_test(a_formatted_list_reads_back_the_same),
		cmocka_unit_test(a_list_that_does_not_fit_is_not_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
