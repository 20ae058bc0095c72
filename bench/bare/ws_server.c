// A bare WebSocket chat: the cost of the kernel's TCP with next to no program on top.
//
// Like in server.c, every thread has its own SO_REUSEPORT listener, epoll and fd table. A
// connection is an fd, a byte (how much of the empty line at the end of the request has arrived)
// and an index in the list of open connections. The response to a request is a fixed 101, which is
// right for the only key that the benchmark's client sends. A message goes to all connections, the
// sender included, in a plain loop of send(). On SIGTERM the server prints a line of JSON.
//
//   ws_server --port P [--threads N] [--backlog N] [--any-key] [--tell N]
//
// With --any-key the server computes the response to the key. Generators under test need this: they
// choose their own keys. The server closes a connection that sends a message in pieces or of more
// than 125 bytes, and counts it as failed. With --tell it prints {"event":"reached"} after this many
// responses.

#define _GNU_SOURCE
#include "accept_key.h"
#include "listener.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EVENTS = 256, THREADS_MAX = 64, FDS_MAX = 1 << 16, MAIL_MAX = 64 };
enum { FRAME_MAX = 2 + 125, OPEN = 4 }; // a frame's head and its longest payload; `seen` of an upgraded connection

struct options {
    int port, threads, backlog;
    uint64_t tell;
    bool any_key;
};

struct frame {
    uint8_t bytes[FRAME_MAX];
    uint8_t length;
};

struct worker {
    pthread_t thread;
    const struct options *options;
    uint8_t *seen;    // by fd: 0-3 bytes of the empty line, or OPEN
    uint32_t *places; // by fd: its place in `open`
    int *open, open_count, epoll;
    int wake; // an eventfd: there is mail
    pthread_mutex_t mail_lock;
    struct frame mail[MAIL_MAX];
    int mail_count;
    volatile uint64_t accepted, upgraded, messages, sent, unsent, closed, failed;
} __attribute__((aligned(128)));

static struct worker workers[THREADS_MAX];

// Accepts up to `streak` connections.
static void accept_some(struct worker *worker, int listener, int *streak) {
    int taken = 0;
    while (taken < *streak) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno != EAGAIN && errno != ECONNABORTED) worker->failed++;
            break;
        }
        taken++;
        struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.fd = fd};
        if (fd >= FDS_MAX || epoll_ctl(worker->epoll, EPOLL_CTL_ADD, fd, &event)) {
            worker->failed++;
            close(fd);
            continue;
        }
        worker->seen[fd] = 0;
    }
    worker->accepted += (uint64_t)taken;
    *streak = next_streak(*streak, taken);
}

static void end(struct worker *worker, int fd) {
    if (worker->seen[fd] == OPEN) {
        int last = worker->open[--worker->open_count];
        worker->open[worker->places[fd]] = last;
        worker->places[last] = worker->places[fd];
    }
    close(fd);
    worker->closed++;
}

// Sends a message to all connections: the reference for all broadcasts. A full socket buffer loses
// the message; a client that reads never causes that.
static void send_to_all(struct worker *worker, const struct frame *frame) {
    for (int i = 0; i < worker->open_count; i++) {
        if (send(worker->open[i], frame->bytes, frame->length, MSG_NOSIGNAL) == frame->length) worker->sent++;
        else worker->unsent++;
    }
}

static void broadcast(struct worker *worker, const struct frame *frame) {
    worker->messages++;
    for (int i = 0; i < worker->options->threads; i++) {
        struct worker *other = &workers[i];
        if (other == worker) continue;
        pthread_mutex_lock(&other->mail_lock);
        if (other->mail_count < MAIL_MAX) other->mail[other->mail_count++] = *frame;
        else worker->failed++;
        pthread_mutex_unlock(&other->mail_lock);
        if (eventfd_write(other->wake, 1)) worker->failed++;
    }
    send_to_all(worker, frame);
}

