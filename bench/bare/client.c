// The load generator of every TCP row of the benchmark. It is also the bare client with which
// generators are compared.
//
//   client MODE --port P [--threads N] [--connections N] [--rate R] [--warmup S] [--seconds S]
//               [--reply BYTES] [--sources N] [--tick US]
//
//   churn     Each connection sends one byte, reads the reply and closes. Without --rate the loop is
//             closed: `connections` are in flight, and each that ends starts the next. With --rate
//             it is open: arrivals are even.
//   messages  `connections` stay open and send one byte each way. Without --rate every connection
//             always has one message in flight. With --rate messages are due evenly, on one
//             connection after another.
//   hold      The client opens `connections` and leaves them alone.
//
// A latency counts from the intended moment of the message or arrival, never from the moment at
// which the client sent it. A slow server delays the client, but cannot hide the delay.
//
// With --tick the client checks its schedule at most that often, and then does everything that is
// due. To wake for each message would cost more than the message. The wait for the tick is part of
// the latency.
//
// The client prints {"event":"start"} and {"event":"end"} around the measured window, so that the
// harness takes its own readings of the same window. Then it prints its results: a line of JSON.
//
// The client closes first, so TIME_WAIT is on its side. Keep `sources` x 28,232 ports (the usual
// range) below the kernel's limit of TIME_WAIT sockets (131,072). Beyond it the kernel drops them
// early, every connection costs less, and runs depend on the runs before them.

#define _GNU_SOURCE
#include "clock.h"
#include "histogram.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 256, THREADS_MAX = 16, SOURCES_MAX = 250, OPENING_MAX = 64 };
enum mode { CHURN, MESSAGES, HOLD };
enum phase { OPENING, WARMING, MEASURING, DRAINING };
enum state { UNUSED, CONNECTING, IDLE, AWAITING };

struct options {
    enum mode mode;
    const char *mode_name;
    int port, threads, connections, reply, sources;
    double rate, warmup, seconds;
    uint64_t tick; // ns
};

// One connection. `due` is the intended moment of the current operation. `owed` is the number of
// messages that became due on this connection after it.
struct slot {
    int fd;
    uint8_t state;
    uint16_t got;
    uint32_t owed;
    uint64_t due;
};

struct failures {
    uint64_t connecting, reset, closed, unanswered;
};

struct worker {
    pthread_t thread;
    const struct options *options;
    int index, epoll, connections;
    struct slot *slots;
    uint32_t *unused; // a stack of free slots
    int unused_count, pending, opened, dead;
    uint32_t source;
    uint64_t scheduled; // arrivals or messages of this thread that were due so far
    double interval;    // time between two of them, in ns; 0 without a rate
    bool finished_opening;
    volatile uint64_t done; // read by the main thread while it grows
    struct failures failures;
    struct histogram latency;
} __attribute__((aligned(128)));

static volatile enum phase phase = OPENING;
static volatile uint64_t began; // the moment from which the schedule counts
static volatile uint64_t drain_until;
static int workers_ready;

// Returns a moment of the schedule. Thread i of n has every n-th arrival, so that the arrivals of
// all threads are even.
static uint64_t due_moment(const struct worker *worker, uint64_t number) {
    double share = (double)worker->index / worker->options->threads;
    return began + (uint64_t)(((double)number + share) * worker->interval);
}

static bool start(struct worker *worker, uint32_t index, uint64_t due) {
    struct slot *slot = &worker->slots[index];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) goto failed;
    const struct options *options = worker->options;
    int on = 1;
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    uint32_t source = 0x7f0a0001u + ((uint32_t)worker->index << 16) +
                      worker->source++ % (uint32_t)options->sources;
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(source)};
    if (bind(fd, (struct sockaddr *)&from, sizeof from)) goto failed;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)options->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS) goto failed;
    *slot = (struct slot){.fd = fd, .state = CONNECTING, .due = due};
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.u32 = index};
    if (epoll_ctl(worker->epoll, EPOLL_CTL_ADD, fd, &event)) goto failed;
    worker->pending++;
    return true;
failed:
    if (fd >= 0) close(fd);
    worker->failures.connecting++;
    return false;
}

