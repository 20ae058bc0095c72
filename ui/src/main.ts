import "uplot/dist/uPlot.min.css"
import "./style.css"
import { Band } from "./band"
import { act, Bar } from "./bar"
import { Chart, cursor, nearest, shownRange } from "./chart"
import { isComparison, showComparison } from "./compare"
import { Distribution } from "./curve"
import { Run, unpacked } from "./data"
import { h, recolour } from "./dom"
import { figures, head } from "./head"
import { type Drawing, Lazy } from "./lazy"
import { isLive, Live } from "./live"
import { isSearch, showSearch } from "./search"
import { chartsOf, hasBroadcasts, operationsOf } from "./specs"
import { tables } from "./tables"
import { change, onChange, view } from "./view"

const page = document.getElementById("page")!

/** What is shown now. A live page may show one run after the other. */
let shown: Parts | null = null

function show(run: Run, live?: HTMLElement): void {
  const parts = new Parts(run)
  shown = parts
  page.replaceChildren(...(live ? [live] : []), parts.head, parts.bar.element, parts.charts, parts.rest)
  parts.build()
  document.title = `throng: ${[run.title, run.header.scenario.path || run.header.target].filter(Boolean).join(" · ")}`
}

onChange(() => shown?.draw())
let windowWidth = innerWidth
addEventListener("resize", () => {
  // A phone's address bar that comes and goes changes the height alone.
  if (innerWidth !== windowWidth) shown?.draw()
  windowWidth = innerWidth
})
addEventListener("beforeprint", () => {
  // Paper cannot be opened.
  for (const details of document.querySelectorAll("details")) details.open = true
  shown?.drawOnPaper()
})
addEventListener("afterprint", () => shown?.drawOnScreen())
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown?.build())
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || (event.target as Element).closest?.("input, select, .scroll")) return
  if (shown && (act(shown.run, event.key) || shown.key(event.key))) event.preventDefault()
})
// A drag would be lost if a chart were drawn in the middle of it.
let isDragging = false
addEventListener("mousedown", () => { isDragging = true }, true)
addEventListener("mouseup", () => {
  isDragging = false
  setTimeout(() => shown?.grow())
}, true)

/** The parts of the page, in their order. */
class Parts {
  readonly head = h("div")
  readonly bar: Bar
  readonly charts = h("div.charts")
  readonly rest = h("div")
  private readonly band: Band
  private readonly lazy = new Lazy()
  private drawn: Chart[] = []
  private operations: [string, string][] = []
  private pointed: number | null = null
  private shown = ""
  private frame = 0
  private distributions: Distribution[] = []
  private news = new Set<"rows" | "summary" | "end">()
  private isPaper = false

  constructor(readonly run: Run) {
    this.bar = new Bar(run)
    this.band = new Band(run)
    cursor.moved = seconds => {
      this.pointed = seconds
      this.bar.point(seconds)
    }
  }

  /** Builds everything anew: at the start, and when the run or the theme is another. */
  build(): void {
    this.setTheme()
    recolour()
    const { run } = this
    this.operations = operationsOf(run)
    const operation = this.operation()
    this.shown = this.signature()
    this.buildHead()
    const { charts: specs, note } = chartsOf(run, operation)
    this.drawn = specs.map(spec => new Chart(run, spec))
    this.charts.replaceChildren(this.band.element, ...this.drawn.map(chart => chart.element),
      note ? h("p.note.flat", {}, note) : "")
    this.drawn.find(chart => chart.spec.id === "latency")?.element.querySelector("h2")?.append(choice(this.operations, operation))
    // All charts are as wide as the first.
    let width = 0
    const charts: Drawing[] = this.drawn.map(chart => ({
      element: chart.element, draw: rebuild => chart.draw(width, rebuild) }))
    this.measure = () => { width = this.drawn[0]?.width ?? 0 }
    this.measure()
    this.lazy.clear()
    this.lazy.watch(charts)
    this.bar.draw()
    this.drawCharts()
    // What is far below waits until the first screen is there.
    requestAnimationFrame(() => setTimeout(() => this.buildRest()))
  }

  private buildHead(): void {
    this.head.replaceChildren(head(this.run), figures(this.run))
  }

  /** Shows what is new in a run that goes on, at most once a frame and never during a drag. */
  grow(what?: "rows" | "summary" | "end"): void {
    const isPending = this.news.size > 0 && what !== undefined
    if (what) this.news.add(what)
    if (!isPending && this.news.size > 0 && !isDragging) requestAnimationFrame(() => this.drawNews())
  }

