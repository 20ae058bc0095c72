// Distributions over the whole run: percentile curves of all operations, and how far broadcasts
// have come after which time.

import uPlot from "uplot"
import { decades } from "./chart"
import { colour, h } from "./dom"
import type { Run } from "./data"
import { count, micros, show } from "./format"
import { OPERATIONS } from "./specs"

const COLOURS = ["blue", "orange", "green", "purple", "sky", "red"]
type Kind = "percentiles" | "broadcast"

export class Distribution {
  readonly element: HTMLElement
  private readonly place = h("div.plot.tall", { "aria-hidden": "true" })
  private plot: uPlot | null = null

  constructor(private readonly run: Run, private readonly kind: Kind) {
    const [title, help] = kind === "percentiles"
      ? ["Percentiles", "The latency that a share of all answers does not exceed, to the last nine that the run shows."]
      : ["Broadcasts", "The share of all expected deliveries, over all users and probes, that had arrived after a time."]
    this.element = h("section.chart.wide", { id: kind }, h("h2", { title: help }, title), this.place,
      h("div.legend", {}, kind === "percentiles" ? this.percentiles() : this.deliveries()))
  }

  /** Reports whether the run has anything to show here. */
  static has(run: Run, kind: Kind): boolean {
    return kind === "percentiles" ? Object.keys(run.curves).some(id => id !== "lag") : "broadcast" in run.curves
  }

  draw(): void {
    const width = this.place.clientWidth
    if (width === 0) return
    this.plot?.destroy()
    const lines = this.lines().map(([id], index) => ({ points: this.points(id), colour: COLOURS[index % COLOURS.length]! }))
    this.plot = this.kind === "percentiles" ? percentilePlot(this.place, lines) : linePlot(this.place, lines, {
      scales: { x: { time: false, distr: 3 }, y: { range: [0, 1.1] } },
      axes: [{ ...latencyAxis(), size: 22 }, { ...axis(), size: 76, splits: () => [0, 0.2, 0.4, 0.6, 0.8, 1],
        values: (_, ticks) => ticks.map(share => `${Math.round(share * 100)} %`) }],
      hooks: { draw: [plot => this.marks(plot)] },
    })
  }

  private lines(): [string, string][] {
    if (this.kind === "broadcast") return [["broadcast", "deliveries"]]
    return OPERATIONS.filter(([id]) => id in this.run.curves)
  }

  /** The percentiles of each line as text. */
  private percentiles(): HTMLElement {
    const shown: [string, number][] = [["p50", 50], ["p90", 90], ["p99", 99], ["p99.9", 99.9], ["max", 100]]
    return h("table.nines", {}, h("thead", {}, h("tr", {}, h("td"), shown.map(([name]) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, this.lines().map(([id, name], index) => h("tr", {}, h("th", { scope: "row" }, key(index), name),
        shown.map(([, percent]) => h("td", {}, this.at(id, percent)))))))
  }

  /** Returns the latency at a percentage, if there are enough values to tell. */
  private at(id: string, wanted: number): string {
    // The percentages of a curve are computed, so they are compared with room for rounding.
    const point = this.run.curves[id]?.find(([percent]) => percent >= wanted - 1e-6)
    return point && (wanted === 100 || point[0] < 100) ? micros(point[1]) : "–"
  }

  /** When the first, half, 99 % and the last of all deliveries had come, and how many never did. */
  private deliveries(): HTMLElement {
    const { broadcast } = this.run.summary
    const row = (name: string, value: string) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value))
    const missing = broadcast?.missing ?? 0
    const share = broadcast && broadcast.expected > 0 ? ` (${show(missing / broadcast.expected, "share")})` : ""
    return h("table", {}, h("tbody", {}, this.moments().map(({ name, us }) => row(name, micros(us))),
      broadcast ? row("delivered", `${count(broadcast.delivered)} of ${count(broadcast.expected)}`) : null,
      row("missing", missing > 0 ? `${count(missing)}${share}` : "none")))
  }

  private moments(): { name: string; us: number; share: number }[] {
    const curve = this.run.curves["broadcast"] ?? []
    const arrived = this.arrived()
    return ([["first", 0], ["half", 50], ["99 %", 99], ["last", 100]] as const).flatMap(([name, percent]) => {
      const us = curve.find(point => point[0] >= percent - 1e-6)?.[1]
      return us === undefined ? [] : [{ name, us, share: percent / 100 * arrived }]
    })
  }

  /** The share of the expected deliveries that arrived. */
  private arrived(): number {
    const { broadcast } = this.run.summary
    return broadcast && broadcast.expected > 0 ? broadcast.delivered / broadcast.expected : 1
  }

  private marks(plot: uPlot): void {
    const { ctx } = plot
    const unit = devicePixelRatio
    ctx.save()
    ctx.font = `${11 * unit}px system-ui, sans-serif`
    ctx.fillStyle = colour("ink")
    ctx.textAlign = "left"
    for (const { name, us, share } of this.moments()) {
      const [x, y] = [plot.valToPos(Math.max(us, 1), "x", true), plot.valToPos(share, "y", true)]
      ctx.beginPath()
      ctx.arc(x, y, 3 * unit, 0, 2 * Math.PI)
      ctx.fill()
      ctx.fillText(name, x + 6 * unit, y + (name === "99 %" ? 14 : -6) * unit)
    }
    ctx.restore()
  }

  /** Returns the points of a curve: nines and latencies, or latencies and shares. */
  private points(id: string): Points {
    const curve = this.run.curves[id] ?? []
    if (this.kind === "percentiles") return percentilePoints(curve)
    const arrived = this.arrived()
    return points(curve, (percent, us) => [Math.max(us, 1), percent / 100 * arrived])
  }
}

type Points = [x: number[], y: number[]]

export interface CurveLine { points: Points; colour: string; dash?: number[] }

/** Draws latencies over percentiles, each further nine as far away as the one before. */
export function percentilePlot(place: HTMLElement, lines: CurveLine[]): uPlot {
  return linePlot(place, lines, {
    scales: { x: { time: false }, y: { distr: 3 } },
    axes: [{ ...axis(), size: 22, values: (_, ticks) => ticks.map(nines),
      splits: (_, __, low, high) => Array.from({ length: Math.floor(high) - Math.ceil(low) + 1 }, (_, n) => Math.ceil(low) + n) },
      { ...latencyAxis(), size: 76 }],
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

function linePlot(place: HTMLElement, lines: CurveLine[], options: Pick<uPlot.Options, "scales" | "axes" | "hooks">): uPlot {
  const data = uPlot.join(lines.map(line => line.points as uPlot.AlignedData))
  return new uPlot({
    width: place.clientWidth, height: 220, legend: { show: false }, padding: [6, 24, 0, 0], cursor: { show: false }, ...options,
    series: [{}, ...lines.map(line => ({
      stroke: colour(line.colour), width: 1.5, spanGaps: true, points: { show: false }, ...(line.dash ? { dash: line.dash } : {}) }))],
  } as uPlot.Options, data, place)
}

export function axis(): uPlot.Axis {
  return { stroke: colour("dim"), ticks: { show: false }, font: "11px system-ui, sans-serif", grid: { stroke: colour("grid"), width: 1 } }
}

function latencyAxis(): uPlot.Axis {
  const { grid, ...rest } = axis()
  return { ...rest, filter: decades, grid: { ...grid, filter: decades }, values: (_, ticks) => ticks.map(us => us === null ? "" : micros(us)) }
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
