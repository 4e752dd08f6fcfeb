/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of nvidia-smi's tables: every dialect that its options and other programs make, with the series it must give.
 */
#include "base/buffer.h"
#include "import_bytes.h"
#include "importers/importer.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define HEAD "timestamp, name, utilization.gpu [%], memory.used [MiB], temperature.gpu\n"
#define HEAD_UTF16                                                                                                     \
	"\xff\xfei\0n\0d\0e\0x\0,\0 \0f\0a\0n\0.\0s\0p\0e\0e\0d\0 \0[\0%\0]\0\r\0\n\0"                                 \
	"0\0,\0 \0"                                                                                                    \
	"7\0 \0%\0\r\0\n\0"

struct test_case {
	const char *name;
	const char *text;
	const char *series; /* "subject name unit: value@ms ..." of each; NULL: STATUS_INPUT */
	const char *ledger; /* "count: sentence" of each */
	size_t length;      /* 0: of the text */
};

static const struct test_case tests[] = {
	{"as it is",
         HEAD "2026/11/21 07:03:09.412, NVIDIA H200, 97 %, 112384 MiB, 61\n"
              "2026/11/21 07:03:10.415, NVIDIA H200, 96 %, 5 MiB, 62\n",
         "GPU utilization.gpu %: 97@0 96@1003\nGPU memory.used MiB: 112384@0 5@1003\nGPU temperature.gpu : 61@0 62@1003\n",
         NULL, 0},
	{"nounits", HEAD "2026/11/21 07:03:09.412, NVIDIA H200, 97, 112384, 61\n",
         "GPU utilization.gpu %: 97@0\nGPU memory.used MiB: 112384@0\nGPU temperature.gpu : 61@0\n", NULL, 0},
	{"noheader", "2026/11/21 07:03:09.412, NVIDIA H200, 97 %, 112384 MiB, 61\n",
         "GPU column 3 %: 97@0\nGPU column 4 MiB: 112384@0\nGPU column 5 : 61@0\n",
         "1: the file has no column names: its columns are numbered\n", 0},
	{"noheader, nounits, with a time", "2026/11/21 07:03:09.412, 97, 61\n2026/11/21 07:03:10.412, 98, 61\n",
         "GPU column 2 : 97@0 98@1000\nGPU column 3 : 61@0 61@1000\n",
         "1: the file has no column names: its columns are numbered\n", 0},
	{"not measured", HEAD "2026/11/21 07:03:09.412, GB10, 3 %, [N/A], [Not Supported]\n",
         "GPU utilization.gpu %: 3@0\nGPU memory.used MiB: nan@0\nGPU temperature.gpu : nan@0\n", NULL, 0},
	{"CRLF, a byte order mark, other fields",
         "\xef\xbb\xbfindex, pstate, power.draw [W], clocks_throttle_reasons.sw_power_cap, clocks_event_reasons.active\r\n"
         "0, P2, 592.74 W, Active, 0x0000000000000004\r\n0, P0, [Unknown Error], Not Active, 0x0000000000000000\r\n",
         "GPU 0 pstate : 2@0 0@0\nGPU 0 power.draw W: 592.74@0 nan@0\n"
         "GPU 0 clocks_throttle_reasons.sw_power_cap : 1@0 0@0\n",
         "1: texts differ from the first text of their column; only the first is kept, as a fact\n"
         "1: the file has no times: only the number of values is known\n",
         0},
	{"several GPUs by their index",
         "timestamp, index, power.draw [W]\n2026/11/21 07:03:09.412, 0, 1 W\n2026/11/21 07:03:09.413, 1, 2 W\n"
         "2026/11/21 07:03:10.412, 0, 3 W\n2026/11/21 07:03:10.414, 1, 4 W\n",
         "GPU 0 power.draw W: 1@0 3@1000\nGPU 1 power.draw W: 2@1 4@1002\n", NULL, 0},
	{"several GPUs by their order",
         "timestamp, power.draw [W]\n2026/11/21 07:03:09.412, 1 W\n2026/11/21 07:03:09.413, 2 W\n"
         "2026/11/21 07:03:10.412, 3 W\n2026/11/21 07:03:10.414, 4 W\n",
         "GPU #1 power.draw W: 1@0 3@1000\nGPU #2 power.draw W: 2@1 4@1002\n",
         "4: rows do not name their GPU: rows of one tick are numbered in their order\n", 0},
	{"one GPU, ten times a second",
         "timestamp, power.draw [W]\n2026/11/21 07:03:09.400, 1 W\n2026/11/21 07:03:09.500, 2 W\n"
         "2026/11/21 07:03:09.601, 3 W\n",
         "GPU power.draw W: 1@0 2@100 3@201\n", NULL, 0},
	{"a uuid", "uuid, fan.speed [%]\nGPU-1f-2, 30 %\n", "GPU-1f-2 fan.speed %: 30@0\n",
         "1: the file has no times: only the number of values is known\n", 0},
	{"the names again, and others",
         "index, fan.speed [%]\n0, 1 %\nindex, fan.speed [%]\n0, 2 %\nindex, pcie.link.gen.current\n0, 4\n",
         "GPU 0 fan.speed %: 1@0 2@0\nGPU 0 pcie.link.gen.current : 4@0\n",
         "1: the file has no times: only the number of values is known\n", 0},
	{"the first rows have no time",
         "timestamp, index, fan.speed [%]\n[N/A], 0, 5 %\n2026/11/21 07:03:09.412, 0, 6 %\n[N/A], 0, 7 %\n",
         "GPU 0 fan.speed %: 5@0 6@0 7@0\n", NULL, 0},
	{"the first query has no time",
         "index, fan.speed [%]\n0, 5 %\ntimestamp, index, fan.speed [%]\n2026/11/21 07:03:09.412, 0, 6 %\n",
         "GPU 0 fan.speed %: 5@0 6@0\n", NULL, 0},
	{"a decimal comma", "index, power.draw [W], fan.speed [%]\n0, 592,74 W, 3 %\n",
         "GPU 0 power.draw W: 592.74@0\nGPU 0 fan.speed %: 3@0\n",
         "1: the file has no times: only the number of values is known\n", 0},
	{"semicolons, no blanks, another form of time",
         "timestamp;index;power.draw [W]\n2026-11-21T07:03:09;0;592,74\n2026-11-21 07:03:10,5;0;1\n",
         "GPU 0 power.draw W: 592.74@0 1@1500\n", NULL, 0},
	{"commas without blanks", "index,power.draw [W]\n0,592.74 W\n", "GPU 0 power.draw W: 592.74@0\n",
         "1: the file has no times: only the number of values is known\n", 0},
	{"UTF-16, as PowerShell writes", HEAD_UTF16, "GPU 0 fan.speed %: 7@0\n",
         "1: the file has no times: only the number of values is known\n", sizeof HEAD_UTF16 - 1},
	{"processes", "pid, process_name, used_gpu_memory [MiB]\n42, python, 10 MiB\n43, a b, 20 MiB\n",
         "pid 42 used_gpu_memory MiB: 10@0\npid 43 used_gpu_memory MiB: 20@0\n",
         "1: the file has no times: only the number of values is known\n", 0},
	{"dmon",
         "# gpu   pwr gtemp\n# Idx     W     C\n    0    43     -\n    1    44    36\n# gpu   pwr gtemp\n# Idx     W     C\n"
         "    0    45     -\n",
         "GPU 0 pwr W: 43@0 45@0\nGPU 1 pwr W: 44@0\nGPU 0 gtemp C: nan@0 nan@0\nGPU 1 gtemp C: 36@0\n",
         "1: the file has no times: only the number of values is known\n", 0},
	{"dmon -o DT",
         "#Date       Time        gpu    pwr\n#YYYYMMDD   HH:MM:SS    Idx      W\n 20261121   07:03:09      0     43\n"
         " 20261121   07:03:10      0     44\n",
         "GPU 0 pwr W: 43@0 44@1000\n", NULL, 0},
	{"dmon -o T, over midnight",
         "#Time        gpu    pwr\n#HH:MM:SS    Idx      W\n 23:59:59      0     43\n 23:59:59      1     53\n"
         " 00:00:01      0     44\n 00:00:01      1     54\n",
         "GPU 0 pwr W: 43@0 44@2000\nGPU 1 pwr W: 53@0 54@2000\n",
         "1: the file has times of day without a date: if a time goes back, the next day starts\n", 0},
	{"a date, and then none",
         "#Date       Time        gpu    pwr\n#YYYYMMDD   HH:MM:SS    Idx      W\n 20261121   07:03:09      0     43\n"
         "#Time        gpu    pwr\n#HH:MM:SS    Idx      W\n 07:03:10      0     44\n",
         "GPU 0 pwr W: 43@0 44@0\n",
         "1: times are invalid or outside the years 1990 to 2200: their rows have the time of the row before\n", 0},
	{"dmon -s pucvmet",
         "# gpu   pwr  temp  mclk pviol tviol    fb  bar1 sbecc dbecc   pci rxpci txpci\n"
         "# Idx     W     C   MHz     %  bool    MB    MB  errs  errs  errs  MB/s  MB/s\n"
         "    1    25    43  3499     0     0   442     2     -     -     0   577    95\n",
         "GPU 1 pwr W: 25@0\nGPU 1 temp C: 43@0\nGPU 1 mclk MHz: 3499@0\nGPU 1 pviol %: 0@0\nGPU 1 tviol bool: 0@0\n"
         "GPU 1 fb MB: 442@0\nGPU 1 bar1 MB: 2@0\nGPU 1 sbecc errs: nan@0\nGPU 1 dbecc errs: nan@0\nGPU 1 pci errs: 0@0\n"
         "GPU 1 rxpci MB/s: 577@0\nGPU 1 txpci MB/s: 95@0\n",
         "1: the file has no times: only the number of values is known\n", 0},
	{"dmon -s t", "# gpu rxpci txpci\n# Idx  MB/s  MB/s\n    0   577    95\n",
         "GPU 0 rxpci MB/s: 577@0\nGPU 0 txpci MB/s: 95@0\n",
         "1: the file has no times: only the number of values is known\n", 0},
	{"dmon -s v", "# gpu pviol tviol\n# Idx     %  bool\n    0     7     1\n",
         "GPU 0 pviol %: 7@0\nGPU 0 tviol bool: 1@0\n",
         "1: the file has no times: only the number of values is known\n", 0},
	{"dmon --format csv", "#gpu, pwr, gtemp\n#Idx, W, C\n0, 43, -\n1, 44, 36\n",
         "GPU 0 pwr W: 43@0\nGPU 1 pwr W: 44@0\nGPU 0 gtemp C: nan@0\nGPU 1 gtemp C: 36@0\n",
         "1: the file has no times: only the number of values is known\n", 0},
	{"every word for what was not measured",
         "index, fan.speed [%], power.draw [W], memory.used [MiB], temperature.gpu, clocks.sm [MHz]\n"
         "0, [N/A], [Not Supported], [Unknown Error], [GPU requires reset], 1980 MHz\n",
         "GPU 0 fan.speed %: nan@0\nGPU 0 power.draw W: nan@0\nGPU 0 memory.used MiB: nan@0\nGPU 0 temperature.gpu : nan@0\n"
         "GPU 0 clocks.sm MHz: 1980@0\n",
         "1: the file has no times: only the number of values is known\n", 0},
	{"broken lines", "index, fan.speed [%]\n0, 1 %\n0, 1 %, 3\nNo devices were found\n0, 2 %\n0, ",
         "GPU 0 fan.speed %: 1@0 2@0 nan@0\n",
         "2: lines with another number of values than the header were left out\n"
         "1: the file has no times: only the number of values is known\n",
         0},
	{"cut off", "index, fan.speed [%]\n0, 1 %\n0", "GPU 0 fan.speed %: 1@0\n",
         "1: the last line is cut off and was left out\n1: the file has no times: only the number of values is known\n",
         0},
	{"cut in its last value", "index, memory.used [MiB]\n0, 70000 MiB\n0, 7",
         "GPU 0 memory.used MiB: 70000@0 nan@0\n",
         "1: the last line has no end, so its last value may be cut off and was left out\n"
         "1: the file has no times: only the number of values is known\n",
         0},
	{"cut behind its last unit", "index, memory.used [MiB]\n0, 70000 MiB\n0, 70010 MiB",
         "GPU 0 memory.used MiB: 70000@0 70010@0\n", "1: the file has no times: only the number of values is known\n",
         0},
	{"another unit", "index, memory.used [MiB]\n0, 1 MiB\n0, 1 GiB\n", "GPU 0 memory.used MiB: 1@0 nan@0\n",
         "1: the file has no times: only the number of values is known\n", 0},
	{"nothing measured", "index, fan.speed [%]\n0, [N/A]\n", NULL, NULL, 0},
	{"names only", HEAD, NULL, NULL, 0},
	{"another csv", "step, loss\n1, 2.5\n", NULL, NULL, 0},
	{"another csv with a time and an index", "timestamp,index,price\n2026/11/21 07:03:09.412,5,7\n", NULL, NULL, 0},
	{"the same column twice", "index, fan.speed [%], fan.speed [%]\n0, 5 %, 5 %\n", "GPU 0 fan.speed %: 5@0\n",
         "1: the file has no times: only the number of values is known\n", 0},
	{"times that are none",
         "timestamp, index, fan.speed [%]\n2026/11/21 07:03:09.412, 0, 5 %\n2026/13/45 27:63:99, 0, 6 %\n"
         "9999/01/01 00:00:00, 0, 7 %\n",
         "GPU 0 fan.speed %: 5@0 6@0 7@0\n",
         "2: times are invalid or outside the years 1990 to 2200: their rows have the time of the row before\n", 0},
	{"pmon, a program with blanks in its name",
         "# gpu   pid  type    sm   command\n# Idx     #   C/G     %   name\n    0   77     C     5   my train\n",
         "GPU 0, pid 77 sm %: 5@0\n", "1: the file has no times: only the number of values is known\n", 0},
};