  private drawNews(): void {
    if (isDragging || shown !== this) return
    const { news } = this
    this.news = new Set()
    if (news.has("end")) return this.build()
    // An update must not take away what a reader has in hand.
    const isInHand = (element: HTMLElement) => element.contains(document.activeElement) || isSelected(element)
    if (news.has("summary") && !isInHand(this.head)) this.buildHead()
    else this.head.lastElementChild?.replaceWith(figures(this.run))
    if (news.has("summary") && !isInHand(this.rest)) {
      const places = [...this.rest.querySelectorAll(".scroll")].map(place => [place.scrollLeft, place.scrollTop] as const)
      this.rest.style.minHeight = `${this.rest.offsetHeight}px`
      this.buildRest()
      this.rest.style.minHeight = ""
      this.rest.querySelectorAll(".scroll").forEach((place, index) => place.scrollTo(...(places[index] ?? [0, 0])))
    }
    this.draw()
  }

  private buildRest(): void {
    const { run } = this
    this.lazy.unwatch(this.distributions)
    this.distributions = (["percentiles", "broadcast"] as const)
      .filter(kind => Distribution.has(run, kind)).map(kind => new Distribution(run, kind))
    this.rest.replaceChildren(h("div.distributions", {}, this.distributions.map(one => one.element)), tables(run), foot(run))
    this.lazy.watch(this.distributions)
  }

  private measure = (): void => {}

  /** Draws the change of the view: the bar at once, the charts once a frame, however many changes come. */
  draw(): void {
    this.setTheme()
    this.bar.draw()
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0
      this.drawCharts()
    })
  }

  private drawCharts(): void {
    if (this.shown !== this.signature()) return this.build()
    this.measure()
    this.band.draw()
    this.lazy.draw()
  }

  /** Draws everything in the light theme. */
  drawOnPaper(): void {
    this.isPaper = true
    this.setTheme()
    recolour()
    this.measure()
    this.lazy.drawAll()
  }

  drawOnScreen(): void {
    this.isPaper = false
    this.build()
  }

  /** Paper is light. */
  private setTheme(): void {
    document.documentElement.dataset["theme"] = this.isPaper ? "light" : view.theme ?? ""
  }

  /** Does what keys do to the charts. Returns whether a key does anything. */
  key(key: string): boolean {
    const { run } = this
    if (key === "," || key === ".") {
      const [from, to] = shownRange(run)
      const row = nearest(run, this.pointed ?? from)
      const step = Math.max(Math.round((nearest(run, to) - nearest(run, from)) / 200), 1)
      // The first press shows the first row in sight.
      const next = this.pointed === null ? run.time.find(seconds => seconds >= from) : run.time[row + (key === "." ? step : -step)]
      if (next !== undefined && next >= from && next <= to) this.drawn.find(chart => chart.isDrawn)?.point(next)
      return true
    }
    if (key !== "l") return false
    const index = this.operations.findIndex(([id]) => id === this.operation())
    change({ operation: this.operations[(index + 1) % this.operations.length]?.[0] ?? null })
    return true
  }

  private operation(): string {
    const { operations } = this
    return operations.some(([id]) => id === view.operation) ? view.operation! : operations[0]?.[0] ?? "connect"
  }

  /** What decides which charts there are. */
  private signature(): string {
    const moving = this.run.ids("").filter(id => this.run.moves(id))
    return [view.operation, view.theme, hasBroadcasts(this.run), ...moving].join()
  }
}

function isSelected(element: HTMLElement): boolean {
  const selection = getSelection()
  return selection !== null && !selection.isCollapsed && element.contains(selection.anchorNode)
}

function choice(operations: [string, string][], operation: string): HTMLElement {
  return h("select", { "aria-label": "Latency of", change: event => change({ operation: (event.target as HTMLSelectElement).value }) },
    operations.map(([id, name]) => h("option", { value: id, selected: id === operation }, name)))
}

function foot(run: Run): HTMLElement {
  return h("footer", {}, run.intervalsPerRow > 1 ? `Each point covers ${run.intervalsPerRow} intervals of the run file: growths are summed, and percentiles are the highest of them. ` : "",
    "All numbers come from the run file. throng report prints them as text; throng report --json writes them.")
}

/** Shows a run that goes on, as long as this page is open. */
async function showLive(): Promise<void> {
  const live = new Live({
    show: (run, isNext) => {
      show(run, live.element)
      if (isNext) change({ range: null })
    },
    grow: what => shown?.grow(what),
  })
  page.replaceChildren(h("h1", {}, "throng"), live.element)
  await live.fetch()
}

try {
  if (isLive()) await showLive()
  else {
    const data = await unpacked()
    if (isComparison(data)) showComparison(page, data)
    else if (isSearch(data)) showSearch(page, data)
    else show(new Run(data))
  }
} catch (error) {
  page.replaceChildren(h("p.failure", { role: "alert" }, `This page cannot show the run: ${(error as Error).message}`))
}
