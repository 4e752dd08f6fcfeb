/* SPDX-License-Identifier: Apache-2.0
 *
 * test_lean.c: what PyTorch does in a shorter way with us is the same, and is left alone where anything is not as known. Each test is a
 * process of its own, since calls are led for good.
 */
#include "agents/torch/lean_tls.h"
#include "fake_observers.h"

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct {
	enum fake_kind *kind;
	unsigned *sets;
	struct torch_entry (*entry)(void);
	void (*engine_sets)(bool is_observed, bool makes_records);
	bool (*makes_records)(void), (*is_observed)(void);
} fake;

static struct loaded load(const char *name)
{
	static const char *const names[] = {"fake_kind",        "fake_sets",          "fake_entry",
	                                    "fake_engine_sets", "fake_makes_records", "fake_is_observed"};
	char path[1024];
	struct loaded loaded;
	Dl_info info;

	_Static_assert(sizeof(fake) == sizeof(names), "in that order");
	assert_true(dladdr(&fake, &info) != 0);
	snprintf(path, sizeof(path), "%.*s/%s", (int)(strrchr(info.dli_fname, '/') - info.dli_fname), info.dli_fname,
	         name);
	assert_non_null(dlopen(path, RTLD_NOW));
	process_find_library(&loaded, name);
	assert_non_null(loaded.handle);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_non_null(((void **)&fake)[i] = dlsym(loaded.handle, names[i]));
	return loaded;
}

static const char is_led[] = "led";

static const char *start(const char *library, enum fake_kind kind)
{
	struct loaded loaded = load(library);
	*fake.kind = kind;
	struct torch_entry entry = fake.entry();
	return lean_tls_start(&entry, &loaded);
}

static unsigned needed; /* calls of set() that change anything, or are of a thread that somebody observes */

static void set(bool is_observed, bool makes_records)
{
	needed += is_observed || fake.is_observed() || makes_records != fake.makes_records();
	fake.engine_sets(is_observed, makes_records);
	if (*fake.kind == FAKE_SET_DOES_NOTHING)
		return;
	assert_int_equal(fake.is_observed(), is_observed);
	assert_int_equal(fake.makes_records(), makes_records);
}

#define SETS 34u

/* Whatever the engine sets, it is so; returns how often PyTorch's own function was called for it. */
static unsigned set_all(void)
{
	unsigned before = *fake.sets;

	needed = 0;
	for (unsigned i = 0; i < SETS; i++)
		set(i & 2, i & (i < 16 ? 4 : 8));
	return *fake.sets - before;
}

/* In a process of its own. */
static void check_alone(void (*check)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		check();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static void expect(const char *library, enum fake_kind kind, const char *problem)
{
	const char *found = start(library, kind);

	if (strcmp(found ? found : is_led, problem) != 0) {
		fprintf(stderr, "%s, kind %d: %s\n", library, kind, found ? found : is_led);
		_exit(1);
	}
	if (set_all() != (problem == is_led ? needed : SETS) || needed == SETS) {
		fprintf(stderr, "%s, kind %d: calls that came through\n", library, kind);
		_exit(2);
	}
}

#define EXPECT(name, library, kind, problem)                                                                           \
	static void name##_alone(void)                                                                                 \
	{                                                                                                              \
		expect(library, kind, problem);                                                                        \
	}                                                                                                              \
	static void name(void **state)                                                                                 \
	{                                                                                                              \
		check_alone(name##_alone);                                                                             \
	}

#define LIBRARY "libfake_observers.so"
static const char not_as_known[] = "the observers of a thread are kept in an unknown way";
EXPECT(what_changes_nothing_is_left_out, LIBRARY, FAKE_AS_KNOWN, is_led)
EXPECT(protected_slots_are_led, "libfake_observers_protected.so", FAKE_AS_KNOWN, is_led)
EXPECT(a_moved_flag_is_seen, LIBRARY, FAKE_FLAG_MOVED, not_as_known)
EXPECT(a_moved_list_is_seen, LIBRARY, FAKE_LIST_MOVED, not_as_known)
EXPECT(more_that_is_kept_is_seen, LIBRARY, FAKE_MORE_IS_KEPT, not_as_known)
EXPECT(another_meaning_is_seen, LIBRARY, FAKE_SET_DOES_NOTHING, not_as_known)
EXPECT(without_slots_nothing_is_led, "libfake_observers_direct.so", FAKE_AS_KNOWN,
       "libtorch_cpu calls it without slots")

static bool forbid_writable(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 13),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void expect_read_only(void)
{
	struct loaded loaded = load("libfake_observers_protected.so");
	struct torch_entry entry = fake.entry();

	if (!forbid_writable())
		_exit(0);
	const char *problem = lean_tls_start(&entry, &loaded);
	_exit(!problem || strcmp(problem, "the slots are read-only") != 0 || set_all() != SETS);
}

static void slots_that_stay_read_only_are_left_alone(void **state)
{
	check_alone(expect_read_only);
}

/* By somebody else than the dynamic linker: its table does not tell of them. */
static void expect_made_read_only(void)
{
	struct loaded loaded = load("libfake_observers_protected.so");
	struct torch_entry entry = fake.entry();

	loaded.relro_start = loaded.relro_end = 0;
	const char *problem = lean_tls_start(&entry, &loaded);
	_exit(!problem || strcmp(problem, "the slots are read-only") != 0 || set_all() != SETS);
}

static void slots_that_were_made_read_only_are_left_alone(void **state)
{
	check_alone(expect_made_read_only);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_changes_nothing_is_left_out),
		cmocka_unit_test(protected_slots_are_led),
		cmocka_unit_test(a_moved_flag_is_seen),
		cmocka_unit_test(a_moved_list_is_seen),
		cmocka_unit_test(more_that_is_kept_is_seen),
		cmocka_unit_test(another_meaning_is_seen),
		cmocka_unit_test(without_slots_nothing_is_led),
		cmocka_unit_test(slots_that_stay_read_only_are_left_alone),
		cmocka_unit_test(slots_that_were_made_read_only_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
