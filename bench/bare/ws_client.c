// The load generator of every WebSocket row of the benchmark. It is also the bare client with which
// generators are compared.
//
//   ws_client MODE --port P [--threads N] [--connections N] [--warm N] [--rate R] [--in-flight N]
//                  [--hold S] [--seconds S] [--payload BYTES] [--sources N]
//
//   open       The client opens `warm` connections. Then the window begins; it ends when all
//              connections are open. Without --rate, `in-flight` connects are under way at all
//              times. With --rate, arrivals are even. Then the client leaves the connections alone
//              for `hold` seconds.
//   broadcast  The client opens all connections. The window begins after two messages that do not
//              count. One connection sends a message of `payload` bytes. When all connections have
//              received it, the sender included, it sends the next, for `seconds` at least.
//
// A connection counts as open when the 101 arrives. Its latency counts from its intended moment
// (without a rate: from its start). The latency of a delivery counts from the moment at which the
// message was sent. The client compares every byte of every message with the sent one.
//
// The client prints {"event":"start"} and {"event":"end"} around the window, {"event":"held"} after
// the hold, and then a line of JSON. At the end it resets its connections, so that the next run
// finds no TIME_WAIT. The key is always that of RFC 6455's example: ws_server.c answers no other.

#define _GNU_SOURCE
#include "clock.h"
#include "histogram.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 256, THREADS_MAX = 16, SOURCES_MAX = 250, HEAD_MAX = 1024, PAYLOAD_MAX = 125 };
enum { WARM_MESSAGES = 2 };
enum { MASK_BYTES = 4, FRAME_MAX = 2 + MASK_BYTES + PAYLOAD_MAX };
enum mode { OPEN, BROADCAST };
enum state { UNUSED, CONNECTING, UPGRADING, ESTABLISHED, FAILED };
enum phase { WARMING, OPENING, HOLDING, SENDING, ENDING };
static const int MESSAGE_TIMEOUT_S = 15, OPENING_TIMEOUT_S = 60;
static const double LOOK_S = 0.005; // time between the main thread's looks at a broadcast
static const char KEY[] = "dGhlIHNhbXBsZSBub25jZQ==", ACCEPT[] = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

struct options {
    enum mode mode;
    const char *mode_name;
    int port, threads, connections, warm, in_flight, payload, sources;
    double rate, hold, seconds;
};

// `got` counts bytes of the response head, then of the current message. `head` exists only while a
// response is incomplete.
struct slot {
    int fd;
    uint8_t state;
    uint16_t got;
    uint64_t due;
    char *head;
};

struct failures {
    uint64_t connecting, reset, closed, unanswered, wrong;
};

struct worker {
    pthread_t thread;
    const struct options *options;
    int index, epoll, wake, connections, warm, in_flight;
    struct slot *slots;
    uint32_t source;
    int begun, pending;
    uint32_t received;  // of the current message
    volatile int whole; // the last message that all connections of this worker have received
    volatile int established, failed;
    enum phase told; // the phase that follows the last one in which it settled
    struct failures failures;
    struct histogram latency;
} __attribute__((aligned(128)));

// The current message. The first worker writes it before it sends; the others read it when they
// receive.
static struct {
    uint8_t frame[2 + PAYLOAD_MAX];
    volatile uint64_t sent_at, last_at;
    volatile int number; // counts from 1; 0 before the first message
    int complete;        // workers that have received it on all of their connections
} message;

static struct worker workers[THREADS_MAX];
static volatile enum phase phase = WARMING;
static volatile uint64_t began; // the moment from which the schedule of arrivals counts
static char request[512];
static int request_length;
static sem_t settled; // each worker posts in each phase in which it opens connections
static struct histogram lasts; // owned by the first worker
static volatile bool counting; // deliveries count
static volatile bool enough;   // no more messages are wanted
static volatile bool stopped;  // no message is in flight

static bool begin(struct worker *worker, uint64_t due) {
    uint32_t index = (uint32_t)worker->begun++;
    struct slot *slot = &worker->slots[index];
    slot->state = FAILED;
    slot->due = due;
    slot->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (slot->fd < 0) goto failed;
    int on = 1;
    setsockopt(slot->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    uint32_t address = 0x7f0a0001u + ((uint32_t)worker->index << 16) +
                       worker->source++ % (uint32_t)worker->options->sources;
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    if (bind(slot->fd, (struct sockaddr *)&from, sizeof from)) goto failed;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)worker->options->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(slot->fd, (struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS) goto failed;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.u32 = index};
    if (epoll_ctl(worker->epoll, EPOLL_CTL_ADD, slot->fd, &event)) goto failed;
    slot->state = CONNECTING;
    worker->pending++;
    return true;
failed:
    if (slot->fd >= 0) close(slot->fd);
    worker->failures.connecting++;
    worker->failed++;
    return false;
}

