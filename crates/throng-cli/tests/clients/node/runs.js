// Run files whose pages are hard to lay out: small, the same everywhere, and made of nothing that
// was measured. They have texts as long as any run has them.

import { deflateSync } from "node:zlib"

const SECONDS = 10
/** A word that no line of a phone holds. */
const HASH = "4f2a".repeat(32)
const UUID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
const MESSAGE = `{"type":"message","id":"${UUID}","room":"engineering-announcements","text":"lorem ipsum dolor sit amet"}`
const CLASS = "administrator_of_the_whole_organisation"
const SYSCTLS = ["net.core.somaxconn", "net.core.netdev_max_backlog", "net.ipv4.tcp_abort_on_overflow", "net.ipv4.tcp_max_syn_backlog",
  "net.ipv4.ip_local_port_range", "net.netfilter.nf_conntrack_max", "fs.epoll.max_user_watches", "net.ipv4.tcp_max_tw_buckets"]

const STATS = { count: 600, mean_us: 900, deviation_us: 90, min_us: 400, max_us: 8000, percentiles_us: { p95: 2700 } }

/** What runs have that a healthy one has not. */
const RUNS = {
  healthy: {},
  broadcast: { received: 40, server: "foreign" },
  sick: {
    server: "foreign", classes: ["commuter", CLASS, "bot"],
    errors: { expect_timeout: 60, expect_mismatch: 40, closed_by_peer: 20 },
    failed: { ECONNREFUSED: 12, http_503: 7, EADDRNOTAVAIL: 3 },
    exchanges: [
      exchange("expect_timeout", "JSON with `{\"type\":\"message\"}`", `nothing within 5 s; the last message was ${MESSAGE}`),
      exchange("expect_mismatch", MESSAGE, `{"type":"error","reason":"no such room","request":"${UUID}"}`),
      exchange("closed_by_peer", "a message", `a close frame with code 1001, reason \`${HASH}\``),
    ],
    steps: ["login", "open the list of all rooms", `GET /api/v1/organisations/${UUID}/rooms?limit=50`],
    thresholds: ["connect.p99 < 1us", "message.p99 < 1us", "errors < 1%"],
  },
  slow: { us: 400_000, server: "throng", unanswered: 30, thresholds: ["message.p99 < 100ms"] },
  imported: { imported: true },
  cut: {
    cut: true, errors: { closed_by_peer: 90 },
    exchanges: [exchange("closed_by_peer", `the answer to ${UUID}`, `an end of the stream after ${MESSAGE}`)],
  },
}

export const NAMES = Object.keys(RUNS)

/** Returns the text of a run file. */
export function runFile(name) {
  const run = RUNS[name]
  const lines = [header(name, run), ...Array.from({ length: SECONDS + 1 }, (_, second) => interval(run, second))]
  if (!run.cut) lines.push({ end: { reason: "finished", lines_lost: 0, validity: { grade: "valid", reasons: [] } } })
  return lines.map(line => `${JSON.stringify(line)}\n`).join("")
}

function header(name, { thresholds = [], imported }) {
  return {
    schema: "throng.run/1", started: "2026-11-21T06:57:21Z", throng_version: "0.0.1",
    command: ["throng", "run", `${name}.yaml`, "--target", `ws://127.0.0.1:8099/socket/${UUID}?token=***`],
    scenario: { path: `scenarios/${name}.yaml`, source: scenario(thresholds) },
    target: "ws://127.0.0.1:8099/socket", users_planned: 300, planned_ms: SECONDS * 1000, target_is_here: true,
    imported: imported && { tool: "another tool", version: "1.2.3", format: "another.log", file: `results/${UUID}/log`,
      latency_stats: { connect: STATS, [`step.GET /api/v1/organisations/${UUID}`]: STATS } },
    machine: { kernel: "6.12.8", cpus: "2", memory_bytes: "8589934592", ...Object.fromEntries(SYSCTLS.map(name => [name, "4096"])) },
  }
}

function scenario(thresholds) {
  return `target: ws://127.0.0.1:8099/socket
load:
  - ramp: {to: 300, over: 4s}
  - hold: {for: 6s}
user:
  - connect
  - every: {period: 1s, do: [send: hello, expect: hello]}
${thresholds.length > 0 ? `thresholds:\n${thresholds.map(threshold => `  - ${threshold}\n`).join("")}` : ""}`
}

