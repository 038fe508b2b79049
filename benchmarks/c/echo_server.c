/* The yardstick of a round trip: an epoll server on a Unix socket that sends back whatever it reads.
 *
 * usage: echo_server PATH
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char buffer[1 << 18];

static void die(const char *what) {
    perror(what);
    exit(1);
}

static int send_all(int client, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t written = write(client, buffer + done, size - done);
        if (written < 0 && errno != EINTR)
            return -1;
        if (written > 0)
            done += (size_t)written;
    }
    return 0;
}

int main(int argc, char **argv) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct epoll_event events[64];

    if (argc != 2 || strlen(argv[1]) >= sizeof address.sun_path) {
        fprintf(stderr, "usage: echo_server PATH\n");
        return 2;
    }
    strcpy(address.sun_path, argv[1]);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 128))
        die("listen");
    int queue = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event wanted = {.events = EPOLLIN, .data.fd = listener};
    if (queue < 0 || epoll_ctl(queue, EPOLL_CTL_ADD, listener, &wanted))
        die("epoll");
    for (;;) {
        int count = epoll_wait(queue, events, 64, -1);
        for (int at = 0; at < count; at++) {
            int ready = events[at].data.fd;
            if (ready == listener) {
                int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
                wanted = (struct epoll_event){.events = EPOLLIN, .data.fd = client};
                if (client >= 0 && epoll_ctl(queue, EPOLL_CTL_ADD, client, &wanted))
                    die("epoll_ctl");
                continue;
            }
            ssize_t size = read(ready, buffer, sizeof buffer);
            if (size <= 0 || send_all(ready, (size_t)size))
                close(ready);
        }
    }
}