static void read_mail(struct worker *worker) {
    eventfd_t woken;
    (void)eventfd_read(worker->wake, &woken);
    pthread_mutex_lock(&worker->mail_lock);
    int count = worker->mail_count;
    struct frame frames[MAIL_MAX];
    memcpy(frames, worker->mail, (size_t)count * sizeof *frames);
    worker->mail_count = 0;
    pthread_mutex_unlock(&worker->mail_lock);
    for (int i = 0; i < count; i++) send_to_all(worker, &frames[i]);
}

// Processes complete, short frames from a client. Returns false if the connection must close.
static bool take_frames(struct worker *worker, const uint8_t *bytes, size_t count) {
    while (count > 0) {
        if (count < 6 || !(bytes[1] & 0x80) || (bytes[1] & 0x7f) > 125) goto wrong;
        uint8_t opcode = bytes[0] & 0x0f, length = bytes[1] & 0x7f;
        if (count < 6u + length) goto wrong;
        if (opcode == 8) return false;
        if (opcode == 1 || opcode == 2) {
            struct frame frame = {.length = (uint8_t)(2 + length)};
            frame.bytes[0] = bytes[0];
            frame.bytes[1] = length;
            for (int i = 0; i < length; i++) frame.bytes[2 + i] = bytes[6 + i] ^ bytes[2 + i % 4];
            broadcast(worker, &frame);
        }
        bytes += 6 + length;
        count -= 6u + length;
    }
    return true;
wrong:
    worker->failed++;
    return false;
}

static bool upgrade(struct worker *worker, int fd, const char *request, size_t length) {
    static const char HEAD[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                               "Connection: Upgrade\r\nSec-WebSocket-Accept: ";
    static const char FIXED[] = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="; // for the key of RFC 6455's own example
    enum { HEAD_BYTES = sizeof HEAD - 1, ANSWER_BYTES = HEAD_BYTES + ACCEPT_BYTES + 4 };
    char answer[ANSWER_BYTES];
    memcpy(answer, HEAD, HEAD_BYTES);
    memcpy(answer + HEAD_BYTES, FIXED, ACCEPT_BYTES);
    memcpy(answer + HEAD_BYTES + ACCEPT_BYTES, "\r\n\r\n", 4);
    if (worker->options->any_key) {
        static const char NAME[] = "\r\nsec-websocket-key: ";
        const char *line = request;
        while (line + sizeof NAME - 1 + KEY_BYTES <= request + length &&
               strncasecmp(line, NAME, sizeof NAME - 1))
            line++;
        if (line + sizeof NAME - 1 + KEY_BYTES > request + length) return false;
        accept_key(line + sizeof NAME - 1, answer + HEAD_BYTES);
    }
    if (send(fd, answer, ANSWER_BYTES, MSG_NOSIGNAL) != ANSWER_BYTES) return false;
    worker->seen[fd] = OPEN;
    worker->places[fd] = (uint32_t)worker->open_count;
    worker->open[worker->open_count++] = fd;
    worker->upgraded++;
    return true;
}

// Returns the number of bytes that belong to the request; `seen` tracks the empty line over several
// reads.
static size_t request_part(uint8_t *seen, const char *bytes, size_t count) {
    static const char EMPTY_LINE[] = "\r\n\r\n";
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == EMPTY_LINE[*seen]) (*seen)++;
        else *seen = bytes[i] == '\r';
        if (*seen == OPEN) return i + 1;
    }
    return count;
}

static bool take(struct worker *worker, int fd, const char *bytes, size_t count) {
    size_t used = 0;
    if (worker->seen[fd] < OPEN) {
        used = request_part(&worker->seen[fd], bytes, count);
        if (worker->seen[fd] < OPEN) return true;
        worker->seen[fd] = 0; // until it is in the list
        if (!upgrade(worker, fd, bytes, used)) {
            worker->failed++;
            return false;
        }
    }
    return take_frames(worker, (const uint8_t *)bytes + used, count - used);
}

static void serve(struct worker *worker, int fd, uint32_t events) {
    char bytes[4096];
    for (;;) {
        ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        if (got > 0) {
            if (!take(worker, fd, bytes, (size_t)got)) break;
            if (got == (ssize_t)sizeof bytes) continue;
            if (!(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))) return;
            break;
        }
        if (got < 0 && errno == EAGAIN) return;
        break;
    }
    end(worker, fd);
}

