// The page of a comparison: what changed, charts of all runs on one time axis, the differences with
// their intervals, and the plans and machines side by side.

import type uPlot from "uplot"
import { Chart, nearest, shownRange, swatch } from "./chart"
import { percentilePlot, percentilePoints } from "./curve"
import { Run, type PageData, type Value } from "./data"
import { broken, type Child, folded, h, long, recolour, table, text, words } from "./dom"
import { headline } from "./head"
import { micros, moment, show, type Unit } from "./format"
import { lowerBound } from "./levels"
import { OPERATIONS, type ChartSpec, type Line } from "./specs"
import { change, onChange, view } from "./view"

const SCHEMA = "throng.compare/1"

interface Change {
  side: string; difference: Value; ratio: Value; direction: string | null
  shown: string; interval_shown: string
}

interface Comparison {
  sides: { name: string; runs: { name: string; file: string; started: string; scenario: string
                                 target: string; grade: string; intervals: number }[] }[]
  mismatches: { about: string; text: string }[]
  conclusions: { side: string; sentences: string[]; more: number }[]
  method: { name: string; note: string }
  figures: { name: string; label: string; shown: string[]; changes: Change[] }[]
  regressions: { regression: string; side: string; beyond: boolean; text: string }[]
}

interface ComparePage { schema: string; comparison: Comparison; runs: PageData[] }

/** A run of a side, and how its lines are drawn. */
interface Member { name: string; file: string; run: Run; colour: string; dash: number[] }

/** Colours of sides. Their lines differ without colour, too. */
const STYLES: [string, number[]][] = [
  ["blue", [1, 0]], ["orange", [8, 4]], ["green", [2, 3]], ["purple", [10, 3, 2, 3]], ["red", [5, 2]], ["grey", [1, 2]],
]

export function isComparison(data: { schema: string }): data is ComparePage {
  return data.schema === SCHEMA
}

export function showComparison(page: HTMLElement, data: ComparePage): void {
  const shown = new ComparisonParts(data)
  page.replaceChildren(shown.head, shown.bar, shown.charts, shown.rest)
  shown.build()
  onChange(() => shown.draw())
  addEventListener("resize", () => shown.draw())
  addEventListener("beforeprint", () => shown.draw())
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown.build())
  addEventListener("keydown", event => {
    if (event.key === "0" || event.key === "Escape") change({ range: null })
  })
  document.title = `throng: ${data.comparison.sides.map(side => side.runs[0]?.file).join(" and ")}`
}

class ComparisonParts {
  readonly head: HTMLElement
  readonly bar = h("div.bar")
  readonly charts = h("div.charts")
  readonly rest: HTMLElement
  private readonly members: Member[]
  /** The longest run: its rows are those of the charts. */
  private readonly axis: Run
  private readonly place = h("div.plot", { "aria-hidden": "true" })
  private readonly curves = h("section.chart", { id: "percentiles" })
  private plot: uPlot | null = null
  private drawn: Chart[] = []
  private shown = ""

  constructor(data: ComparePage) {
    const { comparison } = data
    const runs = data.runs.map(run => new Run(run))
    let at = 0
    this.members = comparison.sides.flatMap((side, index) => side.runs.map(({ name, file }) => {
      const [colour, dash] = STYLES[index % STYLES.length]!
      return { name, file, run: runs[at++]!, colour, dash }
    }))
    const longest = runs.reduce((one, other) => other.end > one.end ? other : one)
    // Findings of one run are no marks in the charts of all.
    const diagnosis = { verdict: "", findings: [], unseen: [] }
    this.axis = Object.create(longest, { summary: { value: { ...longest.summary, diagnosis } } }) as Run
    this.head = head(comparison, this.members)
    this.rest = h("div.tables", {}, ...differences(comparison), machines(this.members), ...scenarios(this.members),
      h("footer.wide", {}, "All numbers come from the run files. throng compare prints them as text; throng compare --json writes them."))
  }

