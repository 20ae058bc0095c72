// A chart on the time axis: uPlot, a legend with the values at the cursor, and, under the lines of
// the latency chart, its heat map.

import uPlot from "uplot"
import { drawBars } from "./bars"
import { broken, colour, h, svg } from "./dom"
import type { Run } from "./data"
import { moment, show } from "./format"
import { drawHeat, drawStrips, type Strip } from "./heat"
import { lowerBound, type Points, reduce } from "./levels"
import type { ChartSpec, CoreRow, Line } from "./specs"
import { change, view } from "./view"

const AXIS = 76
/** Room for half of the last moment's text. The band above has the same. */
const RIGHT = 24
/** Pixels that share a smallest and a largest value. */
const PLACE = 2
/** Steps between the moments of the axis. */
const SECONDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
  3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800]
const LINEAR = uPlot.paths.linear!()
const SYNC = uPlot.sync("time")
/** The chart in which a drag began. */
let dragged: uPlot | null = null

/** Calls listeners with the moment at the cursor, or null when it leaves the charts. */
export const cursor = { moved: (_: number | null): void => {} }

export class Chart {
  readonly element: HTMLElement
  private plot: uPlot | null = null
  private values: Float64Array[] = []
  /** The values, those of a stacked chart on top of each other. */
  private lines: Float64Array[] = []
  private strips: Strip[] = []
  private points: Points = { time: [], values: [], merged: false, means: [] }
  private revision = -1
  private readonly cells: HTMLElement[]
  private readonly most: HTMLElement[]
  private medians: string[] = []
  private readonly when = h("th", { scope: "col" }, "median")
  private readonly place: HTMLElement

  constructor(private readonly run: Run, readonly spec: ChartSpec) {
    this.cells = spec.lines.map(() => h("td"))
    this.most = spec.lines.map(() => h("td"))
    this.place = h("div.plot", { "aria-hidden": "true" })
    // The place keeps its height until it is drawn, so that nothing moves then.
    this.place.style.minHeight = `${this.height()}px`
    const rows = spec.lines.map((line, index) => h("tr", {},
      h("th", { scope: "row" }, swatch(line), broken(line.label)), this.cells[index]!, this.most[index]!))
    this.element = h("section.chart", { id: spec.id },
      h("h2", { title: spec.help }, spec.title), this.place,
      h("div.legend", {}, h("table", { "aria-label": `${spec.title}, at the cursor, or the median of what is shown` },
        h("thead", {}, h("tr", {}, h("td"), this.when, h("th", { scope: "col" }, "max"))), h("tbody", {}, rows))))
  }

  get isDrawn(): boolean {
    return this.plot !== null
  }

  /** The width that a plot has. Reading it makes the browser lay the page out. */
  get width(): number {
    return this.place.clientWidth
  }

  /** Draws the shown range anew: after a zoom, a new row, a change of theme or of width. */
  draw(width: number, rebuild = false): void {
    if (width === 0) return
    const { run } = this
    if (this.revision !== run.revision) {
      this.values = this.spec.lines.map(line => line.values(run))
      this.lines = this.spec.stacked ? stack(this.values) : this.values
      this.strips = (this.spec.cores ?? []).map(({ id, colour: name }) =>
        ({ values: run.perSecond(id).map(us => us / 1e6), colour: colour(name) }))
      this.revision = run.revision
    }
    const { time } = run
    const [from, to] = shownRange(run)
    const first = Math.max(lowerBound(time, from) - 1, 0)
    const last = Math.min(lowerBound(time, to) + 1, run.rows)
    const points = this.points = reduce(time, this.lines, first, last, Math.max(Math.floor((width - AXIS - RIGHT) / PLACE), 100))
    const data = [points.time, ...points.values] as uPlot.AlignedData
    if (rebuild || !this.plot) {
      this.plot?.destroy()
      this.plot = new uPlot(this.options(width), data, this.place)
    } else {
      if (this.plot.width !== width) this.plot.setSize({ width, height: this.height() })
      this.plot.batch((plot: uPlot) => {
        plot.setData(data, false)
        plot.setScale("x", { min: from, max: to })
      })
    }
    this.place.dataset["points"] = String(points.time.length)
    this.place.dataset["range"] = `${from}-${to}`
    this.medians = this.values.map((values, index) => {
      const { unit } = this.spec.lines[index]!
      const [median, most] = middle(values.subarray(first, last))
      this.most[index]!.textContent = show(most, unit)
      return show(median, unit)
    })
    this.legend(this.pointed())
  }

  /** Moves the cursor of all charts to a moment, or takes it away. */
  point(seconds: number | null): void {
    const { plot } = this
    plot?.setCursor({ left: seconds === null ? -10 : plot.valToPos(seconds, "x"), top: seconds === null ? -10 : 10 })
  }

  private height(): number {
    const { cores, height } = this.spec
    return cores ? 30 + Math.min(Math.max(cores.length * 16, 48), 320) : height ?? 130
  }