/** Returns the line of a second. Counters count from the start. */
function interval(run, second) {
  const users = Math.min(75 * second, 300)
  const messages = 60 * second * second
  const grown = tally => tally && Object.fromEntries(Object.entries(tally).map(([kind, all]) => [kind, Math.ceil(all * second / SECONDS)]))
  const sum = tally => Object.values(grown(tally) ?? {}).reduce((sum, n) => sum + n, 0)
  const us = run.us ?? 900
  const latency = second === 0 ? undefined : histogram([[us / 2, 40], [us, 50], [3 * us, 9], [9 * us, 1]])
  return {
    at_ms: 1000 * second, span_ms: second === 0 ? 0 : 1000,
    load: {
      phase: second <= 4 ? "ramp to 300 over 4s" : "hold for 6s", cores: 1, grown_us: second === 0 ? 0 : 1_000_000,
      counters: {
        users_intended: users, users_started: users, iterations: users, users_active: users, connected: users,
        connects_started: users + sum(run.failed), connects_ok: users, connects_failed: sum(run.failed),
        messages_sent: messages, messages_expected: messages, messages_answered: messages - sum(run.errors),
        messages_failed: sum(run.errors), messages_received: (run.received ?? 1) * messages,
      },
      errors: grown(run.errors), connect_failed: grown(run.failed),
      connect: latency, message: latency, lag: second === 0 ? undefined : histogram([[20, 100]]),
      unanswered: run.unanswered && second > 0 ? { message: histogram([[5_000_000, run.unanswered]]) } : undefined,
      steps: run.steps?.map(name => ({ name, ok: messages, errors: second, waiting: 0, latency })),
      classes: run.classes && Object.fromEntries(run.classes.map(name => [name, { users_started: users, messages_answered: messages }])),
      process: { pid: 17, cpu_user_us: 50_000 * second, cpu_system_us: 70_000 * second, rss_bytes: 20_000_000 },
    },
    machine: { cpus: 2, cpu_busy_us: 400_000 * second, cpu_idle_us: 1_600_000 * second, cpu_stolen_us: 0 },
    kernel: run.server === "foreign" ? { "process.server.cpu_us": 170_000 * second, "process.server.rss_bytes": 90_000_000 } : {},
    server: run.server !== "throng" ? undefined : {
      listen: "127.0.0.1:8099", accept: "reuseport", handler: "echo", cores: 1,
      counters: { accepted: users, open: users, messages_received: messages, messages_sent: messages },
      process: { pid: 18, cpu_user_us: 30_000 * second, cpu_system_us: 40_000 * second, rss_bytes: 30_000_000 },
    },
    events: second !== 5 ? undefined : run.exchanges?.map(exchange => ({ at_ms: 4500, event: "first_error", ...exchange })),
  }
}

/** Texts are cut as the generator cuts them. */
function exchange(kind, expected, got) {
  const cut = text => text.length > 200 ? `${text.slice(0, 199)}…` : text
  return { kind, class: CLASS, step: "5.2", step_kind: "expect", line: 42, user: 17, expected: cut(expected), got: cut(got) }
}

/** Encodes pairs of a value and its count as HdrHistogram V2 of three digits, with deflate and base64. */
function histogram(pairs) {
  const counts = new Map()
  for (const [us, n] of pairs) counts.set(cellOf(us), (counts.get(cellOf(us)) ?? 0) + n)
  const numbers = []
  let next = 0
  for (const [cell, n] of [...counts].sort(([one], [other]) => one - other)) {
    if (cell > next) numbers.push(next - cell)
    numbers.push(n)
    next = cell + 1
  }
  const cells = Buffer.concat(numbers.map(zigzag))
  const head = Buffer.alloc(40)
  head.writeUInt32BE(0x1c849303 | 0x10, 0)
  head.writeUInt32BE(cells.length, 4)
  head.writeUInt32BE(3, 12)
  head.writeBigUInt64BE(1n, 16)
  head.writeBigUInt64BE(120_000_000n, 24)
  head.writeDoubleBE(1, 32)
  const packed = deflateSync(Buffer.concat([head, cells]))
  const outer = Buffer.alloc(8)
  outer.writeUInt32BE(0x1c849304 | 0x10, 0)
  outer.writeUInt32BE(packed.length, 4)
  return Buffer.concat([outer, packed]).toString("base64")
}

/** Returns the cell of a value: 2048 of one microsecond, and from there 1024 for each power of two. */
function cellOf(us) {
  const power = Math.max(Math.floor(Math.log2(us)) - 10, 0)
  return power === 0 ? Math.floor(us) : 1024 * power + Math.floor(us / 2 ** power)
}

/** Encodes a number in groups of seven bits, its sign in the lowest bit. */
function zigzag(number) {
  const bytes = []
  for (let left = number < 0 ? -2 * number - 1 : 2 * number; bytes.length === 0 || left > 0; left = Math.floor(left / 128)) {
    bytes.push(left % 128 + (left >= 128 ? 128 : 0))
  }
  return Buffer.from(bytes)
}
