// A bare epoll server: the cost of the kernel's TCP without a program on top.
//
// Every thread has its own SO_REUSEPORT listener and its own epoll. A connection is an fd: there is
// no table, no buffer, no timer and no state. It answers all input with "ok", and closes a
// connection that the peer closes. It prints nothing while it runs; on SIGTERM it prints one line
// of JSON.
//
//   server --port P [--threads N] [--backlog N] [--nodelay] [--shared-table]
//
// This server is the reference, so it makes two choices that a careful program makes too. Each
// thread has its own fd table: in a table with one user the kernel counts no references to a file.
// TCP_NODELAY is set on the listener, and accepted sockets inherit it.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "listener.h"

enum { EVENTS = 256, THREADS_MAX = 64 };

struct options {
    int port, threads, backlog;
    bool nodelay, shared_table;
};

// One cache line or more for each thread; the main thread reads them once, at the end.
struct worker {
    pthread_t thread;
    const struct options *options;
    volatile uint64_t accepted, messages, closed, failed, turns;
} __attribute__((aligned(128)));

// Accepts up to `streak` connections. The listener is level-triggered, so a bounded batch loses
// nothing.
static void accept_some(struct worker *worker, int epoll, int listener, int *streak) {
    int taken = 0;
    while (taken < *streak) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno != EAGAIN && errno != ECONNABORTED) worker->failed++;
            break;
        }
        taken++;
        struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.fd = fd};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event)) {
            worker->failed++;
            close(fd);
        }
    }
    worker->accepted += (uint64_t)taken;
    *streak = next_streak(*streak, taken);
}

// Answers the available input and closes the connections that have ended. A short read empties the
// socket, so it needs no second read; edge-triggered events report later input.
static void serve(struct worker *worker, int fd, uint32_t events) {
    char bytes[4096];
    for (;;) {
        ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        if (got > 0) {
            worker->messages++;
            if (send(fd, "ok", 2, MSG_NOSIGNAL) != 2) {
                worker->failed++;
                break;
            }
            if (got == (ssize_t)sizeof bytes) continue;
            if (!(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))) return;
            break;
        }
        if (got < 0 && errno == EAGAIN) return;
        if (got < 0) worker->failed++;
        break;
    }
    close(fd);
    worker->closed++;
}

static void *run(void *argument) {
    struct worker *worker = argument;
    if (!worker->options->shared_table) (void)unshare(CLONE_FILES);
    // Growing a shared table stalls every thread for a grace period of RCU. Grow it once, now.
    if (dup2(0, 15000) == 15000) close(15000);

    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) die("epoll_create1");
    int accepting = listener(worker->options->port, worker->options->backlog, worker->options->nodelay);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = accepting};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, accepting, &event)) die("epoll_ctl");

    int streak = 1;
    struct epoll_event events[EVENTS];
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);
        worker->turns++;
        bool listener_ready = false;
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == accepting) {
                accept_some(worker, epoll, accepting, &streak);
                listener_ready = true;
            } else {
                serve(worker, events[i].data.fd, events[i].events);
            }
        }
        if (!listener_ready) streak = 1;
    }
    return NULL;
}

static struct options parse(int count, char **arguments) {
    struct options options = {.port = 0, .threads = 1, .backlog = 4096};
    for (int i = 1; i < count; i++) {
        const char *name = arguments[i];
        if (!strcmp(name, "--nodelay")) options.nodelay = true;
        else if (!strcmp(name, "--shared-table")) options.shared_table = true;
        else if (!strcmp(name, "--port") && i + 1 < count) options.port = atoi(arguments[++i]);
        else if (!strcmp(name, "--threads") && i + 1 < count) options.threads = atoi(arguments[++i]);
        else if (!strcmp(name, "--backlog") && i + 1 < count) options.backlog = atoi(arguments[++i]);
        else fprintf(stderr, "server: unknown argument %s\n", name), exit(2);
    }
    if (options.port <= 0 || options.threads < 1 || options.threads > THREADS_MAX)
        fprintf(stderr, "server: --port, and --threads from 1 to %d\n", THREADS_MAX), exit(2);
    return options;
}

int main(int count, char **arguments) {
    struct options options = parse(count, arguments);
    static struct worker workers[THREADS_MAX];
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    for (int i = 0; i < options.threads; i++) {
        workers[i].options = &options;
        if (pthread_create(&workers[i].thread, NULL, run, &workers[i])) die("pthread_create");
    }
    int signal_number;
    sigwait(&stop, &signal_number);

    uint64_t accepted = 0, messages = 0, closed = 0, failed = 0, turns = 0;
    for (int i = 0; i < options.threads; i++) {
        accepted += workers[i].accepted;
        messages += workers[i].messages;
        closed += workers[i].closed;
        failed += workers[i].failed;
        turns += workers[i].turns;
    }
    printf("{\"accepted\":%lu,\"messages\":%lu,\"closed\":%lu,\"failed\":%lu,\"turns\":%lu,\"cpu_us\":%lu}\n",
           accepted, messages, closed, failed, turns, own_cpu_us());
    return 0;
}
