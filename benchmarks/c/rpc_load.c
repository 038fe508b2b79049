/* A client that measures: it keeps DEPTH requests under way on one connection until COUNT are answered.
 *
 * usage: rpc_load PATH DEPTH COUNT REQUEST [EXPECTED]
 *
 * REQUEST is a file that holds one request with its line end; every line that comes back counts as one answer, and the
 * first one must contain EXPECTED. With DEPTH 1 each round trip is timed. Prints
 * {"p50_us": ..., "p99_us": ..., "per_s": ...}.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static char answers[1 << 20];
static char request[1 << 20];

static void die(const char *what) {
    perror(what);
    exit(1);
}

static double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void send_all(int server, const char *data, size_t size) {
    while (size > 0) {
        ssize_t written = write(server, data, size);
        if (written <= 0)
            die("write");
        data += written;
        size -= (size_t)written;
    }
}

/* Reads once and gives the number of line ends that came. */
static long receive(int server, const char *expected) {
    static int checked = 0;
    ssize_t size = read(server, answers, sizeof answers - 1);
    long lines = 0;

    if (size <= 0)
        die("read");
    if (!checked) {
        answers[size] = 0;
        if (expected && !strstr(answers, expected)) {
            fprintf(stderr, "unexpected answer: %s\n", answers);
            exit(1);
        }
        checked = 1;
    }
    for (char *at = answers; (at = memchr(at, '\n', (size_t)(answers + size - at))); at++)
        lines++;
    return lines;
}

int main(int argc, char **argv) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (argc < 5 || strlen(argv[1]) >= sizeof address.sun_path) {
        fprintf(stderr, "usage: rpc_load PATH DEPTH COUNT REQUEST [EXPECTED]\n");
        return 2;
    }
    alarm(120);
    long depth = atol(argv[2]), count = atol(argv[3]);
    const char *expected = argc > 5 ? argv[5] : NULL;
    FILE *file = fopen(argv[4], "r");
    if (!file)
        die(argv[4]);
    size_t size = fread(request, 1, sizeof request, file);
    fclose(file);
    char *block = malloc(size * (size_t)depth);
    double *times = malloc(sizeof(double) * (size_t)count);
    if (!block || !times)
        die("malloc");
    for (long at = 0; at < depth; at++)
        memcpy(block + size * (size_t)at, request, size);

    strcpy(address.sun_path, argv[1]);
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0 || connect(server, (struct sockaddr *)&address, sizeof address))
        die("connect");
    send_all(server, request, size);
    while (!receive(server, expected))
        ;

    double start = now_us();
    long sent = depth < count ? depth : count, done = 0;
    double before = start;
    send_all(server, block, size * (size_t)sent);
    while (done < count) {
        long lines = receive(server, NULL);
        if (depth == 1 && lines == 1) {
            double now = now_us();
            times[done] = now - before;
        }
        done += lines;
        long more = lines < count - sent ? lines : count - sent;
        before = now_us();
        if (more > 0)
            send_all(server, block, size * (size_t)more);
        sent += more;
    }
    double took = now_us() - start;
    if (depth == 1) {
        qsort(times, (size_t)count, sizeof(double), ascending);
        printf("{\"p50_us\": %.3f, \"p99_us\": %.3f, \"per_s\": %.0f}\n", times[count / 2], times[count * 99 / 100],
               (double)count / took * 1e6);
    } else {
        printf("{\"p50_us\": 0, \"p99_us\": 0, \"per_s\": %.0f}\n", (double)count / took * 1e6);
    }
    return 0;
}