static void fail(struct worker *worker, struct slot *slot, uint64_t *kind) {
    (*kind)++;
    if (slot->state == ESTABLISHED) worker->established--;
    else worker->pending--;
    worker->failed++;
    slot->state = FAILED;
    close(slot->fd);
}

// Sends the next message, on the first connection of the first worker. A client must mask its
// frames.
static void send_next(struct worker *worker) {
    const struct options *options = worker->options;
    char text[PAYLOAD_MAX + 1];
    int number = message.number + 1;
    int used = snprintf(text, sizeof text, "broadcast %08d ", number);
    memset(text + used, '.', sizeof text - (size_t)used);
    message.frame[0] = 0x81;
    message.frame[1] = (uint8_t)options->payload;
    memcpy(message.frame + 2, text, (size_t)options->payload);
    uint8_t frame[FRAME_MAX] = {0x81, (uint8_t)(0x80 | options->payload), 0x37, 0xfa, 0x21, 0x3d};
    for (int i = 0; i < options->payload; i++)
        frame[6 + i] = (uint8_t)text[i] ^ frame[2 + i % MASK_BYTES];
    __atomic_store_n(&message.complete, 0, __ATOMIC_SEQ_CST);
    message.last_at = 0;
    message.sent_at = now_ns();
    __atomic_store_n(&message.number, number, __ATOMIC_SEQ_CST);
    ssize_t length = 6 + options->payload;
    if (send(worker->slots[0].fd, frame, (size_t)length, MSG_NOSIGNAL) != length) worker->failures.reset++;
}

// Handles a message that all connections have received.
static void on_complete(struct worker *worker) {
    eventfd_t ignored;
    if (eventfd_read(worker->wake, &ignored)) return;
    if (phase != SENDING) return;
    if (message.number > WARM_MESSAGES) record(&lasts, message.last_at - message.sent_at);
    if (message.number == WARM_MESSAGES && !counting) return; // the main thread opens the window first
    if (enough) stopped = true;
    else send_next(worker);
}

static void delivered(struct worker *worker) {
    uint64_t now = now_ns();
    if (counting) record(&worker->latency, now - message.sent_at);
    if (++worker->received < (uint32_t)worker->connections) return;
    worker->received = 0;
    worker->whole = message.number;
    uint64_t last = message.last_at;
    while (last < now && !__atomic_compare_exchange_n(&message.last_at, &last, now, false, __ATOMIC_SEQ_CST,
                                                      __ATOMIC_SEQ_CST)) continue;
    if (__atomic_add_fetch(&message.complete, 1, __ATOMIC_SEQ_CST) == worker->options->threads)
        (void)eventfd_write(workers[0].wake, 1);
}

// Checks bytes after the upgrade: they must be the current message, exactly as it was sent. Returns
// false if they differ.
static bool take_message(struct worker *worker, struct slot *slot, const char *bytes, size_t count) {
    size_t length = 2 + (size_t)worker->options->payload;
    while (count > 0) {
        size_t part = length - slot->got < count ? length - slot->got : count;
        if (message.number == 0 || memcmp(bytes, message.frame + slot->got, part)) return false;
        slot->got += (uint16_t)part;
        bytes += part;
        count -= part;
        if (slot->got == length) {
            slot->got = 0;
            delivered(worker);
        }
    }
    return true;
}

static bool is_upgrade(const char *head, size_t length) {
    return !strncmp(head, "HTTP/1.1 101 ", 13) && memmem(head, length, ACCEPT, strlen(ACCEPT));
}

