/* SPDX-License-Identifier: Apache-2.0
 *
 * static_program.c: a program with a copy of the recorder of its own, for test_startstop.c. Compiled with plugin.c.
 */
void plugin_work(void);

int main(void)
{
	plugin_work();
	return 0;
}
