/* SPDX-License-Identifier: Apache-2.0
 *
 * session.c: start, schedule, fork, stop. Holds the state of the recorder. A recording starts with the first event; a forked
 * child notices at its first event that the session is its parent's and starts its own.
 */
#include "recorder/session.h"

#include "base/hot.h"
#include "base/shell.h"
#include "base/utf8.h"
#include "format/block.h"
#include "recorder/background.h"
#include "recorder/emit.h"
#include "recorder/run_directory.h"
#include "recorder/self.h"
#include "recorder/session_state.h"
#include "recorder/stream.h"
#include "recorder/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TRAINER_POOL_BYTES (16ll << 20)
#define WORKER_POOL_BYTES (1ll << 20)
#define WAIT_FOR_START_MS 1000
#define WAIT_FOR_STOP_MS 12000
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#define ALL_BITS (STEPSCOPE_ACTIVE_STEPS | STEPSCOPE_ACTIVE_DETAIL | STEPSCOPE_ACTIVE_SHAPES | STEPSCOPE_ACTIVE_MEMORY)

extern char **environ;
struct session session;
HOT unsigned stepscope_active;
HOT uint32_t emit_starts, emit_first_start;

static uint64_t owner_word(pid_t pid, enum session_phase phase)
{
	return (uint64_t)pid << 8 | (uint64_t)phase;
}

/* ---- whose process is this? ------------------------------------------------------------------------------------------------ */

/* The pid that records, in a page that every kind of fork clears in the child: so no event needs a getpid(), and a child of vfork,
 * which shares our memory, counts as ourselves. NULL: the kernel cannot do that. */
static pid_t *own_mark;
static pid_t
	libc_child; /* child that fork() made; after a bare system call locks of the C library may be held for ever */

static void note_fork(void)
{
	background_forget();
	libc_child = getpid();
	__atomic_fetch_add(&emit_starts, 1, __ATOMIC_RELAXED);
	void (*at_fork)(void) = __atomic_load_n(&session.at_fork, __ATOMIC_ACQUIRE);
	if (at_fork) {
		symbols_leave_details();
		at_fork();
	}
	if (!own_mark || *own_mark == 0)
		return;
	/* an emulator that says it clears pages in a child and does not (qemu's user mode): the same by hand */
	*own_mark = 0;
	streams_wipe();
	symbols_wipe();
}

/* With the program's first start, also when that fails. */
static void watch_forks(void)
{
	static bool is_watched;
	if (is_watched)
		return;
	is_watched = true;
	pthread_atfork(background_hold, background_go_on, note_fork);
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page != MAP_FAILED && madvise(page, 4096, MADV_WIPEONFORK) == 0)
		__atomic_store_n(&own_mark, page, __ATOMIC_RELEASE);
}

static bool is_own(uint64_t owner)
{
	pid_t pid = (pid_t)(owner >> 8);
	pid_t *mark = __atomic_load_n(&own_mark, __ATOMIC_ACQUIRE);
	if (mark && __atomic_load_n(mark, __ATOMIC_RELAXED) == pid)
		return true;
	return pid == getpid();
}

bool session_is_own(void)
{
	return is_own(__atomic_load_n(&session.owner, __ATOMIC_ACQUIRE));
}

static enum session_phase phase_of(uint64_t owner)
{
	return (enum session_phase)(owner & 0xff);
}

