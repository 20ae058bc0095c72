// The listening socket of a thread, for both servers of the benchmark.

#ifndef THRONG_BENCH_LISTENER_H
#define THRONG_BENCH_LISTENER_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "clock.h"

enum { ACCEPTS_PER_TURN = 64 };

static inline int listener(int port, int backlog, bool nodelay) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket");
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on)) die("SO_REUSEPORT");
    if (nodelay && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on)) die("TCP_NODELAY");
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (struct sockaddr *)&address, sizeof address)) die("bind");
    if (listen(fd, backlog)) die("listen");
    return fd;
}

// Returns the size of the next batch of accepts after one of `streak` that took `taken`. An accept
// on an empty queue is expensive, because the kernel creates a file first. So a batch is 1, and
// doubles while the queue holds as many.
static inline int next_streak(int streak, int taken) {
    if (taken < streak) return 1;
    return streak * 2 > ACCEPTS_PER_TURN ? ACCEPTS_PER_TURN : streak * 2;
}

#endif
