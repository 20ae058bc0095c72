// A long run file, made from the intervals of a short one: counters go on growing, and the rest
// repeats.

import { once } from "node:events"
import { createWriteStream } from "node:fs"
import { readFile } from "node:fs/promises"

const SECONDS = 6 * 3600
const COUNTED = ["counters", "core", "process", "errors", "connect_failed", "cpu_us_per_core"]
/** What does not count. */
const GAUGES = new Set(["users_active", "connected", "joined", "slots", "pending_bytes", "turn_us_most", "pid",
  "rss_bytes", "rss_bytes_at_start"])

/** Writes six hours of a line a second to `to`, and returns how many lines these are. */
export async function sixHours(from, to) {
  const lines = (await readFile(from, "utf8")).trim().split("\n").map(line => JSON.parse(line))
  const [header, begin] = lines
  const busy = lines.filter(line => line.span_ms > 0 && line.load.phase !== "everybody leaves")
  const [first, last] = [busy[0], busy.at(-1)]
  const out = createWriteStream(to)
  out.write(`${JSON.stringify(header)}\n${JSON.stringify(begin)}\n`)
  for (let second = 1; second <= SECONDS; second++) {
    const line = busy[(second - 1) % busy.length]
    const rounds = Math.floor((second - 1) / busy.length)
    const load = { ...line.load, phase: "hold", probes: undefined, arrival: undefined }
    for (const key of COUNTED) if (load[key]) load[key] = grown(load[key], first.load[key], last.load[key], rounds)
    const interval = {
      ...line, at_ms: second * 1000, span_ms: 1000, load, events: undefined, programs: undefined,
      kernel: noisy(line.kernel, second), machine: grown(line.machine, first.machine, last.machine, rounds),
    }
    if (!out.write(`${JSON.stringify(interval)}\n`)) await once(out, "drain")
  }
  out.end(`${JSON.stringify(lines.at(-1))}\n`)
  await once(out, "finish")
  return SECONDS
}

/** Returns counters after so many more rounds from `first` to `last`. */
function grown(now, first, last, rounds) {
  const value = (key, value) => typeof value !== "number" || GAUGES.has(key) ? value
    : value + rounds * Math.max((last?.[key] ?? 0) - (first?.[key] ?? 0), 0)
  return Array.isArray(now) ? now.map((one, key) => value(key, one))
    : Object.fromEntries(Object.entries(now).map(([key, one]) => [key, value(key, one)]))
}

/** Returns gauges and counters that differ from line to line, so that they do not pack too well. */
function noisy(kernel, second) {
  const wave = key => (second * 7919 + key.length * 104729) % 997
  return Object.fromEntries(Object.entries(kernel ?? {}).map(([key, value]) =>
    [key, typeof value === "number" && value > 100 ? value + wave(key) : value]))
}
