/* Spawning from several threads at once, while others allocate and signals fly. */
#include "vxtest.h"

#include "vx/map.h"
#include "vx/spawn.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

enum { THREADS = 4, SPAWNS = 40 };

static void *spawner(void *arg)
{
	const char *argv[] = {"sh", "-c", "exit 5", NULL};
	int *failures = arg;

	for (int i = 0; i < SPAWNS; i++) {
		struct vx_spawn s = VX_SPAWN_INIT;
		pid_t pid;
		int pidfd, status = 0;

		s.path = i % 4 ? "/bin/sh" : "/no/such/program";
		s.argv = argv;
		int r = vx_spawn(&s, &pid, &pidfd, NULL);
		if (i % 4 == 0) {
			*failures += r != -ENOENT;
			continue;
		}
		if (r != 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
			WEXITSTATUS(status) != 5)
			++*failures;
		if (r == 0)
			close(pidfd);
		char *p = malloc(1000 + (size_t)i * 100);
		memset(p, i, 1000);
		free(p);
	}
	return NULL;
}

static void on_signal(int sig)
{
	(void)sig;
}

static void many_threads(void **state)
{
	pthread_t t[THREADS];
	int failures[THREADS] = {0};
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	(void)state;
	sigaction(SIGUSR1, &sa, NULL);
	int before = vxt_open_fds();
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, spawner, &failures[i]), 0);
	for (int i = 0; i < 200; i++) {
		kill(getpid(), SIGUSR1);
		usleep(500);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(failures[i], 0);
	}
	assert_int_equal(vxt_open_fds(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void *looker(void *arg)
{
	const struct vx_map *m = arg;
	uintptr_t wrong = 0;

	for (uint32_t round = 0; round < 50; round++)
		for (uint32_t i = 0; i < 500; i++)
			wrong += vx_map_get(m, &i, sizeof i) != (i < 250 ? i : VX_MAP_NONE);
	return (void *)wrong;
}

static void maps_are_read_by_many(void **state)
{
	static uint32_t keys[250];
	struct vx_map m = {0};
	pthread_t t[THREADS];

	(void)state;
	for (uint32_t i = 0; i < 250; i++) {
		keys[i] = i;
		vx_map_put(&m, &keys[i], sizeof keys[i], i);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, looker, &m), 0);
	for (int i = 0; i < THREADS; i++) {
		void *wrong;
		pthread_join(t[i], &wrong);
		assert_null(wrong);
	}
	vx_map_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_threads),
		cmocka_unit_test(maps_are_read_by_many),
	};

	return cmocka_run_group_tests_name("spawn_mt", tests, NULL, NULL);
}
