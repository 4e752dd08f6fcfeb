/* SPDX-License-Identifier: Apache-2.0
 *
 * background.c: see background.h.
 */
#include "recorder/background.h"

#include <stdint.h>
#include <time.h>

#define LONGEST_WAIT_MS 1000

/* The worker sets is_working and then checks for holders; a holder adds itself and then checks is_working. So at least
 * one of them sees the other. */
static struct {
	void (*call)(void); /* NULL: no request; all members are atomic */
	uint32_t is_working;
	uint32_t holders;
} background;

void background_ask(void (*call)(void))
{
	__atomic_store_n(&background.call, call, __ATOMIC_RELEASE);
}

void background_work(void)
{
	if (!__atomic_load_n(&background.call, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&background.is_working, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&background.holders, __ATOMIC_SEQ_CST)) {
		void (*call)(void) = __atomic_exchange_n(&background.call, NULL, __ATOMIC_ACQ_REL);
		if (call)
			call();
	}
	__atomic_store_n(&background.is_working, 0, __ATOMIC_RELEASE);
}

void background_hold(void)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	__atomic_add_fetch(&background.holders, 1, __ATOMIC_SEQ_CST);
	for (int ms = 0; ms < LONGEST_WAIT_MS && __atomic_load_n(&background.is_working, __ATOMIC_SEQ_CST); ms++)
		nanosleep(&moment, NULL);
}

void background_go_on(void)
{
	__atomic_sub_fetch(&background.holders, 1, __ATOMIC_RELEASE);
}

void background_forget(void)
{
	__atomic_store_n(&background.holders, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&background.is_working, 0, __ATOMIC_RELAXED);
}
