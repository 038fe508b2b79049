/* The floor of running a hook: posix_spawn with three pipes, one KiB written, both outputs read to their end, waited for.
 *
 * usage: spawn_floor COUNT OPEN_FILES COMMAND [ARGUMENT...]
 * prints: the median in microseconds, and the seconds that all of them took
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { PAYLOAD = 1024 };

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

static void read_to_end(int out, int err)
{
    char buffer[65536];
    struct pollfd ends[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
    int open_ends = 2;
    while (open_ends) {
        if (poll(ends, 2, -1) < 0)
            fail("poll");
        for (int i = 0; i < 2; i++) {
            if (ends[i].revents == 0)
                continue;
            ssize_t got = read(ends[i].fd, buffer, sizeof buffer);
            if (got < 0)
                fail("read");
            if (got == 0) {
                close(ends[i].fd);
                ends[i].fd = -1;
                open_ends--;
            }
        }
    }
}

static void run_once(char **command)
{
    static char payload[PAYLOAD];
    int in[2], out[2], err[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
        fail("pipe2");

    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);

    pid_t pid;
    errno = posix_spawn(&pid, command[0], &actions, &attributes, command, environ);
    if (errno)
        fail(command[0]);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(in[0]);
    close(out[1]);
    close(err[1]);

    if (write(in[1], payload, PAYLOAD) < 0 && errno != EPIPE)
        fail("write");
    close(in[1]);
    read_to_end(out[0], err[0]);
    int status;
    if (waitpid(pid, &status, 0) != pid)
        fail("waitpid");
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: %s COUNT OPEN_FILES COMMAND [ARGUMENT...]\n", argv[0]);
        return 2;
    }
    int count = atoi(argv[1]);
    double *each = calloc(count, sizeof *each);
    if (count < 1 || !each)
        fail("calloc");
    signal(SIGPIPE, SIG_IGN);
    for (int i = atoi(argv[2]); i > 0; i--)
        if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0)
            fail("open");

    double began = now_us();
    for (int i = 0; i < count; i++) {
        double start = now_us();
        run_once(argv + 3);
        each[i] = now_us() - start;
    }
    double all = now_us() - began;
    qsort(each, count, sizeof *each, ascending);
    printf("%.1f %.6f\n", each[count / 2], all / 1e6);
    return 0;
}
