// One chart of a search: a figure of each run over the values of the knob, its limit, and the value
// that was found. The marks differ by shape, not by colour alone.

import uPlot from "uplot"
import { decades } from "./chart"
import { axis } from "./curve"
import type { Value } from "./data"
import { colour, h, svg } from "./dom"
import { count, show, type Unit } from "./format"
import { change } from "./view"

export type Mark = "met" | "missed" | "doubtful"

export interface KneeFigure { name: string; condition: string | null; unit: string; limit: Value }

/** The knob, and the value that was found. */
export interface KneeAxis { name: string; unit: string; found: Value; foundShown: string | null }

export interface KneePoint { number: number; x: number; shownX: string; y: Value; shownY: string | null; mark: Mark }

const COLOURS: Record<Mark, string> = { met: "blue", missed: "red", doubtful: "orange" }
const UNITS: Record<string, Unit> = { us: "us", count: "count", per_second: "rate", share: "share", bytes: "bytes" }

export class Knee {
  readonly element: HTMLElement
  private readonly place = h("div.plot.knee", { "aria-hidden": "true" })
  private readonly said = h("p.note", { role: "status" })
  private plot: uPlot | null = null
  private pointed: number | null = null

  constructor(private readonly knob: KneeAxis, readonly figure: KneeFigure, id: string,
    private readonly points: KneePoint[], private readonly select: (run: number | null) => void, private readonly isFirst = false) {
    this.element = h("section.chart", { id },
      h("h2", {}, h("span", {}, figure.name, h("small", {}, ` ${figure.condition?.slice(figure.name.length).trim() ?? ""} over ${knob.name}`))),
      this.place, h("div.legend", {}, this.said))
  }

  /** Returns a value of a figure as text. */
  static show(value: Value | undefined, unit: string): string {
    return show(value ?? null, UNITS[unit] ?? "count")
  }

  /** Whether any run measured the figure. */
  get hasPoints(): boolean {
    return this.known().length > 0
  }

  draw(range: [number, number] | null, pointed: number | null): void {
    const width = this.place.clientWidth
    if (width === 0) return
    this.pointed = pointed
    this.plot?.destroy()
    const line = this.line()
    this.plot = new uPlot(this.options(width, range), [[...line.keys()], [...line.values()]], this.place)
    this.place.dataset["points"] = String(this.known().length)
    this.say()
  }

  /** Shows a run. */
  point(run: number | null): void {
    this.pointed = run
    this.plot?.redraw(false)
    this.say()
  }

  private known(): KneePoint[] {
    return this.points.filter(({ y }) => y !== null)
  }

  /** Returns the line: the mean of the runs of each value, by the value. */
  private line(): Map<number, number> {
    const at = new Map<number, number[]>()
    for (const { x, y } of [...this.known()].sort((one, other) => one.x - other.x)) at.set(x, [...at.get(x) ?? [], y!])
    return new Map([...at].map(([x, all]) => [x, all.reduce((sum, y) => sum + y, 0) / all.length]))
  }

  /** Whether small values would not be seen beside the large ones. */
  private isLog(): boolean {
    const all = [...this.known().map(({ y }) => y!), ...this.figure.limit === null ? [] : [this.figure.limit]]
    return all.every(y => y > 0) && Math.max(...all) > 50 * Math.min(...all)
  }

