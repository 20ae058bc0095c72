// A chart on the time axis: uPlot, a legend with the values at the cursor, and, under the lines of
// the latency chart, its heat map.

import uPlot from "uplot"
import { colour, h, svg } from "./dom"
import type { HeatMap, Run, Value } from "./data"
import { moment, show } from "./format"
import { lowerBound, reduce } from "./levels"
import type { ChartSpec, Line } from "./specs"
import { change, view } from "./view"

const AXIS = 64
const SYNC = uPlot.sync("time")
/** The chart in which a drag began. */
let dragged: uPlot | null = null

export class Chart {
  readonly element: HTMLElement
  private plot: uPlot | null = null
  private values: Value[][] = []
  private readonly cells: HTMLElement[]
  private readonly place: HTMLElement

  constructor(private readonly run: Run, readonly spec: ChartSpec) {
    this.cells = spec.lines.map(() => h("td"))
    this.place = h("div.plot", { "aria-hidden": "true" })
    const rows = spec.lines.map((line, index) => h("tr", {},
      h("th", { scope: "row" }, swatch(line), line.label), this.cells[index]!))
    this.element = h("section.chart", { id: spec.id },
      h("h2", { title: spec.help }, spec.title), this.place,
      h("div.legend", {}, h("table", { "aria-label": `${spec.title}, at the cursor or at the end` },
        h("tbody", {}, rows))))
  }

  /** Draws the shown range anew: after a zoom, a new row, a change of theme or of width. */
  draw(rebuild = false): void {
    const width = this.place.clientWidth
    if (width === 0) return
    this.values = this.spec.lines.map(line => valuesOf(this.run, line))
    const drawn = this.spec.stacked ? stack(this.values) : this.values
    const [from, to] = shownRange(this.run)
    const first = Math.max(lowerBound(this.run.time, from) - 1, 0)
    const last = Math.min(lowerBound(this.run.time, to) + 1, this.run.rows)
    const points = reduce(this.run.time, drawn, first, last, Math.max(width - AXIS, 100))
    const data = [points.time, ...points.values] as uPlot.AlignedData
    if (rebuild || !this.plot) {
      this.plot?.destroy()
      this.plot = new uPlot(this.options(width), data, this.place)
    } else {
      if (this.plot.width !== width) this.plot.setSize({ width, height: this.height() })
      this.plot.setData(data, false)
    }
    this.plot.batch(() => this.plot?.setScale("x", { min: from, max: to }))
    this.legend(null)
  }

  private height(): number {
    return this.spec.height ?? 130
  }