// Handles the response, usually in one piece. Returns false if it is not the expected one.
static bool take_answer(struct worker *worker, struct slot *slot, const char *bytes, size_t count) {
    if (slot->got + count > HEAD_MAX) return false;
    const char *head = bytes;
    if (slot->head) {
        memcpy(slot->head + slot->got, bytes, count);
        head = slot->head;
    }
    size_t length = slot->got + count;
    const char *end = memmem(head, length, "\r\n\r\n", 4);
    if (!end) {
        if (!slot->head && !(slot->head = calloc(1, HEAD_MAX))) die("calloc");
        memcpy(slot->head, head, length);
        slot->got = (uint16_t)length;
        return true;
    }
    size_t used = (size_t)(end + 4 - head);
    if (!is_upgrade(head, used)) return false;
    if (phase == OPENING) {
        uint64_t now = now_ns();
        record(&worker->latency, now > slot->due ? now - slot->due : 0);
    }
    slot->state = ESTABLISHED;
    slot->got = 0;
    worker->pending--;
    worker->established++;
    bool good = used == length || take_message(worker, slot, head + used, length - used);
    free(slot->head);
    slot->head = NULL;
    return good;
}

static void on_event(struct worker *worker, uint32_t index, uint32_t events) {
    struct slot *slot = &worker->slots[index];
    if (slot->state == FAILED || phase == ENDING) return;
    if (slot->state == CONNECTING) {
        if (events & (EPOLLERR | EPOLLHUP)) {
            fail(worker, slot, &worker->failures.connecting);
        } else if (events & EPOLLOUT) {
            slot->state = UPGRADING;
            slot->got = 0;
            if (send(slot->fd, request, (size_t)request_length, MSG_NOSIGNAL) != request_length)
                fail(worker, slot, &worker->failures.reset);
        }
        return;
    }
    if (!(events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP))) return;
    char bytes[2048];
    ssize_t got = recv(slot->fd, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        fail(worker, slot, got == 0 ? &worker->failures.closed : &worker->failures.reset);
        return;
    }
    bool good = slot->state == UPGRADING ? take_answer(worker, slot, bytes, (size_t)got)
                                         : take_message(worker, slot, bytes, (size_t)got);
    if (!good) fail(worker, slot, &worker->failures.wrong);
}

static void tell_when_settled(struct worker *worker, int wanted) {
    if (worker->told > phase || worker->established + worker->failed < wanted) return;
    worker->told = phase + 1;
    sem_post(&settled);
}

// Starts the connections that are due. Returns the moment of the next check.
static uint64_t arrivals(struct worker *worker, uint64_t now) {
    const struct options *options = worker->options;
    uint64_t idle = now + (phase == WARMING ? SECOND / 1000 : SECOND / 100); // no event announces the window
    if (phase > OPENING || (phase == WARMING && options->warm == 0)) return idle;
    int wanted = phase == WARMING ? worker->warm : worker->connections;
    tell_when_settled(worker, wanted);
    bool paced = phase == OPENING && options->rate > 0;
    while (worker->begun < wanted && worker->pending < worker->in_flight) {
        uint64_t due = now;
        if (paced) {
            double number = (double)(worker->begun - worker->warm) + (double)worker->index / options->threads;
            due = began + (uint64_t)(number * options->threads / options->rate * 1e9);
            if (due > now) return due;
        }
        if (!begin(worker, due)) return now + SECOND / 1000;
        if (!paced) now = now_ns();
    }
    return idle;
}

static void *run(void *argument) {
    struct worker *worker = argument;
    (void)unshare(CLONE_FILES);
    if (dup2(0, 15000) == 15000) close(15000);
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    worker->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (worker->epoll < 0) die("epoll_create1");
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = UINT32_MAX};
    if (epoll_ctl(worker->epoll, EPOLL_CTL_ADD, worker->wake, &event)) die("epoll_ctl");
    struct epoll_event events[EVENTS];
    while (phase != ENDING) {
        uint64_t now = now_ns(), look = arrivals(worker, now);
        uint64_t wait = look > now ? look - now : 0;
        struct timespec timeout = {.tv_sec = (time_t)(wait / SECOND), .tv_nsec = (long)(wait % SECOND)};
        int count = epoll_pwait2(worker->epoll, events, EVENTS, &timeout, NULL);
        for (int i = 0; i < count; i++) {
            if (events[i].data.u32 == UINT32_MAX) on_complete(worker);
            else on_event(worker, events[i].data.u32, events[i].events);
        }
    }
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    for (int i = 0; i < worker->begun; i++) {
        struct slot *slot = &worker->slots[i];
        if (slot->state == FAILED) continue;
        if (slot->state != ESTABLISHED) worker->failures.unanswered++;
        setsockopt(slot->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(slot->fd);
    }
    return NULL;
}

static int sum_established(void) {
    int sum = 0;
    for (int i = 0; i < THREADS_MAX; i++) sum += workers[i].established;
    return sum;
}