// Ends a connection. In `churn`, its slot is free for the next one.
static void end(struct worker *worker, uint32_t index) {
    struct slot *slot = &worker->slots[index];
    close(slot->fd);
    if (slot->state != IDLE) worker->pending--;
    slot->state = UNUSED;
    if (worker->options->mode == CHURN) worker->unused[worker->unused_count++] = index;
    else worker->dead++;
}

static void fail(struct worker *worker, uint32_t index, uint64_t *kind) {
    (*kind)++;
    end(worker, index);
}

static void send_byte(struct worker *worker, uint32_t index) {
    struct slot *slot = &worker->slots[index];
    if (slot->state == IDLE) worker->pending++;
    slot->state = AWAITING;
    slot->got = 0;
    if (send(slot->fd, "x", 1, MSG_NOSIGNAL) != 1) fail(worker, index, &worker->failures.reset);
}

// Counts a complete reply, and starts the next step of the mode.
static void answered(struct worker *worker, uint32_t index) {
    struct slot *slot = &worker->slots[index];
    uint64_t now = now_ns();
    if (phase == MEASURING) record(&worker->latency, now > slot->due ? now - slot->due : 0);
    worker->done++;
    if (worker->options->mode == CHURN) {
        end(worker, index);
        return;
    }
    slot->state = IDLE;
    worker->pending--;
    if (phase == DRAINING) return;
    if (worker->interval == 0) {
        slot->due = now;
        send_byte(worker, index);
    } else if (slot->owed > 0) {
        slot->owed--;
        slot->due += (uint64_t)(worker->interval * worker->connections);
        send_byte(worker, index);
    }
}

static void on_event(struct worker *worker, uint32_t index, uint32_t events) {
    struct slot *slot = &worker->slots[index];
    if (slot->state == UNUSED) return;
    if (slot->state == CONNECTING) {
        if (events & (EPOLLERR | EPOLLHUP)) {
            fail(worker, index, &worker->failures.connecting);
        } else if (events & EPOLLOUT) {
            if (worker->options->mode == CHURN) {
                send_byte(worker, index);
            } else {
                slot->state = IDLE;
                worker->pending--;
                worker->opened++;
            }
        }
        return;
    }
    if (events & (EPOLLERR | EPOLLHUP)) {
        fail(worker, index, &worker->failures.reset);
        return;
    }
    if (!(events & (EPOLLIN | EPOLLRDHUP))) return;
    char bytes[256];
    ssize_t got = recv(slot->fd, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        fail(worker, index, got == 0 ? &worker->failures.closed : &worker->failures.reset);
        return;
    }
    slot->got += (uint16_t)got;
    if (slot->state == AWAITING && slot->got >= worker->options->reply) answered(worker, index);
}

// Starts the connections that are due. Returns the moment of the next one.
static uint64_t arrivals(struct worker *worker, uint64_t now) {
    while (worker->unused_count > 0) {
        uint64_t due = now;
        if (worker->interval > 0) {
            due = due_moment(worker, worker->scheduled);
            if (due > now) return due;
        }
        uint32_t index = worker->unused[worker->unused_count - 1];
        worker->unused_count--;
        if (!start(worker, index, due)) {
            worker->unused[worker->unused_count++] = index;
            return now + SECOND / 1000;
        }
        worker->scheduled++;
        if (worker->interval == 0) now = now_ns();
    }
    return now + SECOND / 10;
}

// Sends the messages that are due. Returns the moment of the next one.
static uint64_t messages(struct worker *worker, uint64_t now) {
    if (worker->options->mode == HOLD) return now + SECOND / 10;
    if (worker->interval == 0) {
        for (; worker->scheduled < (uint64_t)worker->connections; worker->scheduled++) {
            struct slot *slot = &worker->slots[worker->scheduled];
            slot->due = now_ns();
            if (slot->state == IDLE) send_byte(worker, (uint32_t)worker->scheduled);
        }
        return now + SECOND / 10;
    }
    for (;; worker->scheduled++) {
        uint64_t due = due_moment(worker, worker->scheduled);
        if (due > now) return due;
        uint32_t index = (uint32_t)(worker->scheduled % (uint64_t)worker->connections);
        struct slot *slot = &worker->slots[index];
        if (slot->state == AWAITING) {
            slot->owed++;
        } else if (slot->state == IDLE) {
            slot->due = due;
            send_byte(worker, index);
        }
    }
}