static void *run(void *argument) {
    struct worker *worker = argument;
    (void)unshare(CLONE_FILES);
    if (dup2(0, 15000) == 15000) close(15000);
    worker->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (worker->epoll < 0) die("epoll_create1");
    int accepting = listener(worker->options->port, worker->options->backlog, true);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = accepting};
    if (epoll_ctl(worker->epoll, EPOLL_CTL_ADD, accepting, &event)) die("epoll_ctl");
    event.data.fd = worker->wake;
    if (epoll_ctl(worker->epoll, EPOLL_CTL_ADD, worker->wake, &event)) die("epoll_ctl");

    int streak = 1;
    struct epoll_event events[EVENTS];
    for (;;) {
        int count = epoll_wait(worker->epoll, events, EVENTS, -1);
        bool listener_ready = false;
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == accepting) {
                accept_some(worker, accepting, &streak);
                listener_ready = true;
            } else if (fd == worker->wake) {
                read_mail(worker);
            } else {
                serve(worker, fd, events[i].events);
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
        if (!strcmp(name, "--any-key")) options.any_key = true;
        else if (!strcmp(name, "--port") && i + 1 < count) options.port = atoi(arguments[++i]);
        else if (!strcmp(name, "--threads") && i + 1 < count) options.threads = atoi(arguments[++i]);
        else if (!strcmp(name, "--backlog") && i + 1 < count) options.backlog = atoi(arguments[++i]);
        else if (!strcmp(name, "--tell") && i + 1 < count) options.tell = strtoull(arguments[++i], NULL, 10);
        else fprintf(stderr, "ws_server: unknown argument %s\n", name), exit(2);
    }
    if (options.port <= 0 || options.threads < 1 || options.threads > THREADS_MAX)
        fprintf(stderr, "ws_server: --port, and --threads from 1 to %d\n", THREADS_MAX), exit(2);
    return options;
}

// Make the eventfds before any thread leaves the common fd table, so that all can write to them.
static void prepare(struct worker *worker, const struct options *options) {
    worker->options = options;
    worker->seen = calloc(FDS_MAX, sizeof *worker->seen);
    worker->places = calloc(FDS_MAX, sizeof *worker->places);
    worker->open = calloc(FDS_MAX, sizeof *worker->open);
    worker->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pthread_mutex_init(&worker->mail_lock, NULL);
    if (!worker->seen || !worker->places || !worker->open || worker->wake < 0) die("prepare");
}

// Waits for a signal.
static void await_upgrades(const struct options *options, const sigset_t *stop) {
    const struct timespec look = {.tv_nsec = 5000000};
    for (bool told = false; sigtimedwait(stop, NULL, &look) < 0;) {
        uint64_t upgraded = 0;
        for (int i = 0; i < options->threads; i++) upgraded += workers[i].upgraded;
        if (told || upgraded < options->tell) continue;
        told = true;
        puts("{\"event\":\"reached\"}");
        fflush(stdout);
    }
}

int main(int count, char **arguments) {
    struct options options = parse(count, arguments);
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    for (int i = 0; i < options.threads; i++) prepare(&workers[i], &options);
    for (int i = 0; i < options.threads; i++)
        if (pthread_create(&workers[i].thread, NULL, run, &workers[i])) die("pthread_create");
    if (options.tell > 0) await_upgrades(&options, &stop);
    else sigwait(&stop, &(int){0});

    struct worker sum = {0};
    for (int i = 0; i < options.threads; i++) {
        sum.accepted += workers[i].accepted;
        sum.upgraded += workers[i].upgraded;
        sum.messages += workers[i].messages;
        sum.sent += workers[i].sent;
        sum.unsent += workers[i].unsent;
        sum.closed += workers[i].closed;
        sum.failed += workers[i].failed;
    }
    printf("{\"accepted\":%lu,\"upgraded\":%lu,\"messages\":%lu,\"sent\":%lu,\"unsent\":%lu,\"closed\":%lu,"
           "\"failed\":%lu}\n",
           sum.accepted, sum.upgraded, sum.messages, sum.sent, sum.unsent, sum.closed, sum.failed);
    return 0;
}
