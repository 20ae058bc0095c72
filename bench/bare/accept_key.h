// Sec-WebSocket-Accept for a Sec-WebSocket-Key (RFC 6455, 4.2.2): base64 of SHA-1 of the key and a constant.

#ifndef THRONG_BENCH_ACCEPT_KEY_H
#define THRONG_BENCH_ACCEPT_KEY_H

#include <stdint.h>
#include <string.h>

enum { KEY_BYTES = 24, ACCEPT_BYTES = 28, SHA1_BYTES = 20 };

static inline uint32_t rotated(uint32_t value, int bits) {
    return value << bits | value >> (32 - bits);
}

// One block of SHA-1 (FIPS 180-4, 6.1.2).
static inline void sha1_block(uint32_t state[5], const uint8_t block[64]) {
    uint32_t words[80];
    for (int i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 80; i++)
        words[i] = rotated(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int i = 0; i < 80; i++) {
        uint32_t mixed = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                         : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                         : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                                  : (b ^ c ^ d) + 0xca62c1d6;
        uint32_t next = rotated(a, 5) + mixed + e + words[i];
        e = d, d = c, c = rotated(b, 30), b = a, a = next;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e;
}

// Writes ACCEPT_BYTES characters to `accept`, without a terminator. Key and constant are 60 bytes,
// so the padded message is two blocks.
static inline void accept_key(const char key[KEY_BYTES], char accept[ACCEPT_BYTES]) {
    static const char CONSTANT[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t message[128] = {0};
    memcpy(message, key, KEY_BYTES);
    memcpy(message + KEY_BYTES, CONSTANT, 36);
    message[60] = 0x80;
    message[126] = 480 >> 8, message[127] = 480 & 0xff; // its length in bits
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    sha1_block(state, message);
    sha1_block(state, message + 64);
    uint8_t digest[SHA1_BYTES + 1] = {0};
    for (int i = 0; i < SHA1_BYTES; i++) digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
    for (int i = 0; i < 7; i++) {
        uint32_t bits = (uint32_t)digest[3 * i] << 16 | (uint32_t)digest[3 * i + 1] << 8 | digest[3 * i + 2];
        for (int j = 0; j < 4; j++) accept[4 * i + j] = DIGITS[bits >> (18 - 6 * j) & 63];
    }
    accept[ACCEPT_BYTES - 1] = '='; // 20 bytes are one short of seven threes
}

#endif
