/* SPDX-License-Identifier: Apache-2.0
 *
 * test_host.c: telemetry from files that the test writes below a directory of its own.
 */
#include "host/host.h"

#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define MAXIMUM 4096

struct machine {
	char root[64];
	struct host *host;
	struct {
		char name[120];
		bool has_value;
		double value;
	} counters[MAXIMUM];
	uint32_t count;
	int64_t now_ns;
};

static uint32_t counter(void *context, const char *name)
{
	struct machine *machine = context;

	assert_true(machine->count < MAXIMUM);
	for (uint32_t i = 0; i < machine->count; i++)
		assert_string_not_equal(machine->counters[i].name, name);
	snprintf(machine->counters[machine->count].name, sizeof(machine->counters[0].name), "%s", name);
	return machine->count++;
}

static void value(void *context, uint32_t number, double amount)
{
	struct machine *machine = context;

	assert_true(number < machine->count);
	assert_true(isfinite(amount));
	machine->counters[number].has_value = true;
	machine->counters[number].value = amount;
}

static void put(struct machine *machine, const char *path, const char *text)
{
	char full[256];
	FILE *file;

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(full, sizeof(full), "%s%.*s", machine->root, (int)(slash - path), path);
		mkdir(full, 0700);
	}
	snprintf(full, sizeof(full), "%s%s", machine->root, path);
	/* in place: the files stay open between samples, as those of /proc do */
	file = fopen(full, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void sample(struct machine *machine)
{
	const struct host_sink sink = {machine, counter, value};

	for (uint32_t i = 0; i < machine->count; i++)
		machine->counters[i].has_value = false;
	host_sample(machine->host, machine->now_ns, &sink);
	machine->now_ns += SECOND;
}

static bool has(const struct machine *machine, const char *name)
{
	for (uint32_t i = 0; i < machine->count; i++) {
		if (!strcmp(machine->counters[i].name, name))
			return machine->counters[i].has_value;
	}
	return false;
}

static double get(const struct machine *machine, const char *name)
{
	for (uint32_t i = 0; i < machine->count; i++) {
		if (!strcmp(machine->counters[i].name, name) && machine->counters[i].has_value)
			return machine->counters[i].value;
	}
	fail_msg("no value of %s", name);
	return 0;
}

static void is_near(double actual, double expected)
{
	if (fabs(actual - expected) > 1e-9 * fmax(1, fabs(expected)))
		fail_msg("%.12g is not %.12g", actual, expected);
}

static int set_up(void **state)
{
	struct machine *machine = calloc(1, sizeof(*machine));

	strncat(machine->root, "/tmp/test_host.XXXXXX", sizeof(machine->root) - 1);
	assert_non_null(mkdtemp(machine->root));
	machine->host = host_new(machine->root);
	machine->now_ns = SECOND;
	*state = machine;
	return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
	(void)info, (void)kind, (void)where;
	return remove(path);
}

static int tear_down(void **state)
{
	struct machine *machine = *state;

	host_free(machine->host);
	nftw(machine->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(machine);
	return 0;
}

static void a_machine_without_files_has_no_values(void **state)
{
	struct machine *machine = *state;
	uint64_t kills;

	sample(machine);
	sample(machine);
	for (uint32_t i = 0; i < machine->count; i++)
		assert_false(machine->counters[i].has_value);
	assert_null(host_ledger(machine->host, 0));
	assert_false(host_oom_kills(machine->host, &kills));
}

static void cpu_shares_are_of_the_time_between_samples(void **state)
{
	struct machine *machine = *state;

	put(machine, "/proc/stat",
	    "cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 100 0 100 700 100 0 0 0 0 0\nprocs_running 3\nprocs_blocked 1\n");
	sample(machine);
	assert_false(has(machine, "host.cpu.busy_ratio"));
	put(machine, "/proc/stat",
	    "cpu  140 10 115 720 105 3 2 5 7 0\ncpu0 100 0 100 800 100 0 0 0 0 0\nprocs_running 4\nprocs_blocked 0\n");
	sample(machine);
	is_near(get(machine, "host.cpu.user_ratio"), 0.5);
	is_near(get(machine, "host.cpu.system_ratio"), 0.2);
	is_near(get(machine, "host.cpu.iowait_ratio"), 0.05);
	is_near(get(machine, "host.cpu.steal_ratio"), 0.05);
	is_near(get(machine, "host.cpu.busy_ratio"), 0.75);
	is_near(get(machine, "host.cpu0.busy_ratio"), 0);
	is_near(get(machine, "host.cpu.runnable_threads"), 4);
}

static void cpu_times_that_go_back_or_stand_give_no_nonsense(void **state)
{
	struct machine *machine = *state;

	put(machine, "/proc/stat", "cpu  100 0 100 700 100\ncpu0 5 5 5 5 5\n");
	sample(machine);
	put(machine, "/proc/stat", "cpu  150 0 100 750 90\ncpu0 5 5 5 5 5\n");
	sample(machine);
	is_near(get(machine, "host.cpu.iowait_ratio"), 0);
	is_near(get(machine, "host.cpu.busy_ratio"), 0.5);
	assert_false(has(machine, "host.cpu0.busy_ratio"));
}

static void cores_beyond_the_limit_are_named_in_the_ledger(void **state)
{
	struct machine *machine = *state;
	char *text = calloc(1, 65536);
	size_t used = (size_t)snprintf(text, 65536, "cpu  1 1 1 1\n");

	for (int i = 0; i < 384; i++)
		used += (size_t)snprintf(text + used, 65536 - used, "cpu%d 1 1 1 1\n", i);
	put(machine, "/proc/stat", text);
	free(text);
	sample(machine);
	sample(machine);
	assert_string_equal(host_ledger(machine->host, 0), "cpu: the first 256 of 384 cores are recorded");
	assert_null(host_ledger(machine->host, 1));
}

static void memory_is_in_bytes(void **state)
{
	struct machine *machine = *state;
	uint64_t kills;

	put(machine, "/proc/meminfo",
	    "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:   400 kB\nDirty: 7 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n");
	put(machine, "/proc/vmstat", "pgmajfault 10\npswpin 0\npswpout 0\noom_kill 3\n");
	sample(machine);
	put(machine, "/proc/vmstat", "pgmajfault 15\npswpin 2\npswpout 0\noom_kill 5\n");
	sample(machine);
	is_near(get(machine, "host.memory.total_bytes"), 1024000);
	is_near(get(machine, "host.memory.available_bytes"), 409600);
	is_near(get(machine, "host.memory.used_bytes"), 614400);
	is_near(get(machine, "host.swap.used_bytes"), 30720);
	is_near(get(machine, "host.memory.major_faults_per_s"), 5);
	is_near(get(machine, "host.swap.in_bytes_per_s"), 2.0 * (double)sysconf(_SC_PAGESIZE));
	assert_true(host_oom_kills(machine->host, &kills));
	assert_int_equal(kills, 2);
}

static void whole_disks_are_recorded_not_partitions(void **state)
{
	struct machine *machine = *state;

	put(machine, "/sys/block/sda/size", "1\n");
	put(machine, "/proc/diskstats",
	    "   8 0 sda 1 2 100 4 5 6 200 8 9 1000 11\n   8 1 sda1 1 2 100 4 5 6 200 8 9 10 11\n   7 0 loop0 1 2 3 4 5 6 7 8 9 10 11\n");
	sample(machine);
	put(machine, "/proc/diskstats",
	    "   8 0 sda 1 2 102 4 5 6 204 8 9 1500 11 1 2 3 4\n   8 1 sda1 1 2 900 4 5 6 900 8 9 10 11\nrubbish\n 8\n");
	sample(machine);
	is_near(get(machine, "host.disk.sda.read_bytes_per_s"), 1024);
	is_near(get(machine, "host.disk.sda.written_bytes_per_s"), 2048);
	is_near(get(machine, "host.disk.sda.busy_ratio"), 0.5);
	assert_false(has(machine, "host.disk.sda1.read_bytes_per_s"));
}

static void disks_come_and_go(void **state)
{
	struct machine *machine = *state;

	put(machine, "/proc/diskstats", "8 0 sda 1 2 100 4 5 6 200 8 9 0 11\n");
	sample(machine);
	put(machine, "/proc/diskstats", "8 16 sdb 1 2 500 4 5 6 200 8 9 0 11\n");
	sample(machine);
	assert_false(has(machine, "host.disk.sdb.read_bytes_per_s"));
	put(machine, "/proc/diskstats", "8 0 sda 1 2 104 4 5 6 200 8 9 0 11\n8 16 sdb 1 2 10 4 5 6 200 8 9 0 11\n");
	sample(machine);
	assert_false(has(machine, "host.disk.sdb.read_bytes_per_s"));
	assert_true(has(machine, "host.disk.sda.read_bytes_per_s"));
}

static void interfaces_have_odd_names_and_no_blanks(void **state)
{
	static const char heading[] = "Inter-|   Receive |  Transmit\n face |bytes    packets|bytes\n";
	struct machine *machine = *state;
	char text[512];

	snprintf(text, sizeof(text),
	         "%s    lo: 100 1 0 0 0 0 0 0 200 2 0 0 0 0 0 0\neth0:1:5 1 0 0 0 0 0 0 5 2 0 0 0 0 0 0\n", heading);
	put(machine, "/proc/net/dev", text);
	sample(machine);
	snprintf(text, sizeof(text),
	         "%s    lo: 150 1 0 1 0 0 0 0 300 2 0 2 0 0 0 0\neth0:1:15 1 0 0 0 0 0 0 5 2 0 0 0 0 0 0\n", heading);
	put(machine, "/proc/net/dev", text);
	sample(machine);
	is_near(get(machine, "host.network.lo.received_bytes_per_s"), 50);
	is_near(get(machine, "host.network.lo.sent_bytes_per_s"), 100);
	is_near(get(machine, "host.network.lo.dropped_packets_per_s"), 3);
	is_near(get(machine, "host.network.eth0:1.received_bytes_per_s"), 10);
}

static void pressure_is_of_the_last_second(void **state)
{
	struct machine *machine = *state;

	put(machine, "/proc/pressure/io",
	    "some avg10=1.50 avg60=0.00 avg300=0.00 total=1000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n");
	sample(machine);
	put(machine, "/proc/pressure/io",
	    "some avg10=2.50 avg60=0.00 avg300=0.00 total=1250000\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=5\n");
	sample(machine);
	is_near(get(machine, "host.pressure.io.some_ratio"), 0.25);
	is_near(get(machine, "host.pressure.io.some_avg10_ratio"), 0.025);
	is_near(get(machine, "host.pressure.io.full_ratio"), 0);
	assert_false(has(machine, "host.pressure.cpu.some_ratio"));
}

static void cgroup_2_follows_the_tightest_limit(void **state)
{
	struct machine *machine = *state;
	uint64_t kills;

	put(machine, "/proc/self/cgroup", "0::/job/step\n");
	put(machine, "/proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
	put(machine, "/sys/fs/cgroup/job/memory.max", "4096\n");
	put(machine, "/sys/fs/cgroup/job/memory.current", "3000\n");
	put(machine, "/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 1000\n");
	put(machine, "/sys/fs/cgroup/job/memory.events", "low 0\noom 1\noom_kill 1\noom_group_kill 0\n");
	put(machine, "/sys/fs/cgroup/job/step/memory.max", "max\n");
	put(machine, "/sys/fs/cgroup/job/step/memory.current", "77\n");
	put(machine, "/sys/fs/cgroup/job/step/cpu.max", "150000 100000\n");
	put(machine, "/sys/fs/cgroup/job/step/cpu.stat",
	    "usage_usec 0\nnr_periods 10\nnr_throttled 1\nthrottled_usec 0\n");
	sample(machine);
	put(machine, "/sys/fs/cgroup/job/step/cpu.stat",
	    "usage_usec 1200000\nnr_periods 20\nnr_throttled 3\nthrottled_usec 500000\n");
	put(machine, "/sys/fs/cgroup/job/memory.events", "low 0\noom 1\noom_kill 2\noom_group_kill 0\n");
	sample(machine);
	is_near(get(machine, "host.cgroup.memory_limit_bytes"), 4096);
	is_near(get(machine, "host.cgroup.memory_used_bytes"), 3000);
	is_near(get(machine, "host.cgroup.memory_working_set_bytes"), 2000);
	is_near(get(machine, "host.cgroup.cpu_limit_cores"), 1.5);
	is_near(get(machine, "host.cgroup.cpu_used_cores"), 1.2);
	is_near(get(machine, "host.cgroup.cpu_throttled_s_per_s"), 0.5);
	is_near(get(machine, "host.cgroup.cpu_throttled_periods_ratio"), 0.2);
	assert_true(host_oom_kills(machine->host, &kills));
	assert_int_equal(kills, 1);
}

static void cgroup_1_has_a_tree_per_controller(void **state)
{
	struct machine *machine = *state;

	put(machine, "/proc/self/cgroup", "9:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n1:name=systemd:/\n0::/\n");
	put(machine, "/proc/self/mountinfo",
	    "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	    "35 31 0:32 /docker/abc /sys/fs/cgroup/my\\040memory rw master:3 - cgroup cgroup rw,memory\n"
	    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
	put(machine, "/sys/fs/cgroup/my memory/memory.limit_in_bytes", "9223372036854771712\n");
	put(machine, "/sys/fs/cgroup/my memory/memory.usage_in_bytes", "5000\n");
	put(machine, "/sys/fs/cgroup/my memory/memory.stat", "total_inactive_file 1000\n");
	put(machine, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
	put(machine, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
	put(machine, "/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", "1000000000\n");
	sample(machine);
	put(machine, "/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", "1250000000\n");
	sample(machine);
	is_near(get(machine, "host.cgroup.memory_used_bytes"), 5000);
	is_near(get(machine, "host.cgroup.memory_working_set_bytes"), 4000);
	assert_false(has(machine, "host.cgroup.memory_limit_bytes"));
	is_near(get(machine, "host.cgroup.cpu_limit_cores"), 0.5);
	is_near(get(machine, "host.cgroup.cpu_used_cores"), 0.25);
}

static void files_of_rubbish_do_no_harm(void **state)
{
	static const char *const paths[] = {"/proc/stat",        "/proc/meminfo",     "/proc/vmstat",
	                                    "/proc/diskstats",   "/proc/net/dev",     "/proc/pressure/cpu",
	                                    "/proc/pressure/io", "/proc/self/cgroup", "/proc/self/mountinfo"};
	static const char *const texts[] = {"",
	                                    "\n",
	                                    ":",
	                                    "cpu",
	                                    "cpu ",
	                                    "cpu99999999999999999999 1",
	                                    ": : : :\n::::",
	                                    "0::\n",
	                                    "some avg10=\nfull total=",
	                                    "- - - - - cgroup2 - cgroup2\n",
	                                    " - cgroup2",
	                                    "MemTotal:\nMemAvailable: x"};
	struct machine *machine = *state;

	for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
		host_free(machine->host);
		machine->host = host_new(machine->root);
		machine->count = 0;
		for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++)
			put(machine, paths[p], texts[t]);
		sample(machine);
		sample(machine);
	}
}

static void this_machine_has_values(void **state)
{
	struct machine *machine = *state;

	host_free(machine->host);
	machine->host = host_new("/");
	sample(machine);
	sample(machine);
	assert_true(get(machine, "host.memory.total_bytes") > 1e6);
	assert_true(get(machine, "host.memory.used_bytes") <= get(machine, "host.memory.total_bytes"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_machine_without_files_has_no_values),
		TEST(cpu_shares_are_of_the_time_between_samples),
		TEST(cpu_times_that_go_back_or_stand_give_no_nonsense),
		TEST(cores_beyond_the_limit_are_named_in_the_ledger),
		TEST(memory_is_in_bytes),
		TEST(whole_disks_are_recorded_not_partitions),
		TEST(disks_come_and_go),
		TEST(interfaces_have_odd_names_and_no_blanks),
		TEST(pressure_is_of_the_last_second),
		TEST(cgroup_2_follows_the_tightest_limit),
		TEST(cgroup_1_has_a_tree_per_controller),
		TEST(files_of_rubbish_do_no_harm),
		TEST(this_machine_has_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
