/* SPDX-License-Identifier: Apache-2.0
 *
 * self.c: reads /proc/self/{stat,status,io} without stdio and without malloc.
 */
#include "recorder/self.h"

#include "base/time_now.h"
#include "recorder/emit.h"
#include "recorder/stream.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

static size_t self_read_file(const char *path, char *out, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, out, bytes - 1);
	close(fd);
	if (n < 0)
		n = 0;
	out[n] = 0;
	return (size_t)n;
}

static void emit_named(const char *name, double value)
{
	emit_counter(emit_symbol(STEPSCOPE_SYMBOL_COUNTER, name, (uint32_t)strlen(name)), value);
}

/* Emits the value of a line "key:  123 kB". */
static void emit_line(const char *text, const char *key, const char *name, double scale)
{
	const char *at = strstr(text, key);
	if (at)
		emit_named(name, (double)strtoull(at + strlen(key), NULL, 10) * scale);
}

static void sample_stat(void)
{
	char text[1024];
	self_read_file("/proc/self/stat", text, sizeof(text));
	char *at = strrchr(text, ')'); /* the name in field 2 may contain any character */
	if (!at)
		return;
	uint64_t fields[52] = {0};
	int field = 2;
	for (at += 1; *at && field < 51;) {
		while (*at == ' ')
			at++;
		field++;
		fields[field] = strtoull(at, NULL, 10);
		while (*at && *at != ' ')
			at++;
	}
	double tick_ns = 1e9 / (double)sysconf(_SC_CLK_TCK);
	emit_named("process.minor_faults", (double)fields[10]);
	emit_named("process.major_faults", (double)fields[12]);
	emit_named("process.user_ns", (double)fields[14] * tick_ns);
	emit_named("process.system_ns", (double)fields[15] * tick_ns);
	emit_named("process.threads", (double)fields[20]);
}

static void sample_status(void)
{
	char text[4096];
	if (!self_read_file("/proc/self/status", text, sizeof(text)))
		return;
	emit_line(text, "VmRSS:", "process.rss_bytes", 1024);
	emit_line(text, "VmHWM:", "process.rss_peak_bytes", 1024);
	emit_line(text, "\nvoluntary_ctxt_switches:", "process.voluntary_switches", 1);
	emit_line(text, "nonvoluntary_ctxt_switches:", "process.involuntary_switches", 1);
}

static void sample_io(void)
{
	char text[512];
	if (!self_read_file("/proc/self/io", text, sizeof(text)))
		return;
	emit_line(text, "\nread_bytes:", "process.read_bytes", 1);
	emit_line(text, "\nwrite_bytes:", "process.write_bytes", 1);
}

void self_sample(uint64_t events, clockid_t recorder_clock_id)
{
	if (cursor_mine == &cursor_none || cursor_mine->stream == 0)
		stream_attach(STEPSCOPE_STREAM_SELF);
	sample_stat();
	sample_status();
	sample_io();
	emit_named("process.cpu_ns", (double)time_now_ns(CLOCK_PROCESS_CPUTIME_ID));
	emit_named("process.recorder_cpu_ns", (double)time_now_ns(recorder_clock_id));
	emit_named("process.recorded_events", (double)events);
}