// Opens the connections of `messages` and `hold`, a few at a time.
static uint64_t opening(struct worker *worker, uint64_t now) {
    while (worker->pending < OPENING_MAX && worker->scheduled < (uint64_t)worker->connections) {
        if (!start(worker, (uint32_t)worker->scheduled, now)) worker->dead++;
        worker->scheduled++;
    }
    if (!worker->finished_opening && worker->opened + worker->dead >= worker->connections) {
        worker->finished_opening = true;
        __atomic_add_fetch(&workers_ready, 1, __ATOMIC_SEQ_CST);
        worker->scheduled = 0;
        return now + SECOND / 1000;
    }
    return now + SECOND / 1000;
}

static uint64_t what_is_due(struct worker *worker, uint64_t now) {
    if (phase == DRAINING) return now + SECOND / 100;
    if (worker->options->mode == CHURN) return phase == OPENING ? now + SECOND / 1000 : arrivals(worker, now);
    return phase == OPENING ? worker->finished_opening ? now + SECOND / 1000 : opening(worker, now)
                            : messages(worker, now);
}

static void *run(void *argument) {
    struct worker *worker = argument;
    (void)unshare(CLONE_FILES);
    if (dup2(0, 15000) == 15000) close(15000);
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); // by default every wait is 50 us late
    worker->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (worker->epoll < 0) die("epoll_create1");
    if (worker->options->mode == CHURN) __atomic_add_fetch(&workers_ready, 1, __ATOMIC_SEQ_CST);

    uint64_t look = 0; // the moment of the next look at the schedule
    struct epoll_event events[EVENTS];
    for (;;) {
        uint64_t now = now_ns();
        if (phase == DRAINING && (worker->pending == 0 || now > drain_until)) break;
        if (worker->options->tick == 0 || now >= look) {
            look = what_is_due(worker, now);
            if (look < now + worker->options->tick) look = now + worker->options->tick;
        }
        uint64_t wait = look > now ? look - now : 0;
        struct timespec timeout = {.tv_sec = (time_t)(wait / SECOND), .tv_nsec = (long)(wait % SECOND)};
        int count = epoll_pwait2(worker->epoll, events, EVENTS, &timeout, NULL);
        for (int i = 0; i < count; i++) on_event(worker, events[i].data.u32, events[i].events);
    }
    for (int i = 0; i < worker->connections; i++) {
        struct slot *slot = &worker->slots[i];
        if (slot->state == CONNECTING || slot->state == AWAITING) worker->failures.unanswered++;
        if (slot->state != UNUSED) close(slot->fd);
    }
    return NULL;
}

static uint64_t done_by_all(const struct worker *workers, int threads) {
    uint64_t done = 0;
    for (int i = 0; i < threads; i++) done += workers[i].done;
    return done;
}

static struct options parse(int count, char **arguments) {
    struct options options = {
        .threads = 1, .connections = 100, .reply = 2, .sources = 2, .warmup = 1, .seconds = 3};
    if (count < 2) fprintf(stderr, "client: churn, messages or hold\n"), exit(2);
    options.mode_name = arguments[1];
    if (!strcmp(arguments[1], "churn")) options.mode = CHURN;
    else if (!strcmp(arguments[1], "messages")) options.mode = MESSAGES;
    else if (!strcmp(arguments[1], "hold")) options.mode = HOLD;
    else fprintf(stderr, "client: churn, messages or hold, not %s\n", arguments[1]), exit(2);
    for (int i = 2; i + 1 < count; i += 2) {
        const char *name = arguments[i], *value = arguments[i + 1];
        if (!strcmp(name, "--port")) options.port = atoi(value);
        else if (!strcmp(name, "--threads")) options.threads = atoi(value);
        else if (!strcmp(name, "--connections")) options.connections = atoi(value);
        else if (!strcmp(name, "--reply")) options.reply = atoi(value);
        else if (!strcmp(name, "--sources")) options.sources = atoi(value);
        else if (!strcmp(name, "--tick")) options.tick = (uint64_t)atoi(value) * 1000;
        else if (!strcmp(name, "--rate")) options.rate = atof(value);
        else if (!strcmp(name, "--warmup")) options.warmup = atof(value);
        else if (!strcmp(name, "--seconds")) options.seconds = atof(value);
        else fprintf(stderr, "client: unknown argument %s\n", name), exit(2);
    }
    if (options.port <= 0 || options.threads < 1 || options.threads > THREADS_MAX ||
        options.connections < options.threads || options.sources < 1 || options.sources > SOURCES_MAX)
        fprintf(stderr, "client: --port; threads 1-%d; connections >= threads; sources 1-%d\n",
                THREADS_MAX, SOURCES_MAX),
            exit(2);
    return options;
}