static void describe(const struct model *model, struct buffer *series, struct buffer *ledger)
{
	for (uint32_t i = 0; i < model->series_count; i++) {
		const struct value_series *one = model->series[i];
		buffer_printf(series, "%s %s %s:", model_text(model, one->subject), model_text(model, one->name),
		              model_text(model, one->unit));
		for (uint32_t k = 0; k < one->count; k++)
			buffer_printf(series, " %g@%" PRId64, one->value[k], one->time_ns[k] / 1000000);
		buffer_add_text(series, "\n");
	}
	for (uint32_t i = 0; i < model->ledger_count; i++)
		buffer_printf(ledger, "%" PRIu64 ": %s\n", model->ledger[i].count,
		              model_text(model, model->ledger[i].text));
	buffer_add_text(series, "");
	buffer_add_text(ledger, "");
}

static void test_dialects(void **state)
{
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		const struct test_case *test = &tests[i];
		struct model model;
		struct error err = {0};
		struct buffer series, ledger;
		buffer_init(&series, 1 << 20);
		buffer_init(&ledger, 1 << 20);
		print_message("%s\n", test->name);
		enum status status = load(test->text, test->length ? test->length : strlen(test->text), &model, &err);
		assert_int_equal(status, test->series ? STATUS_OK : STATUS_INPUT);
		if (test->series) {
			describe(&model, &series, &ledger);
			assert_string_equal(series.data ? series.data : "", test->series);
			assert_string_equal(ledger.data ? ledger.data : "", test->ledger ? test->ledger : "");
		}
		buffer_release(&series);
		buffer_release(&ledger);
		model_release(&model);
	}
}