  private options(width: number, range: [number, number] | null): uPlot.Options {
    const { figure } = this
    const text = (value: number) => Knee.show(value, figure.unit)
    const isLog = this.isLog()
    const most = Math.max(...this.points.map(({ x }) => x), 0)
    const limit = figure.limit ?? 0
    return {
      width, height: 190, legend: { show: false }, padding: [14, 24, 0, 0],
      scales: {
        x: { time: false, range: () => range ?? [0, most * 1.05 || 1] },
        y: isLog ? { distr: 3, range: (_, low, high) => [decade(Math.min(low || limit, limit || Infinity)), Math.max(high ?? limit, limit) * 1.5 || 10] }
          : { range: (_, __, high) => [0, Math.max(high ?? 0, limit) * 1.1 || 1] },
      },
      axes: [
        { ...axis(), size: 22, values: (_, ticks) => ticks.map(tick => `${count(tick)}${this.knob.unit}`) },
        { ...axis(), size: 76, values: (_, ticks) => ticks.map(tick => tick === null ? "" : text(tick)),
          ...(isLog ? { filter: decades, grid: { ...axis().grid, filter: decades } } : {}) },
      ],
      series: [{}, { stroke: colour("grey"), width: 1, points: { show: false } }],
      cursor: { y: false, drag: { x: true, y: false, setScale: false }, points: { show: false } },
      hooks: {
        draw: [plot => this.marks(plot)],
        setCursor: [plot => this.hover(plot)],
        setSelect: [plot => {
          if (plot.select.width < 4) return
          const zoom: [number, number] = [plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x")]
          change({ range: zoom })
        }],
      },
    }
  }

  /** Points at the run that is nearest to the cursor. */
  private hover(plot: uPlot): void {
    const { left, top } = plot.cursor
    if (left == null || top == null || left < 0) return
    const distance = ({ x, y }: KneePoint) => Math.hypot(plot.valToPos(x, "x") - left, (plot.valToPos(y!, "y") - top) / 4)
    const [nearest] = [...this.known()].sort((one, other) => distance(one) - distance(other))
    if (nearest) this.select(nearest.number - 1)
  }

  private say(): void {
    const run = this.pointed === null ? undefined : this.points[this.pointed]
    const { name } = this.knob
    const limit = this.figure.limit === null ? "" : `limit ${Knee.show(this.figure.limit, this.figure.unit)}`
    this.said.textContent = run === undefined ? limit
      : `run ${run.number}, ${name} ${run.shownX}: ${run.shownY ?? Knee.show(run.y, this.figure.unit)}, ${run.mark}`
  }

  /** Draws the limit, the value that was found, and the runs. */
  private marks(plot: uPlot): void {
    const { ctx, bbox: { left, top, width, height } } = plot
    const unit = devicePixelRatio
    ctx.save()
    ctx.font = `${11 * unit}px system-ui, sans-serif`
    const across = (ends: [number, number, number, number], name: string, text: string, place: [number, number, CanvasTextAlign]) => {
      ctx.strokeStyle = ctx.fillStyle = colour(name)
      ctx.lineWidth = unit
      ctx.setLineDash([5 * unit, 4 * unit])
      ctx.beginPath()
      ctx.moveTo(ends[0], ends[1])
      ctx.lineTo(ends[2], ends[3])
      ctx.stroke()
      ctx.textAlign = place[2]
      ctx.fillText(text, place[0], place[1])
    }
    const { limit } = this.figure
    if (limit !== null) {
      const y = plot.valToPos(limit, "y", true)
      if (y >= top && y <= top + height) across([left, y, left + width, y], "red", "limit", [left + 4 * unit, y - 4 * unit, "left"])
    }
    const { found, foundShown } = this.knob
    if (found !== null) {
      const x = plot.valToPos(found, "x", true)
      if (x >= left && x <= left + width) {
        across([x, top, x, top + height], "good", this.isFirst ? `found ${foundShown ?? found}` : "found", [x, top - 4 * unit, x > left + width / 2 ? "right" : "left"])
      }
    }
    ctx.setLineDash([])
    ctx.beginPath()
    ctx.rect(left - 7 * unit, top - 7 * unit, width + 14 * unit, height + 14 * unit)
    ctx.clip()
    for (const { number, x, y, mark } of this.known()) {
      const isPointed = this.pointed === number - 1
      drawMark(ctx, mark, plot.valToPos(x, "x", true), plot.valToPos(y!, "y", true), (isPointed ? 7 : 4.5) * unit, (isPointed ? 2.5 : 1.75) * unit)
    }
    ctx.restore()
  }
}

/** Returns the power of ten at or below a value: a logarithmic axis has its ticks there, and none at 0. */
function decade(value: number): number {
  return value > 0 && Number.isFinite(value) ? 10 ** Math.floor(Math.log10(value)) : 1
}

/** A dot is met, a cross is missed, an empty diamond is doubtful. */
function drawMark(ctx: CanvasRenderingContext2D, mark: Mark, x: number, y: number, size: number, thick: number): void {
  ctx.strokeStyle = ctx.fillStyle = colour(COLOURS[mark])
  ctx.lineWidth = thick
  ctx.beginPath()
  if (mark === "met") {
    ctx.arc(x, y, size * 0.9, 0, 2 * Math.PI)
    ctx.fill()
  } else if (mark === "missed") {
    ctx.moveTo(x - size, y - size)
    ctx.lineTo(x + size, y + size)
    ctx.moveTo(x + size, y - size)
    ctx.lineTo(x - size, y + size)
    ctx.stroke()
  } else {
    ctx.moveTo(x, y - 1.3 * size)
    ctx.lineTo(x + 1.3 * size, y)
    ctx.lineTo(x, y + 1.3 * size)
    ctx.lineTo(x - 1.3 * size, y)
    ctx.closePath()
    ctx.fillStyle = colour("paper")
    ctx.fill()
    ctx.stroke()
  }
}

/** Returns a mark for a text. */
export function glyph(mark: Mark): Element {
  const style = { fill: "none", stroke: `var(--${COLOURS[mark]})`, "stroke-width": 1.75 }
  const shape = mark === "met" ? svg("circle", { cx: 6, cy: 6, r: 4, fill: `var(--${COLOURS[mark]})` })
    : svg("path", { d: mark === "missed" ? "M2 2 10 10M10 2 2 10" : "M6 1 11 6 6 11 1 6Z", ...style })
  return svg("svg", { class: `mark ${mark}`, viewBox: "0 0 12 12", "aria-hidden": "true" }, shape)
}
