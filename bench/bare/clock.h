// Time and CPU time, for both clients of the benchmark.

#ifndef THRONG_BENCH_CLOCK_H
#define THRONG_BENCH_CLOCK_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static const uint64_t SECOND = 1000000000;

static void die(const char *what) {
    perror(what);
    exit(2);
}

static inline uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static inline void sleep_for(double seconds) {
    struct timespec time = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&time, &time) && errno == EINTR) continue;
}

static inline uint64_t own_cpu_us(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

// Signals the harness to take its own readings.
static inline void announce(const char *event) {
    printf("{\"event\":\"%s\"}\n", event);
    fflush(stdout);
}

#endif
