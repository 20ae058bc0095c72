// Levels of detail: as many points as a chart has room for, without losing a peak.

import type { Value } from "./data"

export interface Points {
  time: number[]
  values: Value[][]
  /** Whether each place has two points, or else each row is a point. */
  merged: boolean
  /** Of each line the mean of each place, to draw a line through. */
  means: Float64Array[]
}

/**
 * Returns the rows from `first` to before `last` in at most twice `places` points. Where rows are
 * merged, a place has two points: the smallest and the largest value of its rows, in their order.
 */
export function reduce(time: Float64Array, lines: Float64Array[], first: number, last: number, places: number): Points {
  const rows = last - first
  if (rows <= places * 2) {
    return { time: Array.from(time.subarray(first, last)), values: lines.map(line => row(line, first, last)), merged: false, means: [] }
  }
  const step = rows / places
  const bounds = Int32Array.from({ length: places + 1 }, (_, place) => first + Math.floor(place * step))
  const times = new Array<number>(places * 2)
  for (let place = 0; place < places; place++) {
    const [begin, end] = [time[bounds[place]!]!, time[bounds[place + 1]! - 1]!]
    times[2 * place] = begin
    times[2 * place + 1] = begin + (end - begin) / 2
  }
  const means = lines.map(() => new Float64Array(places))
  return { time: times, values: lines.map((line, index) => extremes(line, bounds, means[index]!)), merged: true, means }
}

function row(line: Float64Array, first: number, last: number): Value[] {
  return Array.from({ length: last - first }, (_, index) => known(line[first + index]))
}

function extremes(line: Float64Array, bounds: Int32Array, means: Float64Array): Value[] {
  const values = new Array<Value>(2 * (bounds.length - 1))
  for (let place = 0; place + 1 < bounds.length; place++) {
    let [low, high] = [Infinity, -Infinity]
    let highIsLater = true
    let [sum, count] = [0, 0]
    const to = Math.min(bounds[place + 1]!, line.length)
    for (let row = bounds[place]!; row < to; row++) {
      const value = line[row]!
      if (Number.isNaN(value)) continue
      sum += value
      count++
      if (value < low) { low = value; highIsLater = false }
      if (value > high) { high = value; highIsLater = true }
    }
    const isKnown = low <= high
    means[place] = count > 0 ? sum / count : NaN
    values[2 * place] = isKnown ? highIsLater ? low : high : null
    values[2 * place + 1] = isKnown ? highIsLater ? high : low : null
  }
  return values
}

function known(value: number | undefined): Value {
  return value === undefined || Number.isNaN(value) ? null : value
}

/** Returns the first index whose value is at least `wanted`. */
export function lowerBound(values: Float64Array, wanted: number): number {
  let [low, high] = [0, values.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle]! < wanted) low = middle + 1
    else high = middle
  }
  return low
}