  private options(width: number): uPlot.Options {
    const { spec } = this
    const unit = spec.lines[0]?.unit ?? "count"
    const steps = unit === "bytes" ? { incrs: Array.from({ length: 40 }, (_, power) => 2 ** power) } : {}
    const axis = { stroke: colour("dim"), ticks: { show: false }, font: "11px system-ui, sans-serif",
      grid: { stroke: colour("grid"), width: 1 } }
    return {
      width, height: this.height(), legend: { show: false }, padding: [6, RIGHT, 0, 0],
      scales: {
        x: { time: false, range: () => shownRange(this.run) },
        y: spec.cores ? { range: [0, spec.cores.length] } : spec.log ? { distr: 3, range: (_, low, high) => logRange(low, high) }
          : { range: (_, __, high) => [0, high > 0 ? high * 1.05 : 1] },
      },
      axes: [
        { ...axis, size: 22, incrs: SECONDS, values: (_, ticks) => ticks.map(moment) },
        spec.cores ? { ...axis, ...coreAxis(spec.cores), size: AXIS, grid: { show: false } } : { ...axis, ...steps, size: AXIS, values: (_, ticks) => ticks.map(tick => tick === null ? "" : show(tick, unit)),
          ...(spec.log ? { filter: decades, grid: { ...axis.grid, filter: decades } } : {}) },
      ],
      series: [{}, ...spec.lines.map(line => ({ ...series(line, spec),
        paths: (plot: uPlot, index: number, from: number, to: number) => this.points.merged ? null : LINEAR(plot, index, from, to) }))],
      bands: spec.stacked ? spec.lines.slice(1).map((_, index) => ({ series: [index + 2, index + 1] as [number, number] })) : [],
      cursor: { sync: { key: SYNC.key, setSeries: false }, drag: { x: true, y: false, setScale: false },
        points: { show: !spec.stacked, size: 5 }, y: false },
      hooks: {
        ready: [plot => plot.over.addEventListener("mousedown", () => { dragged = plot })],
        drawClear: [plot => this.under(plot)],
        draw: [plot => {
          if (this.points.merged) drawBars(plot, this.points, spec)
          this.marks(plot)
        }],
        setCursor: [() => {
          const seconds = this.pointed()
          this.legend(seconds)
          cursor.moved(seconds)
        }],
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

  /** Returns the moment at the cursor. */
  private pointed(): number | null {
    const left = this.plot?.cursor.left
    return this.plot && left != null && left >= 0 ? this.plot.posToVal(left, "x") : null
  }

  /** Shows the values at a moment, or the medians. */
  private legend(seconds: number | null): void {
    const row = seconds === null ? null : nearest(this.run, seconds)
    this.when.textContent = row === null ? "median" : `at ${moment(this.run.time[row] ?? 0)}`
    this.spec.lines.forEach((line, index) => {
      this.cells[index]!.textContent = row === null ? this.medians[index] ?? "–" : show(this.values[index]?.[row], line.unit)
    })
  }

  /** Draws what lies under the lines. */
  private under(plot: uPlot): void {
    const { bbox, ctx, scales: { x } } = plot
    if (x?.min == null || x.max == null) return
    const frame = { ...bbox, from: x.min, to: x.max, y: (value: number) => plot.valToPos(value, "y", true) }
    const map = this.spec.heat && this.run.heat(this.spec.heat)
    if (map) drawHeat(ctx, map, colour("heat"), frame)
    if (this.spec.cores) drawStrips(ctx, this.run.time, this.strips, frame)
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

/** Returns the row whose end is nearest to a moment. */
export function nearest(run: Run, seconds: number): number {
  const { time } = run
  const row = Math.min(lowerBound(time, seconds), run.rows - 1)
  return row > 0 && seconds - time[row - 1]! < time[row]! - seconds ? row - 1 : row
}

/** Returns the median of the known values, or about that of many, and the largest of all. */
function middle(values: Float64Array): [number, number] {
  let most = NaN
  for (const value of values) if (!(value <= most) && !Number.isNaN(value)) most = value
  const step = Math.ceil(values.length / 1000)
  const some = values.filter((value, row) => row % step === 0 && !Number.isNaN(value)).sort()
  return [some[some.length >> 1] ?? NaN, most]
}

/** Puts each line on top of those before it. */
function stack(lines: Float64Array[]): Float64Array[] {
  const stacked: Float64Array[] = []
  for (const line of lines) {
    const below = stacked.at(-1)
    stacked.push(line.map((value, row) => (below?.[row] || 0) + (value || 0)))
  }
  return stacked
}

function series(line: Line, spec: ChartSpec): uPlot.Series {
  const stroke = colour(line.colour)
  return {
    label: line.label, stroke, width: line.colour === "ink" ? 1.75 : 1.25, spanGaps: false, points: { show: false },
    ...(line.hidden ? { show: false } : {}),
    ...(line.dash ? { dash: line.dash === true ? [4, 3] : line.dash } : {}),
    // The colours of the theme have six digits; two more are their opacity.
    ...(line.fill || spec.stacked ? { fill: `${stroke}${spec.stacked ? "99" : "20"}` } : {}),
  }
}

function logRange(low: number | null, high: number | null): [number, number] {
  const from = 10 ** Math.floor(Math.log10(Math.max(low ?? 1, 1)))
  return [from, Math.max((high ?? 10) * 1.4, from * 10)]
}

/** Leaves of the ticks of a logarithmic axis the powers of ten. */
export function decades(_: uPlot, ticks: number[]): (number | null)[] {
  return ticks.map(tick => Number.isInteger(Math.log10(tick)) ? tick : null)
}

/** Returns an axis that names each row of cores, or every n-th where there are many. */
function coreAxis(cores: CoreRow[]): Partial<uPlot.Axis> {
  const step = Math.ceil(cores.length / 20)
  const shown = cores.map((_, index) => index).filter(index => index % step === 0)
  return {
    splits: () => shown.map(index => cores.length - index - 0.5),
    values: () => shown.map(index => cores[index]!.label),
  }
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