  build(): void {
    document.documentElement.dataset["theme"] = view.theme ?? ""
    recolour()
    const operation = this.operation()
    this.shown = this.signature()
    this.drawn = this.specs(operation).map(spec => new Chart(this.axis, spec))
    this.charts.replaceChildren(...this.drawn.map(chart => chart.element), this.curves)
    const name = (id: string) => OPERATIONS.find(([known]) => known === id)?.[1] ?? id
    this.curves.replaceChildren(
      h("h2", { title: "The latency that a share of all answers does not exceed, to the last nine that each run shows." }, "Percentiles of ",
        h("select", { "aria-label": "Percentiles and latency of", change: event => change({ operation: (event.target as HTMLSelectElement).value }) },
          this.operations().map(id => h("option", { value: id, selected: id === operation }, name(id))))),
      this.place, h("div.legend", {}, this.percentiles(operation)))
    this.draw(true)
  }

  draw(rebuild = false): void {
    if (!rebuild && this.shown !== this.signature()) return this.build()
    this.bar.replaceChildren(...bar(this.axis))
    const width = this.drawn[0]?.width ?? 0
    for (const chart of this.drawn) chart.draw(width, rebuild)
    if (this.place.clientWidth === 0) return
    this.plot?.destroy()
    const operation = this.operation()
    const lines = this.members.filter(({ run }) => run.curves[operation])
    this.plot = percentilePlot(this.place, lines.map(({ run, colour, dash }) =>
      ({ points: percentilePoints(run.curves[operation]!), colour, dash })))
  }

  private percentiles(operation: string): HTMLElement {
    const at = (run: Run, wanted: number) => {
      const point = run.curves[operation]?.find(([percent]) => percent >= wanted)
      return point ? micros(point[1]) : "–"
    }
    return h("table", { "aria-label": "Percentiles" },
      h("thead", {}, h("tr", {}, h("td"), ["p50", "p99", "max"].map(head => h("th", { scope: "col" }, head)))),
      h("tbody", {}, this.members.map(member => h("tr", {},
        h("th", { scope: "row" }, swatch(member), broken(member.name)),
        [50, 98.99, 100].map(percent => h("td", {}, at(member.run, percent)))))))
  }

  private signature(): string {
    return [view.operation, view.theme].join()
  }

  /** Returns the operations that any run has latencies of. */
  private operations(): string[] {
    return OPERATIONS.map(([id]) => id).filter(id => this.members.some(({ run }) => id in run.curves))
  }

  private operation(): string {
    const known = this.operations()
    return known.find(id => id === view.operation) ?? known[0] ?? "connect"
  }

  private specs(operation: string): ChartSpec[] {
    const rate = (id: string) => (run: Run) => run.rates(id)
    const at = (id: string) => (run: Run) => run.values(id)
    const cpus = (id: string) => (run: Run) => run.perSecond(id).map(us => us / 1e6)
    const errors = (run: Run) => {
      const rates = run.ids("errors.").map(id => run.rates(id))
      return run.time.map((_, row) => rates.length === 0 ? NaN : rates.reduce((sum, rate) => sum + (rate[row] || 0), 0))
    }
    const name = OPERATIONS.find(([id]) => id === operation)?.[1] ?? operation
    const specs = [
      this.spec("latency", `p99 of ${name}`, "us", at(`${operation}.p99`), { log: true, height: 180, help: "The 99th percentile of each second's answers." }),
      this.spec("median", `median of ${name}`, "us", at(`${operation}.p50`), { log: true, help: "The median of each second's answers." }),
      this.spec("users", "Connections", "count", at("load.connected"), { help: "Connections that the users hold." }),
      this.spec("connects", "Connects", "rate", rate("load.connects_ok"), { help: "Connects established each second." }),
      this.spec("messages", "Messages answered", "rate", rate("load.messages_answered"), { help: "Messages answered each second." }),
      this.spec("sent", "Messages sent", "rate", rate("load.messages_sent"), { help: "Messages sent each second." }),
      this.spec("pushes", "Pushes answered", "rate", rate("load.pushes_ok"), { help: "Pushes answered each second." }),
      this.spec("http", "HTTP requests answered", "rate", rate("load.http_ok"), { help: "HTTP requests answered as expected each second." }),
      this.spec("errors", "Errors", "rate", errors, { help: "Errors of all kinds each second." }),
      this.spec("generator", "CPUs used by the generator", "cpus", cpus("load.cpu_us"), { help: "CPU time of the generator per second." }),
      this.spec("server", "CPUs used by the server", "cpus", run => cpus(run.has("server.cpu_us") ? "server.cpu_us" : "kernel.process.server.cpu_us")(run),
        { help: "CPU time of the server per second." }),
      this.spec("lag", "Generator lag, p99", "us", at("lag.p99"), { log: true, height: 90, help: "How much later than intended the generator acted." }),
    ]
    return specs.filter(spec => spec.lines.some(line => this.isKnown(line)))
  }