/* Many rows of two columns, then one of 128. */
static void test_wider_later(void **state)
{
	struct buffer text;
	struct model model;
	struct error err = {0};
	buffer_init(&text, 16 << 20);
	buffer_printf(&text, "index, fan.speed [%%]\n");
	for (int i = 0; i < 300000; i++)
		buffer_printf(&text, "0, 5\n");
	buffer_printf(&text, "index");
	for (int i = 1; i < 128; i++)
		buffer_printf(&text, ", clocks.x%d", i);
	for (int row = 0; row < 300; row++) {
		buffer_printf(&text, "\n0");
		for (int i = 1; i < 128; i++)
			buffer_printf(&text, ", %d", i + row);
	}
	buffer_printf(&text, "\n");
	assert_int_equal(load(text.data, text.length, &model, &err), STATUS_OK);
	assert_int_equal(model.series_count, 128);
	assert_int_equal(model.series[0]->count, 300000);
	for (uint32_t i = 1; i < 128; i++) {
		assert_int_equal(model.series[i]->count, 300);
		assert_true(model.series[i]->value[0] == i && model.series[i]->value[299] == i + 299);
	}
	model_release(&model);
	buffer_release(&text);
}

/* Of more columns than there is room for the first ones. */
static void test_wide(void **state)
{
	for (int columns = 510; columns < 516; columns++) {
		struct buffer text;
		struct model model;
		struct error err = {0};
		buffer_init(&text, 1 << 20);
		buffer_printf(&text, "index");
		for (int i = 1; i < columns; i++)
			buffer_printf(&text, ", clocks.x%d", i);
		buffer_printf(&text, "\n0");
		for (int i = 1; i < columns; i++)
			buffer_printf(&text, ", %d", i);
		buffer_printf(&text, "\n");
		assert_int_equal(load(text.data, text.length, &model, &err), STATUS_OK);
		assert_int_equal(model.series_count, columns < 512 ? columns - 1 : 511);
		assert_int_equal(model.ledger_count, 1 + (columns > 512));
		model_release(&model);
		buffer_release(&text);
	}
}

static void test_cut_anywhere(void **state)
{
	for (size_t i = 0; i < 8; i++) {
		for (size_t length = 1; length <= strlen(tests[i].text); length++) {
			struct model model;
			struct error err;
			enum status status = load(tests[i].text, length, &model, &err);
			assert_true(status == STATUS_OK || status == STATUS_INPUT);
			model_release(&model);
		}
	}
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_dialects),
		cmocka_unit_test(test_wider_later),
		cmocka_unit_test(test_wide),
		cmocka_unit_test(test_cut_anywhere),
	};
	return cmocka_run_group_tests(all, NULL, NULL);
}
