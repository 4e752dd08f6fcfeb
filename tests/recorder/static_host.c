/* SPDX-License-Identifier: Apache-2.0
 *
 * static_host.c: a program without a recorder that loads two libraries, each with a copy of its own, for test_startstop.c.
 * static_host A.so B.so MODE: both, together; or one after the other, with a thread that outlives the copy it used.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plugin {
	void *handle;
	void (*work)(void);
};

static pthread_barrier_t barrier;

static struct plugin load(const char *path)
{
	struct plugin plugin = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};

	if (plugin.handle)
		plugin.work = (void (*)(void))(uintptr_t)dlsym(plugin.handle, "plugin_work");
	if (!plugin.work) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return plugin;
}

static void *work_and_stay(void *argument)
{
	((struct plugin *)argument)->work();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier); /* the library is unloaded in between */
	return NULL;
}

static void use_and_unload(const char *path)
{
	struct plugin plugin = load(path);
	pthread_t thread;

	pthread_create(&thread, NULL, work_and_stay, &plugin);
	pthread_barrier_wait(&barrier);
	plugin.work();
	dlclose(plugin.handle);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
}

static void use_together(const char *a, const char *b)
{
	struct plugin first = load(a), second = load(b);

	for (int i = 0; i < 10; i++) {
		first.work();
		second.work();
	}
}

int main(int argc, char **argv)
{
	pthread_barrier_init(&barrier, NULL, 2);
	if (argc == 4 && strcmp(argv[3], "together") == 0) {
		use_together(argv[1], argv[2]);
	} else if (argc == 4) {
		use_and_unload(argv[1]);
		use_and_unload(argv[2]);
		use_and_unload(argv[1]);
	}
	return argc != 4;
}
