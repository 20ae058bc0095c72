// A histogram of nanoseconds with a relative error of at most 1/64, and no memory but its counters.
//
// Values below 64 have a bucket each; above, every power of two is split into 64 buckets.

#ifndef THRONG_BENCH_HISTOGRAM_H
#define THRONG_BENCH_HISTOGRAM_H

#include <stdint.h>

enum { SPLIT_BITS = 6, SPLIT = 1 << SPLIT_BITS, BUCKETS = (64 - SPLIT_BITS + 1) * SPLIT };

struct histogram {
    uint64_t total, largest, counts[BUCKETS];
};

static inline unsigned bucket_of(uint64_t value) {
    if (value < SPLIT) return (unsigned)value;
    unsigned shift = 63 - (unsigned)__builtin_clzll(value) - SPLIT_BITS;
    return (shift + 1) * SPLIT + (unsigned)(value >> shift) - SPLIT;
}

// Returns the middle of a bucket, so that rounding is not always in one direction.
static inline uint64_t value_of(unsigned bucket) {
    if (bucket < SPLIT) return bucket;
    unsigned shift = bucket / SPLIT - 1;
    return (((uint64_t)(bucket % SPLIT) + SPLIT) << shift) + ((1ull << shift) >> 1);
}

static inline void record(struct histogram *histogram, uint64_t value) {
    histogram->counts[bucket_of(value)]++;
    histogram->total++;
    if (value > histogram->largest) histogram->largest = value;
}

static inline void merge(struct histogram *into, const struct histogram *from) {
    for (unsigned i = 0; i < BUCKETS; i++) into->counts[i] += from->counts[i];
    into->total += from->total;
    if (from->largest > into->largest) into->largest = from->largest;
}

// Returns the value below which `share` of all values lie; 0 without values.
static inline uint64_t quantile(const struct histogram *histogram, double share) {
    uint64_t wanted = (uint64_t)(share * (double)histogram->total), seen = 0;
    for (unsigned i = 0; i < BUCKETS; i++) {
        seen += histogram->counts[i];
        if (seen > wanted) return value_of(i) < histogram->largest ? value_of(i) : histogram->largest;
    }
    return histogram->largest;
}

#endif
