// Numbers as text, as the terminal writes them: three digits, and the unit that reads best.

import type { Value } from "./data"

export type Unit = "count" | "rate" | "us" | "bytes" | "cpus" | "share" | "permille"

export function show(value: Value | undefined, unit: Unit): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–"
  switch (unit) {
    case "us": return micros(value)
    case "bytes": return bytes(value)
    case "rate": return `${count(value)}/s`
    case "cpus": return value > 0 && value < 0.1 ? String(Number(value.toPrecision(2))) : value.toFixed(2)
    case "share": return `${(value * 100).toFixed(value < 0.1 ? 1 : 0)} %`
    case "permille": return (value / 1000).toFixed(2)
    default: return count(value)
  }
}

export function count(value: number): string {
  const size = Math.abs(value)
  if (size < 10_000) return trim(value, size < 10 ? 2 : size < 100 ? 1 : 0)
  const [unit, name] = size < 1e6 ? [1e3, "k"] : size < 1e9 ? [1e6, "M"] : [1e9, "G"]
  return three(value / (unit as number)) + name
}

export function micros(us: number): string {
  if (us < 1000) return `${trim(us, us < 10 ? 1 : 0)} µs`
  if (us < 1e6) return `${three(us / 1e3)} ms`
  return us < 120e6 ? `${three(us / 1e6)} s` : `${(us / 60e6).toFixed(1)} min`
}

export function bytes(n: number): string {
  if (n < 1024) return `${trim(n, 0)} B`
  const units = ["KiB", "MiB", "GiB", "TiB"]
  const power = Math.min(Math.floor(Math.log2(n) / 10), units.length)
  return `${three(n / 2 ** (10 * power))} ${units[power - 1]}`
}

/** Returns seconds since the run began as `1:02:03`, or `12.5 s` below a minute. */
export function moment(seconds: number): string {
  if (seconds < 60) return `${trim(seconds, 1)} s`
  const whole = Math.round(seconds)
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  const pad = (n: number) => String(n).padStart(2, "0")
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(rest)}` : `${minutes}:${pad(rest)}`
}

function three(value: number): string {
  const size = Math.abs(value)
  return value.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0)
}

function trim(value: number, digits: number): string {
  return String(Number(value.toFixed(digits)))
}
