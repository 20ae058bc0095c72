// Distributions over the whole run: percentile curves of all operations, and how far broadcasts
// have come after which time.

import uPlot from "uplot"
import { colour, h } from "./dom"
import type { Run } from "./data"
import { micros } from "./format"
import { OPERATIONS } from "./specs"

const COLOURS = ["blue", "orange", "green", "purple", "sky", "red"]

export class Distribution {
  readonly element: HTMLElement
  private readonly place = h("div.plot", { "aria-hidden": "true" })
  private plot: uPlot | null = null

  constructor(private readonly run: Run, private readonly kind: "percentiles" | "broadcast") {
    const [title, help] = kind === "percentiles"
      ? ["Percentiles", "The latency that a share of all answers does not exceed, to the last nine that the run shows."]
      : ["Broadcasts", "The share of all expected deliveries that had arrived after a time."]
    this.element = h("section.chart.wide", { id: kind }, h("h2", { title: help }, title), this.place,
      h("div.legend", {}, h("table", {}, h("tbody", {}, this.lines().map(([id, name], index) =>
        h("tr", {}, h("th", { scope: "row" }, key(index), name), h("td", {}, this.value(id))))))))
  }

  /** Reports whether the run has anything to show here. */
  static has(run: Run, kind: "percentiles" | "broadcast"): boolean {
    return kind === "percentiles" ? Object.keys(run.curves).some(id => id !== "lag") : "broadcast" in run.curves
  }

  draw(): void {
    const width = this.place.clientWidth
    if (width === 0) return
    this.plot?.destroy()
    const lines = this.lines().map(([id], index) => ({ points: this.points(id), colour: COLOURS[index % COLOURS.length]! }))
    this.plot = this.kind === "percentiles" ? percentilePlot(this.place, lines) : linePlot(this.place, lines, {
      scales: { x: { time: false, distr: 3 }, y: { range: [0, 1] } },
      axes: [{ ...axis(), size: 22, filter: decades, values: (_, ticks) => ticks.map(us => us === null ? "" : micros(us)) },
        { ...axis(), size: 64, values: (_, ticks) => ticks.map(share => `${Math.round(share * 100)} %`) }],
    })
  }

  private lines(): [string, string][] {
    if (this.kind === "broadcast") return [["broadcast", "deliveries"]]
    return OPERATIONS.filter(([id]) => id in this.run.curves)
  }

  private value(id: string): string {
    const curve = this.run.curves[id] ?? []
    const at = (wanted: number) => micros(curve.find(([percent]) => percent >= wanted)?.[1] ?? 0)
    return this.kind === "percentiles" ? `p50 ${at(50)}, p99 ${at(98.99)}` : `half ${at(50)}, last ${at(100)}`
  }

  /** Returns the points of a curve: nines and latencies, or latencies and shares. */
  private points(id: string): Points {
    const curve = this.run.curves[id] ?? []
    if (this.kind === "percentiles") return percentilePoints(curve)
    const expected = this.run.summary.broadcast
    const arrived = expected && expected.expected > 0 ? expected.delivered / expected.expected : 1
    return points(curve, (percent, us) => [Math.max(us, 1), percent / 100 * arrived])
  }
}

type Points = [x: number[], y: number[]]

export interface CurveLine { points: Points; colour: string; dash?: number[] }

/** Draws latencies over percentiles, each further nine as far away as the one before. */
export function percentilePlot(place: HTMLElement, lines: CurveLine[]): uPlot {
  return linePlot(place, lines, {
    scales: { x: { time: false }, y: { distr: 3 } },
    axes: [{ ...axis(), size: 22, splits: (_, __, low, high) => Array.from({ length: Math.floor(high) - Math.ceil(low) + 1 }, (_, n) => Math.ceil(low) + n), values: (_, ticks) => ticks.map(nines) },
      { ...axis(), size: 64, filter: decades, values: (_, ticks) => ticks.map(us => us === null ? "" : micros(us)) }],
  })
}

/** Returns the points of a percentile curve: nines and latencies. */
export function percentilePoints(curve: [number, number][]): Points {
  return points(curve, (percent, us, last) => [percent >= 100 ? last + 0.15 : -Math.log10(1 - percent / 100), Math.max(us, 1)])
}

function points(curve: [number, number][], point: (percent: number, us: number, last: number) => [number, number]): Points {
  const [x, y]: Points = [[], []]
  for (const [percent, us] of curve) {
    const [px, py] = point(percent, us, x.at(-1) ?? 0)
    // The same x twice: the later one stands.
    if (x.at(-1) === px) y[y.length - 1] = py
    else { x.push(px); y.push(py) }
  }
  return [x, y]
}

function linePlot(place: HTMLElement, lines: CurveLine[], options: Pick<uPlot.Options, "scales" | "axes">): uPlot {
  const data = uPlot.join(lines.map(line => line.points as uPlot.AlignedData))
  return new uPlot({
    width: place.clientWidth, height: 220, legend: { show: false }, padding: [6, 16, 0, 0], cursor: { show: false }, ...options,
    series: [{}, ...lines.map(line => ({
      stroke: colour(line.colour), width: 1.5, spanGaps: true, points: { show: false }, ...(line.dash ? { dash: line.dash } : {}) }))],
  } as uPlot.Options, data, place)
}

function axis(): uPlot.Axis {
  return { stroke: colour("dim"), ticks: { show: false }, font: "11px system-ui, sans-serif", grid: { stroke: colour("grid"), width: 1 } }
}

function decades(_: uPlot, ticks: number[]): (number | null)[] {
  return ticks.map(tick => Number.isInteger(Math.log10(tick)) ? tick : null)
}

/** Returns `p99.9` for three nines. */
function nines(n: number): string {
  return n <= 0 ? "p0" : `p${Number((100 * (1 - 10 ** -n)).toFixed(Math.max(n - 2, 0) + 2))}`
}

function key(index: number): HTMLElement {
  const element = h("i.swatch", { "aria-hidden": "true" })
  element.style.borderTop = `2px solid var(--${COLOURS[index % COLOURS.length]})`
  return element
}