  private options(width: number): uPlot.Options {
    const { spec } = this
    const unit = spec.lines[0]?.unit ?? "count"
    const steps = unit === "bytes" ? { incrs: Array.from({ length: 40 }, (_, power) => 2 ** power) } : {}
    const axis = { stroke: colour("dim"), ticks: { show: false }, font: "11px system-ui, sans-serif",
      grid: { stroke: colour("grid"), width: 1 } }
    return {
      width, height: this.height(), legend: { show: false }, padding: [6, 6, 0, 0],
      scales: {
        x: { time: false, range: () => shownRange(this.run) },
        y: spec.log ? { distr: 3, range: (_, low, high) => logRange(low, high) }
          : { range: (_, __, high) => [0, high > 0 ? high * 1.05 : 1] },
      },
      axes: [
        { ...axis, size: 22, values: (_, ticks) => ticks.map(moment) },
        { ...axis, ...steps, size: AXIS, values: (_, ticks) => ticks.map(tick => tick === null ? "" : show(tick, unit)),
          ...(spec.log ? { filter: (_: uPlot, ticks: number[]) => ticks.map(tick => Number.isInteger(Math.log10(tick)) ? tick : null) } : {}) },
      ],
      series: [{}, ...spec.lines.map(line => series(line, spec))],
      bands: spec.stacked ? spec.lines.slice(1).map((_, index) => ({ series: [index + 2, index + 1] as [number, number] })) : [],
      cursor: { sync: { key: SYNC.key, setSeries: false }, drag: { x: true, y: false, setScale: false },
        points: { show: !spec.stacked, size: 5 }, y: false },
      hooks: {
        ready: [plot => plot.over.addEventListener("mousedown", () => { dragged = plot })],
        drawClear: [plot => spec.heat && this.heat(plot, this.run.heat[spec.heat])],
        draw: [plot => this.marks(plot)],
        setCursor: [plot => this.legend(plot.cursor.left != null && plot.cursor.left >= 0 ? plot.posToVal(plot.cursor.left, "x") : null)],
        setSelect: [plot => {
          // The other charts show the selection too; the one that was dragged zooms.
          if (dragged !== plot || plot.select.width < 4) return
          dragged = null
          const range: [number, number] = [plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x")]
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
          change({ range })
        }],
      },
    }
  }

  /** Shows the values at a moment, or those of the last row. */
  private legend(seconds: number | null): void {
    const { time } = this.run
    let row = this.run.rows - 1
    if (seconds !== null) {
      row = Math.min(lowerBound(time, seconds), row)
      if (row > 0 && seconds - time[row - 1]! < time[row]! - seconds) row -= 1
    }
    this.spec.lines.forEach((line, index) => {
      this.cells[index]!.textContent = show(this.values[index]?.[row], line.unit)
    })
  }

  private heat(plot: uPlot, map: HeatMap | undefined): void {
    if (!map) return
    const { ctx } = plot
    const { left, top, width, height } = plot.bbox
    const most = map.columns.reduce((most, column) => column.cells.reduce((most, cell) => Math.max(most, cell[1]), most), 1)
    ctx.save()
    ctx.beginPath()
    ctx.rect(left, top, width, height)
    ctx.clip()
    ctx.fillStyle = colour("heat")
    const y = (cell: number) => plot.valToPos(Math.max(2 ** (cell / map.cells_per_octave), 1), "y", true)
    map.columns.forEach((column, index) => {
      const begin = (map.columns[index - 1]?.at_ms ?? column.at_ms - 1000) / 1000
      const [x0, x1] = [plot.valToPos(begin, "x", true), plot.valToPos(column.at_ms / 1000, "x", true)]
      if (x1 < left || x0 > left + width) return
      for (const [cell, count] of column.cells) {
        const [low, high] = [y(cell), y(cell + 1)]
        ctx.globalAlpha = 0.12 + 0.78 * Math.log1p(count) / Math.log1p(most)
        ctx.fillRect(x0, high, Math.max(x1 - x0, 1), Math.max(low - high, 1))
      }
    })
    ctx.restore()
  }

  /** Draws a line where each finding began. */
  private marks(plot: uPlot): void {
    const { ctx } = plot
    const { left, top, width, height } = plot.bbox
    ctx.save()
    ctx.strokeStyle = colour("red")
    ctx.globalAlpha = 0.55
    ctx.setLineDash([3, 3])
    for (const [seconds] of findingMoments(this.run)) {
      const x = plot.valToPos(seconds, "x", true)
      if (x < left || x > left + width) continue
      ctx.beginPath()
      ctx.moveTo(x, top)
      ctx.lineTo(x, top + height)
      ctx.stroke()
    }
    ctx.restore()
  }
}

/** Returns the moments at which findings begin, with their numbers in the list of findings. */
export function findingMoments(run: Run): [number, number][] {
  return run.summary.diagnosis.findings.flatMap((finding, index) => {
    const moments = finding.evidence.map(evidence => evidence.at_ms)
    return moments.length > 0 ? [[Math.min(...moments) / 1000, index + 1] as [number, number]] : []
  })
}

/** Returns the seconds that the charts show. */
export function shownRange(run: Run): [number, number] {
  const [from, to] = view.range ?? [0, run.end]
  return to > from ? [from, to] : [0, 1]
}

function valuesOf(run: Run, line: Line): Value[] {
  const values: Value[] = new Array(run.rows)
  for (let row = 0; row < run.rows; row++) values[row] = line.value(run, row)
  return values
}

/** Puts each line on top of those before it. */
function stack(lines: Value[][]): Value[][] {
  const sums: number[] = []
  return lines.map(line => line.map((value, row) => (sums[row] = (sums[row] ?? 0) + (value ?? 0))))
}

function series(line: Line, spec: ChartSpec): uPlot.Series {
  const stroke = colour(line.colour)
  return {
    label: line.label, stroke, width: line.colour === "ink" ? 1.75 : 1.25, spanGaps: false, points: { show: false },
    ...(line.dash ? { dash: line.dash === true ? [4, 3] : line.dash } : {}),
    // The colours of the theme have six digits; two more are their opacity.
    ...(line.fill || spec.stacked ? { fill: `${stroke}${spec.stacked ? "99" : "20"}` } : {}),
  }
}

function logRange(low: number | null, high: number | null): [number, number] {
  const from = 10 ** Math.floor(Math.log10(Math.max(low ?? 1, 1)))
  return [from, Math.max((high ?? 10) * 1.4, from * 10)]
}

/** Returns a piece of a line as it is drawn. */
export function swatch(line: { colour: string; dash?: boolean | number[] }): Element {
  if (Array.isArray(line.dash)) {
    return svg("svg", { class: "swatch long", viewBox: "0 0 24 4", "aria-hidden": "true" },
      svg("line", { x1: 0, x2: 24, y1: 2, y2: 2, stroke: `var(--${line.colour})`, "stroke-width": 2, "stroke-dasharray": line.dash.join(" ") }))
  }
  const element = h("i.swatch", { "aria-hidden": "true" })
  element.style.borderTop = `2px ${line.dash ? "dashed" : "solid"} var(--${line.colour})`
  return element
}
