import "uplot/dist/uPlot.min.css"
import "./style.css"
import { Band } from "./band"
import { Chart, shownRange } from "./chart"
import { isComparison, showComparison } from "./compare"
import { Distribution } from "./curve"
import { Run, unpacked } from "./data"
import { h } from "./dom"
import { figures, head } from "./head"
import { moment } from "./format"
import { chartsOf, operationsOf } from "./specs"
import { tables } from "./tables"
import { change, onChange, view } from "./view"

const page = document.getElementById("page")!

function show(run: Run): void {
  const parts = new Parts(run)
  page.replaceChildren(parts.head, parts.bar, parts.charts, parts.rest)
  parts.build()
  onChange(() => parts.draw())
  addEventListener("resize", () => parts.draw())
  addEventListener("beforeprint", () => parts.draw())
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => parts.build())
  addEventListener("keydown", event => key(run, event))
  document.title = `throng: ${run.header.scenario.path || run.header.target}`
}

/** The parts of the page, in their order. */
class Parts {
  readonly head = h("div")
  readonly bar = h("div.bar")
  readonly charts = h("div.charts")
  readonly rest = h("div")
  private readonly band: Band
  private drawn: Chart[] = []
  private distributions: Distribution[] = []
  private shown = ""

  constructor(private readonly run: Run) {
    this.band = new Band(run)
  }

  /** Builds everything anew: at the start, and when the run or the theme is another. */
  build(): void {
    document.documentElement.dataset["theme"] = view.theme ?? ""
    const { run } = this
    const operations = operationsOf(run)
    const operation = operations.some(([id]) => id === view.operation) ? view.operation! : operations[0]?.[0] ?? "connect"
    const specs = chartsOf(run, operation)
    this.shown = this.signature()
    this.head.replaceChildren(head(run), figures(run))
    this.drawn = specs.map(spec => new Chart(run, spec))
    this.charts.replaceChildren(this.band.element, ...this.drawn.map(chart => chart.element))
    this.drawn.find(chart => chart.spec.id === "latency")?.element.querySelector("h2")?.append(choice(operations, operation))
    this.distributions = (["percentiles", "broadcast"] as const)
      .filter(kind => Distribution.has(run, kind)).map(kind => new Distribution(run, kind))
    this.rest.replaceChildren(h("div.distributions", {}, this.distributions.map(one => one.element)), tables(run), foot(run))
    this.draw(true)
  }

  draw(rebuild = false): void {
    if (!rebuild && this.shown !== this.signature()) return this.build()
    this.bar.replaceChildren(...bar(this.run))
    this.band.draw()
    for (const chart of this.drawn) chart.draw(rebuild)
    for (const distribution of this.distributions) distribution.draw()
  }

  /** What decides which charts there are. */
  private signature(): string {
    const moving = this.run.ids("").filter(id => this.run.moves(id))
    return [view.operation, view.theme, ...moving].join()
  }
}

function choice(operations: [string, string][], operation: string): HTMLElement {
  return h("select", { "aria-label": "Latency of", change: event => change({ operation: (event.target as HTMLSelectElement).value }) },
    operations.map(([id, name]) => h("option", { value: id, selected: id === operation }, name)))
}

function bar(run: Run): HTMLElement[] {
  const [from, to] = shownRange(run)
  return [
    h("span.shown", {}, view.range ? `${moment(from)} to ${moment(to)}` : `${moment(run.end)}, all of it`),
    h("button", { type: "button", disabled: view.range === null, click: () => change({ range: null }) }, "whole run"),
    h("button", { type: "button", title: "light, dark, or as the system has it", click: () =>
      change({ theme: view.theme === null ? "dark" : view.theme === "dark" ? "light" : null }) }, `theme: ${view.theme ?? "system"}`),
    h("span.keys", {}, "drag to zoom · ← → + − move · 0 whole run"),
  ]
}

function foot(run: Run): HTMLElement {
  return h("footer", {}, run.intervalsPerRow > 1 ? `Each point covers ${run.intervalsPerRow} intervals of the run file: growths are summed, and percentiles are the highest of them. ` : "",
    "All numbers come from the run file. throng report prints them as text; throng report --json writes them.")
}

function key(run: Run, event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || (event.target as Element).closest?.("input, select, .scroll")) return
  const [from, to] = shownRange(run)
  const span = to - from
  const move = (from: number, to: number) => {
    const begin = Math.max(Math.min(from, run.end - (to - from)), 0)
    const end = Math.min(begin + (to - from), run.end)
    change({ range: end - begin >= run.end ? null : [begin, end] })
  }
  switch (event.key) {
    case "ArrowLeft": return move(from - span / 4, to - span / 4)
    case "ArrowRight": return move(from + span / 4, to + span / 4)
    case "+": case "=": return move(from + span / 4, to - span / 4)
    case "-": return move(from - span / 2, to + span / 2)
    case "0": case "Escape": return change({ range: null })
  }
}

try {
  const data = await unpacked()
  if (isComparison(data)) showComparison(page, data)
  else show(new Run(data))
} catch (error) {
  page.replaceChildren(h("p.failure", { role: "alert" }, `This page cannot show the run: ${(error as Error).message}`))
}