// Waits until all connections of this phase are open or have failed. Polling would be a large part
// of a client's cost.
static void await_settled(const struct options *options) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += OPENING_TIMEOUT_S;
    for (int i = 0; i < options->threads; i++)
        while (sem_clockwait(&settled, CLOCK_MONOTONIC, &until) && errno == EINTR) continue;
}

// Waits until a message has reached all connections. Returns the number of missing deliveries.
static int await_message(int number) {
    int missing = 0;
    do {
        missing = 0;
        for (int i = 0; i < workers[0].options->threads; i++)
            if (workers[i].whole < number) missing += workers[i].connections - (int)workers[i].received;
        if (missing == 0) return 0;
        sleep_for(LOOK_S);
    } while (now_ns() < message.sent_at + (uint64_t)MESSAGE_TIMEOUT_S * SECOND);
    return missing;
}

struct window {
    uint64_t start_ns, end_ns, start_cpu_us, end_cpu_us;
};

static void open_window(struct window *window) {
    announce("start");
    window->start_cpu_us = own_cpu_us();
    window->start_ns = now_ns();
}

static void close_window(struct window *window) {
    window->end_ns = now_ns();
    window->end_cpu_us = own_cpu_us();
    announce("end");
}

// Opens all connections. Returns the number that were opened within the window.
static uint64_t open_all(const struct options *options, struct window *window) {
    if (options->warm > 0) await_settled(options);
    if (options->warm > 0) sleep_for(0.5); // work that the server delays is not part of the window
    int before = sum_established();
    if (options->mode == OPEN) open_window(window);
    began = now_ns();
    phase = OPENING;
    await_settled(options);
    if (options->mode == OPEN) close_window(window);
    phase = HOLDING;
    return (uint64_t)(sum_established() - before);
}

// Sends messages for a while. Returns the number of deliveries within the window.
static uint64_t broadcast(const struct options *options, struct window *window) {
    int opened = sum_established();
    if (opened < options->connections) {
        fprintf(stderr, "ws_client: only %d of %d connections are open\n", opened, options->connections);
        exit(3);
    }
    phase = SENDING;
    (void)eventfd_write(workers[0].wake, 1);
    while (message.number == 0) sleep_for(LOOK_S);
    int missing = 0;
    for (int number = 1; number <= WARM_MESSAGES && missing == 0; number++) missing = await_message(number);
    uint64_t deliveries = 0;
    if (missing == 0) {
        sleep_for(0.1);
        open_window(window);
        counting = true;
        (void)eventfd_write(workers[0].wake, 1);
        uint64_t until = window->start_ns + (uint64_t)(options->seconds * 1e9);
        while (message.number == WARM_MESSAGES) sleep_for(LOOK_S);
        while (missing == 0 && now_ns() < until) {
            missing = await_message(message.number - 1);
            sleep_for(LOOK_S);
        }
        enough = true;
        while (missing == 0 && !stopped) {
            missing = await_message(message.number);
            sleep_for(LOOK_S);
        }
        close_window(window);
        window->end_ns = message.last_at > window->start_ns ? message.last_at : window->end_ns;
        deliveries = (uint64_t)(message.number - WARM_MESSAGES) * (uint64_t)opened - (uint64_t)missing;
    }
    workers[0].failures.unanswered += (uint64_t)missing;
    return deliveries;
}

static struct options parse(int count, char **arguments) {
    struct options options = {.threads = 2, .connections = 1000, .warm = 0, .in_flight = 256,
                              .payload = 64, .sources = 2, .seconds = 2};
    if (count < 2) fprintf(stderr, "ws_client: open or broadcast\n"), exit(2);
    options.mode_name = arguments[1];
    if (!strcmp(arguments[1], "open")) options.mode = OPEN;
    else if (!strcmp(arguments[1], "broadcast")) options.mode = BROADCAST;
    else fprintf(stderr, "ws_client: open or broadcast, not %s\n", arguments[1]), exit(2);
    for (int i = 2; i + 1 < count; i += 2) {
        const char *name = arguments[i], *value = arguments[i + 1];
        if (!strcmp(name, "--port")) options.port = atoi(value);
        else if (!strcmp(name, "--threads")) options.threads = atoi(value);
        else if (!strcmp(name, "--connections")) options.connections = atoi(value);
        else if (!strcmp(name, "--warm")) options.warm = atoi(value);
        else if (!strcmp(name, "--in-flight")) options.in_flight = atoi(value);
        else if (!strcmp(name, "--payload")) options.payload = atoi(value);
        else if (!strcmp(name, "--sources")) options.sources = atoi(value);
        else if (!strcmp(name, "--rate")) options.rate = atof(value);
        else if (!strcmp(name, "--hold")) options.hold = atof(value);
        else if (!strcmp(name, "--seconds")) options.seconds = atof(value);
        else fprintf(stderr, "ws_client: unknown argument %s\n", name), exit(2);
    }
    if (options.port <= 0 || options.threads < 1 || options.threads > THREADS_MAX ||
        options.connections < options.threads || options.warm > options.connections ||
        options.in_flight < options.threads || options.payload < 20 || options.payload > PAYLOAD_MAX ||
        options.sources < 1 || options.sources > SOURCES_MAX)
        fprintf(stderr, "ws_client: --port; threads 1-%d; connections >= threads, warm; in-flight >= threads; "
                        "payload 20-%d; sources 1-%d\n", THREADS_MAX, PAYLOAD_MAX, SOURCES_MAX), exit(2);
    return options;
}

