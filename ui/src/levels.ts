// Levels of detail: as many points as a chart has room for, without losing a peak.

import type { Value } from "./data"

export interface Points { time: number[]; values: Value[][] }

/**
 * Returns the rows from `first` to before `last` in at most about twice `places` points. Where rows
 * are merged, a place has two points: the smallest and the largest value of its rows.
 */
export function reduce(time: number[], lines: Value[][], first: number, last: number, places: number): Points {
  const rows = last - first
  if (rows <= places * 2) {
    return { time: time.slice(first, last), values: lines.map(line => line.slice(first, last)) }
  }
  const step = rows / places
  const bounds = Array.from({ length: places + 1 }, (_, place) => first + Math.floor(place * step))
  const points: Points = { time: [], values: lines.map(() => []) }
  for (let place = 0; place < places; place++) {
    const [from, to] = [bounds[place]!, bounds[place + 1]!]
    const [begin, end] = [time[from]!, time[to - 1]!]
    points.time.push(begin, begin + (end - begin) / 2)
    lines.forEach((line, index) => {
      let [low, high]: [Value, Value] = [null, null]
      let highIsLater = true
      for (let row = from; row < to; row++) {
        const value = line[row] ?? null
        if (value === null) continue
        if (low === null || value < low) { low = value; highIsLater = false }
        if (high === null || value > high) { high = value; highIsLater = true }
      }
      points.values[index]!.push(...(highIsLater ? [low, high] : [high, low]))
    })
  }
  return points
}

/** Returns the first index whose value is at least `wanted`. */
export function lowerBound(values: number[], wanted: number): number {
  let [low, high] = [0, values.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle]! < wanted) low = middle + 1
    else high = middle
  }
  return low
}