  private spec(id: string, title: string, unit: Unit, values: Line["values"], more: Partial<ChartSpec> & { help: string }): ChartSpec {
    const lines = this.members.map(({ name, run, colour, dash }): Line => ({
      label: name, unit, colour, dash, id,
      values: axis => {
        const own = values(run)
        return axis.time.map((seconds, row) => largestSince(run, own, row > 0 ? axis.time[row - 1]! : -Infinity, seconds))
      },
    }))
    return { id, title, lines, ...more }
  }

  private isKnown(line: Line): boolean {
    return line.values(this.axis).some(value => value > 0)
  }
}

/** Returns the largest value of a run after `since` and until `seconds`, so that no peak is lost where
 * the axis has longer intervals; that of the nearest row where it has none; NaN after the run's end. */
function largestSince(run: Run, own: Float64Array, since: number, seconds: number): number {
  const last = run.end - (run.time[run.rows - 2] ?? 0)
  if (run.rows === 0 || seconds > run.end + Math.max(last, 0.1) / 2) return NaN
  let most = NaN
  // Two moments of the same second differ by a little.
  const slack = 0.05 * (Number.isFinite(since) ? seconds - since : 0)
  for (let row = lowerBound(run.time, since + slack); row < run.rows && run.time[row]! <= seconds + slack; row++) {
    if (!(own[row]! <= most) && !Number.isNaN(own[row]!)) most = own[row]!
  }
  return Number.isNaN(most) ? own[nearest(run, seconds)] ?? NaN : most
}

function head(comparison: Comparison, members: Member[]): HTMLElement {
  const [first, ...others] = byWeight(comparison)
  const about = (side: string, sentence: string) => `${side} against A: ${sentence}`
  const list = (sentences: string[], more: number) => {
    const all = [...sentences, ...more > 0 ? [`and ${more} more: see the table`] : []]
    return all.length > 0 ? h("ul.reasons", {}, all.map(sentence => h("li", {}, broken(sentence)))) : null
  }
  return h("header.head", {},
    h("p.run", {}, h("b", {}, "throng compare"), members.map(member => [" · ", swatch(member), ` ${member.name} `, broken(member.file)])),
    headline(first ? `${about(first.side, first.sentences[0] ?? "")}.` : "There is nothing to compare."),
    first ? list(first.sentences.slice(1), first.more) : null,
    others.map(({ side, sentences, more }) => list(sentences.map(sentence => about(side, sentence)), more)),
    comparison.mismatches.length > 0 ? [h("h2", {}, "Before you compare"),
      h("ul.reasons", {}, comparison.mismatches.map(({ text }) => h("li", {}, broken(text))))] : null,
    comparison.regressions.length > 0 ? [h("h2", {}, "Regressions"),
      h("ul.reasons", {}, comparison.regressions.map(({ regression, side, beyond, text }) =>
        h("li", {}, h(beyond ? "b.bad" : "b", {}, beyond ? "beyond" : "within"), broken(` ${regression} in ${side}: ${text}`))))] : null,
    h("p.note", {}, comparison.method.note))
}