static void report(const struct options *options, const struct worker *workers, uint64_t done,
                   double seconds, uint64_t cpu_us) {
    static struct histogram latency;
    struct failures failures = {0};
    int opened = 0;
    for (int i = 0; i < options->threads; i++) {
        merge(&latency, &workers[i].latency);
        failures.connecting += workers[i].failures.connecting;
        failures.reset += workers[i].failures.reset;
        failures.closed += workers[i].failures.closed;
        failures.unanswered += workers[i].failures.unanswered;
        opened += workers[i].opened;
    }
    printf("{\"mode\":\"%s\",\"offered\":%.1f,\"seconds\":%.6f,\"done\":%lu,\"rate\":%.1f,"
           "\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,\"max_us\":%.1f,"
           "\"errors\":{\"connecting\":%lu,\"reset\":%lu,\"closed\":%lu,\"unanswered\":%lu},"
           "\"opened\":%d,\"cpu_us\":%lu,\"total_done\":%lu,\"total_cpu_us\":%lu}\n",
           options->mode_name, options->rate, seconds, done, (double)done / seconds,
           (double)quantile(&latency, 0.5) / 1e3, (double)quantile(&latency, 0.99) / 1e3,
           (double)quantile(&latency, 0.999) / 1e3, (double)latency.largest / 1e3,
           failures.connecting, failures.reset, failures.closed, failures.unanswered, opened, cpu_us,
           done_by_all(workers, options->threads), own_cpu_us());
}

static void prepare(struct worker *worker, const struct options *options, int index) {
    int share = options->connections / options->threads;
    worker->options = options;
    worker->index = index;
    worker->connections = share + (index < options->connections % options->threads);
    worker->interval = options->rate > 0 ? 1e9 * options->threads / options->rate : 0;
    worker->slots = calloc((size_t)worker->connections, sizeof *worker->slots);
    worker->unused = calloc((size_t)worker->connections, sizeof *worker->unused);
    if (!worker->slots || !worker->unused) die("calloc");
    for (int i = worker->connections; i-- > 0;)
        worker->unused[worker->unused_count++] = (uint32_t)i;
}

int main(int count, char **arguments) {
    struct options options = parse(count, arguments);
    static struct worker workers[THREADS_MAX];
    for (int i = 0; i < options.threads; i++) {
        prepare(&workers[i], &options, i);
        if (pthread_create(&workers[i].thread, NULL, run, &workers[i])) die("pthread_create");
    }
    while (__atomic_load_n(&workers_ready, __ATOMIC_SEQ_CST) < options.threads) sleep_for(0.001);

    began = now_ns();
    phase = WARMING;
    sleep_for(options.warmup);
    announce("start");
    phase = MEASURING;
    uint64_t start_ns = now_ns(), start_done = done_by_all(workers, options.threads);
    uint64_t start_cpu = own_cpu_us();
    sleep_for(options.seconds);
    uint64_t end_ns = now_ns(), end_done = done_by_all(workers, options.threads);
    uint64_t end_cpu = own_cpu_us();
    announce("end");
    drain_until = now_ns() + SECOND;
    phase = DRAINING;
    for (int i = 0; i < options.threads; i++) pthread_join(workers[i].thread, NULL);
    report(&options, workers, end_done - start_done, (double)(end_ns - start_ns) / 1e9,
           end_cpu - start_cpu);
    return 0;
}