static int share(int whole, const struct options *options, int index) {
    return whole / options->threads + (index < whole % options->threads);
}

static void prepare(struct worker *worker, const struct options *options, int index) {
    worker->options = options;
    worker->index = index;
    worker->connections = share(options->connections, options, index);
    worker->warm = share(options->warm, options, index);
    worker->in_flight = share(options->in_flight, options, index);
    worker->slots = calloc((size_t)worker->connections, sizeof *worker->slots);
    worker->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (!worker->slots || worker->wake < 0) die("prepare");
}

static void report(const struct options *options, uint64_t done, int established, const struct window *window) {
    static struct histogram latency;
    struct failures failures = {0};
    for (int i = 0; i < options->threads; i++) {
        merge(&latency, &workers[i].latency);
        failures.connecting += workers[i].failures.connecting;
        failures.reset += workers[i].failures.reset;
        failures.closed += workers[i].failures.closed;
        failures.unanswered += workers[i].failures.unanswered;
        failures.wrong += workers[i].failures.wrong;
    }
    double seconds = (double)(window->end_ns - window->start_ns) / 1e9;
    printf("{\"mode\":\"%s\",\"offered\":%.1f,\"seconds\":%.6f,\"done\":%lu,\"rate\":%.1f,\"p50_us\":%.1f,"
           "\"p99_us\":%.1f,\"max_us\":%.1f,\"last_us\":%.1f,\"messages\":%lu,\"established\":%d,"
           "\"errors\":{\"connecting\":%lu,\"reset\":%lu,\"closed\":%lu,\"unanswered\":%lu,\"wrong\":%lu},"
           "\"cpu_us\":%lu,\"total_done\":%d,\"total_cpu_us\":%lu}\n",
           options->mode_name, options->mode == OPEN ? options->rate : 0, seconds, done,
           seconds > 0 ? (double)done / seconds : 0, (double)quantile(&latency, 0.5) / 1e3,
           (double)quantile(&latency, 0.99) / 1e3, (double)latency.largest / 1e3,
           (double)quantile(&lasts, 0.5) / 1e3, lasts.total, established, failures.connecting, failures.reset,
           failures.closed, failures.unanswered, failures.wrong, window->end_cpu_us - window->start_cpu_us,
           established, own_cpu_us());
}

int main(int count, char **arguments) {
    struct options options = parse(count, arguments);
    request_length = snprintf(request, sizeof request,
                              "GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\n"
                              "Connection: Upgrade\r\nSec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n",
                              options.port, KEY);
    if (sem_init(&settled, 0, 0)) die("sem_init");
    for (int i = 0; i < options.threads; i++) prepare(&workers[i], &options, i);
    for (int i = 0; i < options.threads; i++)
        if (pthread_create(&workers[i].thread, NULL, run, &workers[i])) die("pthread_create");
    struct window window = {0};
    uint64_t done = open_all(&options, &window);
    sleep_for(options.mode == OPEN ? options.hold : 0.3);
    if (options.mode == OPEN) announce("held");
    if (options.mode == OPEN) sleep_for(0.2); // the harness takes its readings first
    if (options.mode == BROADCAST) done = broadcast(&options, &window);
    int established = sum_established();
    phase = ENDING;
    for (int i = 0; i < options.threads; i++) pthread_join(workers[i].thread, NULL);
    report(&options, done, established, &window);
    return 0;
}