/** Returns the conclusions, that of the largest change first: for the worse, then for the better. */
function byWeight({ conclusions, figures }: Comparison): Comparison["conclusions"] {
  const weights = conclusions.map((_, at) => Math.max(0, ...figures.map(({ changes }) => {
    const { direction, ratio } = changes[at]!
    const size = ratio !== null && ratio > 0 ? Math.abs(Math.log(ratio)) : 0
    // The logarithm of the largest number is less than a thousand.
    return direction === "worse" ? 1000 + size : direction === "better" ? size : 0
  })))
  return conclusions.map((_, at) => at).sort((one, other) => weights[other]! - weights[one]!).map(at => conclusions[at]!)
}

function bar(axis: Run): HTMLElement[] {
  const [from, to] = shownRange(axis)
  return [
    h("span.shown", {}, view.range ? `${moment(from)} to ${moment(to)}` : `${moment(axis.end)}, all of it`),
    h("button", { type: "button", disabled: view.range === null, click: () => change({ range: null }) }, "whole run"),
    h("button", { type: "button", title: "light, dark, or as the system has it", click: () =>
      change({ theme: view.theme === null ? "dark" : view.theme === "dark" ? "light" : null }) }, `theme: ${view.theme ?? "system"}`),
    h("span.keys", {}, "drag to zoom · 0 whole run"),
  ]
}

/** The verdict and its interval stand first: on a phone the values come after them. */
function differences(comparison: Comparison): HTMLElement[] {
  return comparison.conclusions.map(({ side }, index) => table(`${side} against A`,
    ["", words("verdict"), words("change"), words("95 % interval"), "A", side],
    comparison.figures.map(({ label, shown, changes }) => {
      const { shown: changed, interval_shown, direction } = changes[index]!
      return [label, direction ? h("span", { class: direction === "worse" ? "bad" : "better" }, direction) : "",
        changed, interval_shown, shown[0], shown[index + 1]]
    })))
}

function machines(members: Member[]): Child {
  const rows: [string, (run: Run) => string | undefined][] = [
    ["scenario", run => run.header.scenario.path], ["target", run => run.header.target],
    ["started", run => run.header.started], ["throng", run => run.header.throng_version],
    ["grade", run => run.summary.validity.grade], ["length", run => moment(run.summary.duration_s)],
    ["users planned", run => show(run.header.users_planned, "count")],
    ["server", run => run.summary.server ? `${run.summary.server.handler}, ${run.summary.server.accept}, ${run.summary.server.cores} cores` : undefined],
    ["command", run => run.header.command.join(" ")],
  ]
  const facts = new Set(members.flatMap(({ run }) => Object.keys(run.header.machine ?? {})))
  for (const fact of [...facts].sort()) rows.push([fact, run => run.header.machine?.[fact]])
  const all = rows.map(([name, value]) => ({ name, values: members.map(({ run }) => value(run) ?? "–") }))
  const differs = ({ values }: { values: string[] }) => new Set(values).size > 1
  const same = all.filter(row => !differs(row)).map(({ name, values }) => [name, long(values[0]!)])
  return [
    table("Plans and machines: what differs", ["", ...members.map(({ name }) => text(name))],
      all.filter(differs).map(({ name, values }) => [name, ...values.map(long)])),
    same.length > 0 ? folded(table("Plans and machines: what is the same", ["", text("")], same)) : null,
  ]
}

function scenarios(members: Member[]): HTMLElement[] {
  const texts = new Map<string, string[]>()
  for (const { name, run } of members) {
    const { source } = run.header.scenario
    texts.set(source, [...texts.get(source) ?? [], name])
  }
  return [...texts].map(([source, names]) => h("section.table.wide", {}, h("h2", {}, `Scenario of ${names.join(", ")}`),
    h("pre.scroll", { tabindex: "0", role: "region", "aria-label": `Scenario of ${names.join(", ")}` }, source)))
}