static pid_t thread_id(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/* Waits while another thread starts or stops the recorder. The state then. */
static uint64_t wait_while(enum session_phase phase, int milliseconds)
{
	int64_t deadline_ns = clock_raw_ns() + milliseconds * INT64_C(1000000);
	int error = errno;
	for (;;) {
		uint32_t changes = __atomic_load_n(&session.changes, __ATOMIC_ACQUIRE);
		uint64_t seen = __atomic_load_n(&session.owner, __ATOMIC_SEQ_CST);
		int64_t left_ns = deadline_ns - clock_raw_ns();
		/* the last: we are its signal handler */
		if (phase_of(seen) != phase || !is_own(seen) || left_ns <= 0 ||
		    __atomic_load_n(&session.starter, __ATOMIC_RELAXED) == thread_id()) {
			errno = error;
			return seen;
		}
		const struct timespec wait = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
		syscall(SYS_futex, &session.changes, FUTEX_WAIT_PRIVATE, changes, &wait, NULL, 0);
	}
}

/* Ends a start or a stop. */
static void set_phase(enum session_phase phase)
{
	/* or this thread took the next one, by another thread, for its own */
	__atomic_store_n(&session.starter, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&session.owner, owner_word(session.pid, phase), __ATOMIC_RELEASE);
	__atomic_fetch_add(&session.changes, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &session.changes, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

bool session_is_starting(void)
{
	uint64_t seen = __atomic_load_n(&session.owner, __ATOMIC_ACQUIRE);
	return phase_of(seen) == SESSION_STARTING && is_own(seen);
}

static void set_active(unsigned bits)
{
	__atomic_store_n(&stepscope_active, bits, __ATOMIC_SEQ_CST);
}

const char *session_problem(void)
{
	return session.problem;
}

/* ---- schedule ------------------------------------------------------------------------------------------------------------- */

static bool captures_detail(enum stepscope_capture capture)
{
	return capture == STEPSCOPE_CAPTURE_RECORD || capture == STEPSCOPE_CAPTURE_SAVE;
}

/* Bits that the agent adds. A worker keeps what its parent had when it forked: to switch, an agent takes a lock of the program's that another
 * thread may have held at the fork. */
static unsigned tell_agent(unsigned bits)
{
	unsigned (*at_switch)(unsigned) = __atomic_load_n(&session.at_switch, __ATOMIC_ACQUIRE);
	bool is_over = __atomic_load_n(&session.is_over,
	                               __ATOMIC_SEQ_CST); /* then the program's own libraries go, too */
	if (at_switch && session.role == STEPSCOPE_ROLE_TRAINER && !is_over)
		session.switched = at_switch(bits);
	return session.switched;
}

/* A step that the budget chose may have operators without their inputs. What costs nothing is recorded where it alone leaves operators out. */
static unsigned bits_of(enum stepscope_capture capture)
{
	unsigned bits = session.budget.has_inputs ? session.mask_detail
	                                          : session.mask_detail & ~STEPSCOPE_ACTIVE_SHAPES;
	if (!captures_detail(capture) || !session.mask_detail)
		return STEPSCOPE_ACTIVE_STEPS;
	return STEPSCOPE_ACTIVE_STEPS | (session.budget.is_paused ? STEPSCOPE_ACTIVE_RARE : bits);
}

static void apply_capture(enum stepscope_capture capture, bool is_first)
{
	bool has_detail = captures_detail(capture) && !session.budget.is_paused;
	bool is_window = session.window_mask && !has_detail;
	unsigned bits = bits_of(capture) | session.window_mask;
	bits |= tell_agent(bits);
	const uint64_t payload[3] = {is_window ? STEPSCOPE_CAPTURE_RECORD : (uint64_t)capture, bits,
	                             (uint64_t)session.step_index};
	if (!is_first && bits == STEPSCOPE_ACTIVE_ && capture == session.capture)
		return;
	session.capture = capture;
	/* the statement stands outside the stretch in which detail is complete */
	if (!has_detail && !is_window)
		set_active(bits);
	stream_put(STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, payload, session.progress.counted_by ? 3 : 2);
	set_active(bits);
	if (phase_of(__atomic_load_n(&session.owner, __ATOMIC_SEQ_CST)) != SESSION_ON)
		set_active(0); /* a stop by another thread has begun meanwhile */
}

static bool lock_steps(void)
{
	/* bounded: a signal handler that marks a step while its own thread does must not hang */
	for (int i = 0; i < 10000; i++)
		if (__atomic_exchange_n(&session.step_lock, 1, __ATOMIC_ACQUIRE) == 0)
			return true;
	return false;
}

static void unlock_steps(void)
{
	__atomic_store_n(&session.step_lock, 0, __ATOMIC_RELEASE);
}

void session_apply_capture(void)
{
	if (!session_enter() || !lock_steps())
		return;
	apply_capture(session.capture, false);
	unlock_steps();
}

static void end_open_step(bool is_abandoned)
{
	struct thread_use use = {0};
	if (!session.is_step_open)
		return;
	session.is_step_open = false;
	bool has_use = step_cpu_end(&session.step_cpu, &use);
	const uint64_t payload[5] = {(uint64_t)session.step_number, is_abandoned, use.cpu_ns, use.waits,
	                             use.page_faults};
	stream_put(STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_END, payload, has_use ? 5 : is_abandoned ? 2 : 1);
	/* what lies between two steps belongs to the next one */
	step_budget_end(&session.budget, session.step_number, is_abandoned);
	step_budget_choose(&session.budget, session.step_number + 1);
	apply_capture(schedule_action(&session.options, session.step_index, session.step_number + 1), false);
}

/* The program marks its steps after all: its own begin with 0, and what was captured before stays. */
static void forget_counted(void)
{
	session.has_marked = true;
	if (!session.progress.counted_by)
		return;
	schedule_forget_counted(&session.progress);
	session.step_index = 0;
}

/* What the sentence at the end counts: a step that the budget leaves out has operators where a profiler in the program asks for them. */
static enum stepscope_capture recorded_as(enum stepscope_capture capture)
{
	if (!session.budget.is_paused)
		return capture;
	return session.window_mask ? STEPSCOPE_CAPTURE_RECORD : STEPSCOPE_CAPTURE_NONE;
}

static void note_step(enum stepscope_capture asked, int64_t number)
{
	enum stepscope_capture capture = recorded_as(asked);
	bool is_of_schedule = captures_detail(asked) && !session.budget.is_paused;
	unsigned bits = (is_of_schedule ? bits_of(asked) : 0) | session.window_mask;
	schedule_note(&session.progress, capture, number);
	if (bits & STEPSCOPE_ACTIVE_SHAPES)
		schedule_note_inputs(&session.progress, number);
}

void session_step_begin(int64_t number)
{
	const uint64_t payload = (uint64_t)number;
	if (!session_enter() || !lock_steps())
		return;
	end_open_step(false);
	if (!session.has_marked)
		forget_counted();
	int64_t index = session.step_index++;
	enum stepscope_capture capture = schedule_action(&session.options, index, number);
	step_budget_choose(&session.budget, number);
	apply_capture(capture, false);
	note_step(capture, number);
	session.step_number = number;
	session.is_step_open = true;
	stream_put(STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_BEGIN, &payload, 1);
	step_cpu_begin(&session.step_cpu);
	unlock_steps();
}

void session_step_end(bool is_abandoned)
{
	if (!session_enter() || !lock_steps())
		return;
	if (is_abandoned && session.is_step_open)
		schedule_take_back(&session.progress, session.step_number);
	end_open_step(is_abandoned);
	unlock_steps();
}

/* ---- steps that the program does not mark ----------------------------------------------------------------------------------- */

bool session_wants_count(void)
{
	return session_enter() && session.role != STEPSCOPE_ROLE_HOST &&
	       (session.options.mode != RECORD_ALWAYS || session.budget.is_on || session.progress.is_left_out);
}

/* For readers that know names only: whose it is, as a forked child has its parent's names, too. */
static void tell_own(const char *key, const char *what)
{
	char value[96];
	snprintf(value, sizeof(value), "%sprocess %d", what, (int)session.pid);
	session_meta(key, value);
}

static void become_trainer(void)
{
	session.is_training = true;
	tell_own("trains", "");
	if (session.role != STEPSCOPE_ROLE_WORKER)
		return;
	session.role = STEPSCOPE_ROLE_TRAINER;
	/* until now it recorded what its parent did as it forked */
	step_budget_start(&session.budget, &session.options, false);
	if ((session.options.mode != RECORD_ALWAYS || session.budget.is_on) && !session.has_marked)
		apply_capture(schedule_action(&session.options, session.step_index, session.step_index), false);
}

void session_trains(void)
{
	if (!session_enter() || session.is_training || session.role == STEPSCOPE_ROLE_HOST || !lock_steps())
		return;
	if (!session.is_training)
		become_trainer();
	unlock_steps();
}

static void choose_detail(void)
{
	session.mask_detail = STEPSCOPE_ACTIVE_DETAIL | (session.options.with_shapes ? STEPSCOPE_ACTIVE_SHAPES : 0) |
	                      (session.options.with_memory ? STEPSCOPE_ACTIVE_MEMORY : 0);
	session.progress.rank = session.job.rank;
	session.progress.is_left_out = !ranks_selected(&session.options, &session.job);
	if (session.progress.is_left_out)
		session.mask_detail = 0;
}

void session_tell_rank(int32_t rank, int32_t world_size)
{
	char what[64];
	if (rank < 0 || !session_enter() || !lock_steps())
		return;
	bool is_known = session.job.has_rank && session.job.rank == rank && session.job.world_size == world_size;
	if (session.job.rank != rank)
		session.job.local_rank = -1; /* the environment speaks of another process */
	session.job.has_rank = session.is_rank_told = true;
	session.job.rank = rank;
	session.job.world_size = world_size;
	if (!is_known) {
		snprintf(what, sizeof(what), "%d of %d, ", (int)rank, (int)world_size);
		tell_own("rank", what);
		choose_detail();
		apply_capture(session.capture, false);
	}
	unlock_steps();
}

static void tell_count(uint64_t ended)
{
	stream_put(STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_COUNTED, &ended, 1);
}

/* `is_odd`: several have ended at once, and nobody knows how long each was. */
static void count_step(bool is_odd)
{
	int64_t ended = session.step_index++;
	enum stepscope_capture was = schedule_action(&session.options, ended, ended);
	note_step(was, ended);
	session.step_number = ended;
	step_budget_end(&session.budget, ended, is_odd);
	step_budget_choose(&session.budget, session.step_index);
	apply_capture(schedule_action(&session.options, session.step_index, session.step_index), false);
}

void session_count_steps(unsigned count, const char *by)
{
	if (!session_enter() || session.role != STEPSCOPE_ROLE_TRAINER || !lock_steps())
		return;
	if (!session.has_marked)
		session.progress.counted_by = by;
	bool is_odd = count > 1;
	for (; count && !session.has_marked; count--)
		count_step(is_odd);
	if (!session.has_marked)
		tell_count((uint64_t)session.step_index);
	unlock_steps();
}

void session_note_steps(unsigned count)
{
	if (session_enter() && session.role == STEPSCOPE_ROLE_TRAINER && !session.has_marked)
		tell_count(__atomic_add_fetch(&session.steps_noted, count, __ATOMIC_RELAXED));
}

/* ---- windows: what a profiler in the program asks for, beside the schedule ---------------------------------------------------- */

static void put_window(uint32_t number, bool is_begin)
{
	const uint64_t payload[2] = {number, is_begin};
	stream_put(STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_WINDOW, payload, 2);
}

uint32_t session_window_begin(unsigned with)
{
	if (!session_enter() || !lock_steps())
		return 0;
	uint32_t number = ++session.window_count;
	session.windows_open++;
	session.window_mask |= STEPSCOPE_ACTIVE_DETAIL | (with & ALL_BITS);
	put_window(number, true);
	__atomic_fetch_add(&emit_starts, 1, __ATOMIC_RELAXED);
	apply_capture(session.capture, false);
	unlock_steps();
	return number;
}

void session_window_end(uint32_t number)
{
	if (!number || !session_enter() || !lock_steps())
		return;
	if (session.windows_open && --session.windows_open == 0)
		session.window_mask = 0;
	put_window(number, false);
	apply_capture(session.capture, false);
	unlock_steps();
}

/* ---- facts ---------------------------------------------------------------------------------------------------------------- */

void session_meta(const char *key, const char *value)
{
	char pair[2400]; /* threads may have small stacks */
	size_t key_bytes = strnlen(key, 256), most = sizeof(pair) - 300;
	size_t value_bytes = utf8_cut(value, strnlen(value, most + 1), most);
	memcpy(pair, key, key_bytes);
	pair[key_bytes] = 0;
	memcpy(pair + key_bytes + 1, value, value_bytes);
	uint32_t symbol = symbols_intern(STEPSCOPE_SYMBOL_META, pair, (uint32_t)(key_bytes + 1 + value_bytes));
	if (symbol)
		stream_put(STEPSCOPE_EVENT_MARK, symbol, NULL, 0);
	else
		stream_drop(STEPSCOPE_EVENT_MARK);
}

static void meta_number(const char *key, double value)
{
	char text[64];
	snprintf(text, sizeof(text), "%.3f", value);
	session_meta(key, text);
}

/* What one event costs here, on a chunk of its own. */
static double measure_event_ns(void)
{
	uint64_t words[130];
	struct cursor scratch = {.stream = 1};
	struct cursor *mine = cursor_mine;
	uint64_t best = UINT64_MAX;
	for (int round = 0; round < 20; round++) {
		scratch.next = words;
		scratch.end = words + 130;
		scratch.high = (uint32_t)(clock_ticks() >> 32);
		cursor_mine = &scratch;
		uint64_t start = clock_ticks();
		for (int i = 0; i < 128; i++) {
			if (recorder_clock.is_counter)
				stream_put(STEPSCOPE_EVENT_BEGIN, 1, NULL, 0);
			else
				(void)clock_ticks(); /* all that counts there; the slow path needs a pool */
		}
		uint64_t ticks = clock_ticks() - start;
		cursor_mine = mine;
		if (ticks < best)
			best = ticks;
	}
	return (double)best * 1e9 / (double)recorder_clock.tick_hz / 128;
}

static void tell_facts(void)
{
	char text[1024];
	ssize_t length = readlink("/proc/self/exe", text, sizeof(text) - 1);
	if (length > 0) {
		text[length] = 0;
		session_meta("program", text);
	}
	if (getcwd(text, sizeof(text)))
		session_meta("cwd", text);
	session_meta("version", STEPSCOPE_VERSION);
	if (session.role != STEPSCOPE_ROLE_HOST)
		step_budget_tell(&session.options);
	if (session.pool.kind == POOL_MEMFD)
		snprintf(text, sizeof(text), "memfd:%d", session.pool.file.fd);
	else
		snprintf(text, sizeof(text), "%s", pool_kind_text(session.pool.kind));
	session_meta("pool", text);
	meta_number("pool.bytes", (double)session.pool.bytes);
	session_meta("clock", recorder_clock.is_counter ? "counter" : "system");
	meta_number("clock.tick_ns", 1e9 / (double)recorder_clock.tick_hz);
	meta_number("cost.event_ns", session.cost_event_ns);
	double step_cpu_ns;
	if (step_cpu_cost_ns(&session.step_cpu, &step_cpu_ns))
		meta_number("cost.step_cpu_ns", step_cpu_ns);
	if (session.job.has_rank && session.job.local_rank >= 0)
		meta_number("local_rank", session.job.local_rank);
	if (session.job.restart_count > 0)
		meta_number("restart_count", session.job.restart_count);
	if (session.job.launcher && session.job.launcher[0])
		session_meta("launcher", session.job.launcher);
}

/* ---- start ---------------------------------------------------------------------------------------------------------------- */

static uint64_t read_start_time(void)
{
	char text[1024];
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	char *at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

/* Thirty-two hexadecimal digits, whatever stands between them. */
static void read_hex(const char *text, uint8_t id[16])
{
	int nibble = 0;
	for (const char *at = text; *at && nibble < 32; at++) {
		int value = *at >= '0' && *at <= '9' ? *at - '0' : *at >= 'a' && *at <= 'f' ? *at - 'a' + 10 : -1;
		if (value < 0)
			continue;
		id[nibble / 2] = (uint8_t)(id[nibble / 2] << 4 | value);
		nibble++;
	}
}

static void read_boot_id(uint8_t id[16])
{
	char text[40] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) < 36)
		text[0] = 0;
	close(fd);
	read_hex(text, id);
}

/* The program's own wish, and above it what its user says in the environment. */
static bool read_options(const char *list)
{
	static struct record_settings settings, above; /* 11 KB each: not on a trainer's thread stack */
	memset(&settings, 0, sizeof(settings));
	memset(&above, 0, sizeof(above));
	record_options_init(&session.options);
	if (list &&
	    !record_settings_parse(&settings, list, "stepscope_init()", session.problem, sizeof(session.problem)))
		return false;
	if (!record_settings_environment(&above, environ, session.problem, sizeof(session.problem)))
		return false;
	record_settings_overlay(&settings, &above);
	return record_options_resolve(&session.options, &settings, session.problem, sizeof(session.problem));
}

/* `stepscope run` tells its children which run they belong to: 32 hexadecimal digits. */
static void read_run_id(uint8_t id[16])
{
	const char *text = getenv("STEPSCOPE_IDENTITY");
	if (text && strlen(text) == 32)
		read_hex(text, id);
}

static void fill_identity(struct stepscope_segment_header *identity)
{
	struct stat pid_namespace;
	*identity = (struct stepscope_segment_header){
		.pid = (uint32_t)session.pid,
		.start_time = session.start_time,
		.clock = recorder_clock.kind,
		.role = session.role,
		.rank = session.job.has_rank ? session.job.rank : -1,
		.world_size = session.job.world_size,
		.tick_hz = recorder_clock.tick_hz,
		.tick_step = recorder_clock.tick_step,
		.parent_pid = (uint32_t)getppid(),
		.pid_namespace = stat("/proc/self/ns/pid", &pid_namespace) == 0 ? pid_namespace.st_ino : 0,
	};
	read_boot_id(identity->boot_id);
	read_run_id(identity->run_id);
	if (getrandom(&identity->session, sizeof(identity->session), GRND_NONBLOCK) != sizeof(identity->session))
		identity->session = (uint32_t)clock_ticks();
}

static int64_t pool_bytes(void)
{
	int64_t wanted = session.options.pool_bytes ? session.options.pool_bytes : TRAINER_POOL_BYTES;
	if (session.role == STEPSCOPE_ROLE_TRAINER)
		return wanted;
	return wanted < WORKER_POOL_BYTES ? wanted : WORKER_POOL_BYTES;
}

static struct drain_limits limits(void)
{
	struct drain_limits result = {
		.keep_bytes = session.options.keep_bytes,
		.keep_ns = session.options.keep_ns,
		.segment_bytes = session.options.segment_bytes,
		.fdatasync_ns = session.options.fdatasync_ns,
		.is_self_sampled = session.options.is_self_sampled,
	};
	if (result.segment_bytes == 0)
		result.segment_bytes = result.keep_bytes ? result.keep_bytes / 8 : 64 << 20;
	return result;
}

static bool fail(const char *what, int reason)
{
	if (reason)
		snprintf(session.problem, sizeof(session.problem), "cannot record: %s: %s", what, strerror(reason));
	else
		snprintf(session.problem, sizeof(session.problem), "cannot record: %s", what);
	return false;
}

static bool start_parts(const struct session_start *how, bool is_forked)
{
	/* after a bare system call of a fork, no thread can be made safely */
	bool is_inline = session.ancestor != 0 && libc_child != session.pid;
	struct drain_start drain = {.pool = &session.pool, .limits = limits(), .is_inline = is_inline};
	struct stepscope_segment_header identity;
	const char *what = "";
	if (!run_directory_get(&session.options, how->run_directory, session.pid, session.problem,
	                       sizeof(session.problem)))
		return false;
	if (!symbols_start())
		return fail("no memory for names", ENOMEM);
	if (!pool_create(&session.pool, (size_t)pool_bytes(), (unsigned)session.pid, session.start_time))
		return fail("no memory for events", ENOMEM);
	fill_identity(&identity);
	drain.directory = session.options.run_directory;
	drain.identity = &identity;
	if (!streams_start(&session.pool, is_forked)) {
		pool_destroy(&session.pool, true);
		return fail("no memory for threads", ENOMEM);
	}
	int reason = drain_start(&session.drain, &drain, &what);
	if (reason) {
		bool is_quiet = streams_stop();
		is_quiet &= symbols_detach_pool();
		pool_destroy(&session.pool, is_quiet);
		if (what[0] == 't') /* the recording's file: name the place */
			snprintf(session.problem, sizeof(session.problem), "cannot record into '%s': %s",
			         drain.directory, strerror(reason));
		else
			fail(what, reason);
		return false;
	}
	__atomic_store_n(&emit_first_start, __atomic_add_fetch(&emit_starts, 1, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	if (!session.drain.is_continued) /* the sentence is about one recording */
		session.progress.earlier = session.progress.earlier_begun = session.progress.earlier_recorded = 0;
	return true;
}

static void choose_identity(const struct session_start *how, bool is_forked)
{
	const struct job_identity told = session.job;
	const int32_t before = session.environments_rank;
	job_identity_read(&session.job, environ);
	session.environments_rank = session.job.has_rank ? session.job.rank : -1;
	/* a forked child is a worker of its parent, unless a launcher made it a rank of its own, or until it trains */
	bool is_new = session.environments_rank >= 0 && session.environments_rank != before;
	bool is_worker = is_forked && how->role == STEPSCOPE_ROLE_TRAINER && !is_new;
	session.role = is_worker ? STEPSCOPE_ROLE_WORKER : how->role;
	session.is_rank_told &= !is_new;
	if (session.is_rank_told)
		session.job = told;
	choose_detail();
}

/* In a forked child: everything of the parent is forgotten, but not the names and not what was asked for. */
static void forget_parent(void)
{
	session.ancestor = session.pid;
	drain_forget(&session.drain);
	own_fd_close(&session.pool.file);
	session.pool = (struct pool){.file.fd = -1};
	session.step_lock = 0;
	session.is_step_open = false;
	session.is_ending = false;
	session.step_index = 0;
	session.steps_noted = 0;
	session.has_marked = session.is_training = false;
	step_budget_forget(&session.budget);
	session.window_count = session.windows_open = session.window_mask = 0; /* its parent's */
	session.progress = (struct schedule_progress){0};
	streams_forget();
	(void)symbols_detach_pool();
}

/* Who starts says so and then looks for the end; on_unload() says so and then looks for a start: one of them sees the other. */
static bool is_over(void)
{
	return __atomic_load_n(&session.is_over, __ATOMIC_SEQ_CST);
}

static bool start(const struct session_start *how, bool is_forked)
{
	session.pid = getpid();
	session.start_time = read_start_time();
	session.problem[0] = 0;
	session.is_off = false;
	if (is_over())
		return fail("the program is ending", 0);
	if (is_forked)
		forget_parent();
	else if (!read_options(how->options))
		return false;
	session.is_off = session.options.mode == RECORD_OFF;
	if (session.is_off)
		return false;
	/* a mapping that an earlier stop could not take away is ours */
	if (session.leaked_in != session.pid && pool_exists_in_process((unsigned)session.pid, session.start_time))
		return fail("another copy of libstepscope records in this process already", 0);
	clock_start();
	choose_identity(how, is_forked);
	step_budget_start(&session.budget, &session.options, session.role == STEPSCOPE_ROLE_WORKER);
	session.cost_event_ns = measure_event_ns();
	step_cpu_start(&session.step_cpu);
	return start_parts(how, is_forked);
}

static bool begin_recording(const struct session_start *how, bool is_forked)
{
	__atomic_store_n(&session.starter, thread_id(), __ATOMIC_RELAXED);
	watch_forks();
	if (!start(how, is_forked)) {
		set_active(0);
		/* a copy that leaves the work to another one, is switched off, or comes too late, has nothing to complain about */
		if (!how->is_explicit && !strstr(session.problem, "already") && !session.is_off && !is_over())
			recorder_say("%s; the program runs on unrecorded", session.problem);
		set_phase(SESSION_FAILED);
		return false;
	}
	session.is_start_told = false;
	if (own_mark)
		__atomic_store_n(own_mark, session.pid, __ATOMIC_RELAXED);
	streams_declare_early();
	set_phase(SESSION_ON);
	return true;
}

/* The first events of the recording: once its first thread has a stream. */
void session_tell_start(void)
{
	if (__atomic_exchange_n(&session.is_start_told, true, __ATOMIC_ACQ_REL))
		return;
	tell_facts();
	if (session.role == STEPSCOPE_ROLE_WORKER && session.options.mode != RECORD_ALWAYS)
		apply_capture(session.capture, true); /* workers have no steps: as their parent did when it forked */
	else
		apply_capture(schedule_before_first(&session.options), true);
}

bool session_enter(void)
{
	uint64_t seen = __atomic_load_n(&session.owner, __ATOMIC_ACQUIRE);
	if (phase_of(seen) == SESSION_ON && is_own(seen))
		return true;
	if (!__atomic_load_n(&session.is_wanted, __ATOMIC_RELAXED))
		return false;
	pid_t pid = getpid();
	if ((pid_t)(seen >> 8) != pid &&
	    !__atomic_compare_exchange_n(&session.owner, &seen, owner_word(pid, SESSION_STARTING), false,
	                                 __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE) &&
	    (pid_t)(seen >> 8) != pid)
		return false;
	if ((pid_t)(seen >> 8) == pid) {
		if (phase_of(seen) == SESSION_STARTING)
			seen = wait_while(SESSION_STARTING, WAIT_FOR_START_MS);
		return phase_of(seen) == SESSION_ON ||
		       (phase_of(seen) == SESSION_STOPPING && __atomic_load_n(&session.is_ending, __ATOMIC_ACQUIRE));
	}
	bool is_forked = (seen >> 8) != 0;
	const struct session_start how = {.role = is_forked && session.role == STEPSCOPE_ROLE_HOST
	                                                  ? STEPSCOPE_ROLE_HOST
	                                                  : STEPSCOPE_ROLE_TRAINER};
	int error = errno; /* an event is no call that fails */
	bool is_on = begin_recording(&how, is_forked);
	errno = error;
	return is_on;
}

int session_start(const struct session_start *how)
{
	pid_t pid = getpid();
	uint64_t seen = wait_while(SESSION_STOPPING, WAIT_FOR_STOP_MS);
	if (phase_of(seen) == SESSION_ON && is_own(seen))
		return 0;
	if (seen == owner_word(pid, SESSION_STOPPING))
		return -1;
	if (seen == owner_word(pid, SESSION_STARTING) ||
	    !__atomic_compare_exchange_n(&session.owner, &seen, owner_word(pid, SESSION_STARTING), false,
	                                 __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE)) { /* another thread is at it */
		seen = wait_while(SESSION_STARTING, WAIT_FOR_STOP_MS);
		return phase_of(seen) == SESSION_FAILED && !session.is_off ? -1 : 0;
	}
	bool was_other = (seen >> 8) != 0 && (pid_t)(seen >> 8) != pid;
	if (was_other)
		forget_parent();
	__atomic_store_n(&session.is_wanted, true, __ATOMIC_RELAXED);
	if (!begin_recording(how, false))
		return session.is_off ? 0 : -1;
	session_tell_start();
	return 0;
}

/* ---- flush and stop ------------------------------------------------------------------------------------------------------- */

void session_flush(void)
{
	if (__atomic_load_n(&session.owner, __ATOMIC_ACQUIRE) == owner_word(getpid(), SESSION_ON))
		drain_flush(&session.drain);
}

/* `stepscope run` says it for all its processes; what was started by hand, and handed its directory on to children, says it
 * itself. */
static bool says_end(void)
{
	const char *starter = getenv("STEPSCOPE_STARTED_BY");
	bool is_joining = session.is_joining || getenv("STEPSCOPE_RUN_DIR");
	return !is_joining || (starter && strtol(starter, NULL, 10) == session.pid);
}

#define KIND(name) (UINT64_C(1) << STEPSCOPE_SYMBOL_##name)
#define OPERATORS (KIND(OP) | KIND(BACKWARD) | KIND(SCRIPT))
#define RANGES (KIND(RANGE) | KIND(ANNOTATION))

/* What it says of itself is no news, and its advice is wrong, where others did the work. */
static void say_end(const char *sentence)
{
	const char *directory = session.options.run_directory;
	char word[1100];
	shell_quote(word, sizeof(word), directory);
	if (session.progress.captured == CAPTURED_NOTHING &&
	    run_directory_has_others(directory, session.pid, session.start_time))
		sentence = "captured no operators in this process; others that it started recorded, too";
	recorder_say("%s; see: stepscope report %s", sentence, word);
}

static void tell_captured(void)
{
	char what[32];
	session.progress.captured = schedule_captured(&session.options, &session.progress);
	snprintf(what, sizeof(what), "%s, ", captured_word(session.progress.captured));
	tell_own("captured", what);
}

static void tell_end(void)
{
	char sentence[1024];
	clockid_t clock;
	if (session.options.is_self_sampled && drain_mode(&session.drain) == DRAIN_BY_THREAD &&
	    pthread_getcpuclockid(session.drain.thread, &clock) == 0)
		self_sample(__atomic_load_n(&session.drain.events, __ATOMIC_RELAXED), clock);
	if (session.role != STEPSCOPE_ROLE_TRAINER)
		return;
	session.progress.observer = session.observer;
	session.progress.steps_noted = (int64_t)session.steps_noted;
	session.progress.has_uncounted = session.has_uncounted;
	session.progress.profiler = session.profiler;
	session.progress.has_operators = (symbols_kinds() & OPERATORS) != 0;
	session.progress.has_ranges = (symbols_kinds() & RANGES) != 0;
	step_budget_describe(&session.budget, &session.progress);
	schedule_describe(&session.options, &session.progress, sentence, sizeof(sentence));
	session_meta("capture", sentence);
	tell_captured();
	bool is_windows_only = session.window_count && session.options.mode == RECORD_STEPS &&
	                       !session.options.step_range_count;
	/* a profiler in the program knows what it asked for */
	if (says_end() && !is_windows_only)
		say_end(sentence);
}

void session_stop(const char *reason)
{
	(void)wait_while(SESSION_STARTING, WAIT_FOR_STOP_MS); /* or what it starts is never closed */
	uint64_t expected = owner_word(getpid(), SESSION_ON);
	if (!__atomic_compare_exchange_n(&session.owner, &expected, owner_word(getpid(), SESSION_STOPPING), false,
	                                 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return;
	__atomic_store_n(&session.starter, thread_id(), __ATOMIC_RELAXED);
	set_active(0);
	__atomic_store_n(&session.is_ending, true, __ATOMIC_RELEASE);
	void (*at_end)(void) = __atomic_load_n(&session.at_end, __ATOMIC_ACQUIRE);
	if (at_end)
		at_end();
	tell_end();
	(void)tell_agent(0);
	__atomic_store_n(&session.is_ending, false, __ATOMIC_RELEASE);
	bool is_quiet = streams_stop();
	if (!drain_stop(&session.drain, reason)) { /* a stuck disk: what is left is the rescue's */
		set_phase(SESSION_FAILED);
		return;
	}
	streams_reset();
	is_quiet &= symbols_detach_pool();
	if (!is_quiet)
		session.leaked_in = session.pid;
	if (session.pool.header->is_closed || session.drain.file.is_removed)
		pool_destroy(&session.pool, is_quiet);
	else
		pool_abandon(&session.pool, is_quiet); /* could not be written: left for the rescue */
	session.is_step_open = false;
	session.step_index = 0;
	session.steps_noted = 0;
	session.has_marked = session.is_training = false;
	step_budget_stop(&session.budget, session.options.run_directory);
	session.windows_open = session.window_mask = 0;
	schedule_restart(&session.progress);
	set_phase(SESSION_OFF);
}

/* ---- with the process ------------------------------------------------------------------------------------------------------ */

static bool is_set(const char *name)
{
	const char *value = getenv(name);
	return value && value[0] && strcmp(value, "0") != 0 && strcmp(value, "off") != 0;
}

__attribute__((constructor)) static void on_load(void)
{
	const char *wish = getenv("STEPSCOPE");
	bool is_refused = wish && (strcmp(wish, "0") == 0 || strcmp(wish, "off") == 0);
	session.pool.file.fd = session.drain.file.file.fd = session.drain.coarse.file.fd = -1;
	session.is_joining = is_set("STEPSCOPE_RUN_DIR");
	session.is_wanted = !is_refused && (is_set("STEPSCOPE") || session.is_joining);
	/* names may be asked for by several threads at once before the first event */
	if (session.is_wanted && symbols_start())
		set_active(ALL_BITS); /* until the first event finds out what is wanted */
}

__attribute__((destructor)) static void on_unload(void)
{
	__atomic_store_n(&session.is_over, true, __ATOMIC_SEQ_CST);
	session_stop("exit");
	(void)wait_while(SESSION_STOPPING, WAIT_FOR_STOP_MS); /* by another thread */
	streams_unload();
}
