// The page of a search for a limit: the result, the knee of each condition over the values of the
// knob, and a table of the runs.

import { broken, h, long, recolour, table, text, words } from "./dom"
import type { Judgement, Value } from "./data"
import { headline } from "./head"
import { Knee, glyph, type KneeFigure, type Mark } from "./knee"
import { change, onChange, view } from "./view"

const SCHEMA = "throng.search/1"

interface SearchPage {
  schema: string; sentence: string; why: string | null; warning: string | null
  found: Value; found_shown: string | null
  conditions: KneeFigure[]; reached: KneeFigure[]
  runs: { value: string; mark: Mark; usage: string | null }[]
  search: {
    header: {
      scenario: { path: string; source: string }; knob: string; unit: string; slo: string[]; flags: string[]
      rules: { first: number; most: Value; precision: number; steps_max: number; repeats: number; hysteresis: number }
    }
    runs: { value: number; outcome: string; grade: string | null; judgements: Judgement[]; verdict: string; run_file: string
            reached?: Record<string, number> }[]
    end: { end: string } | null
  }
}

const MARKS: [Mark, string][] = [["met", "met"], ["missed", "missed"], ["doubtful", "doubtful"]]

export function isSearch(data: { schema: string }): data is SearchPage {
  return data.schema === SCHEMA
}

export function showSearch(page: HTMLElement, data: SearchPage): void {
  const shown = new SearchParts(data)
  page.replaceChildren(shown.head, shown.bar, shown.charts, shown.rest)
  shown.build()
  onChange(() => shown.draw())
  addEventListener("resize", () => shown.draw())
  addEventListener("beforeprint", () => shown.build(true))
  addEventListener("afterprint", () => shown.build())
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown.build())
  addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || (event.target as Element).closest?.("input, select, .scroll")) return
    if (shown.key(event.key)) event.preventDefault()
  })
  document.title = `throng: ${data.sentence}`
}

class SearchParts {
  readonly head: HTMLElement
  readonly bar = h("div.bar")
  readonly charts: HTMLElement
  readonly rest: HTMLElement
  private readonly knees: Knee[]
  /** The runs in the order of their values. */
  private readonly order: number[]
  /** The run that the reader points at. */
  private pointed: number | null = null
  private theme: string | null = null

  constructor(private readonly data: SearchPage) {
    const { search, conditions, reached, runs } = data
    this.order = search.runs.map((_, index) => index).sort((one, other) => search.runs[one]!.value - search.runs[other]!.value)
    const point = (value: (index: number) => Value | undefined, shown: (index: number) => string | undefined) =>
      runs.map((run, index) => ({ number: index + 1, x: search.runs[index]!.value, shownX: run.value, mark: run.mark,
        y: value(index) ?? null, shownY: shown(index) ?? null }))
    const axis = { name: search.header.knob, unit: search.header.unit, found: data.found, foundShown: data.found_shown }
    const select = (run: number | null) => this.point(run)
    this.knees = [
      ...conditions.map((figure, at) => new Knee(axis, figure, `condition-${at + 1}`,
        point(index => search.runs[index]!.judgements[at]?.value, index => search.runs[index]!.judgements[at]?.measured), select, at === 0)),
      ...reached.map(figure => new Knee(axis, figure, `reached-${figure.name.replaceAll(".", "-")}`,
        point(index => search.runs[index]!.reached?.[figure.name], () => undefined), select)),
    ].filter(knee => knee.hasPoints)
    this.head = head(data)
    this.charts = h("div.charts", {}, runs.length > 0 ? legend(data) : null, this.knees.map(knee => knee.element))
    this.rest = h("div.tables", {}, runs.length > 0 ? this.runs() : null, verdicts(data, this.order), plan(data),
      h("section.table.wide", {}, h("h2", {}, "Scenario"),
        h("pre.scroll", { tabindex: "0", role: "region", "aria-label": "Scenario" }, search.header.scenario.source)),
      h("footer.wide", {}, "All numbers come from the file of the search. throng report prints them as text; throng report --format json writes them."))
  }

  build(isPaper = false): void {
    document.documentElement.dataset["theme"] = isPaper ? "light" : view.theme ?? ""
    recolour()
    this.theme = view.theme
    this.draw(true)
  }

  draw(rebuild = false): void {
    if (!rebuild && this.theme !== view.theme) return this.build()
    this.bar.replaceChildren(
      h("button", { type: "button", disabled: view.range === null, click: () => change({ range: null }) }, "all values"),
      h("button", { type: "button", title: "light, dark, or as the system has it", click: nextTheme }, `theme: ${view.theme ?? "system"}`),
      h("span.keys", {}, "drag to zoom · 0 all values · , . next run · t theme"))
    for (const knee of this.knees) knee.draw(view.range, this.pointed)
  }

  /** Does what a key does. Returns whether it does anything. */
  key(key: string): boolean {
    switch (key) {
      case "0": case "Escape": change({ range: null }); return true
      case "t": nextTheme(); return true
      case ",": case ".": {
        const at = this.pointed === null ? -1 : this.order.indexOf(this.pointed)
        const step = key === "." ? 1 : -1
        const next = at < 0 ? (step > 0 ? 0 : this.order.length - 1) : Math.min(Math.max(at + step, 0), this.order.length - 1)
        this.point(this.order[next] ?? null)
        return true
      }
      default: return false
    }
  }

  /** Shows one run in all charts and in the table. */
  private point(run: number | null): void {
    if (run === this.pointed) return
    this.pointed = run
    for (const knee of this.knees) knee.point(run)
    this.rest.querySelectorAll("#runs tbody tr").forEach((row, at) => {
      if (this.order[at] === run) row.setAttribute("aria-current", "true")
      else row.removeAttribute("aria-current")
    })
  }

  private runs(): HTMLElement {
    const { search, conditions, reached, runs } = this.data
    const hasUsage = runs.some(({ usage }) => usage !== null)
    const element = table("Runs", ["run", search.header.knob, words("outcome"), words("grade"), ...conditions.map(({ condition, name }) => condition ?? name),
      ...hasUsage ? ["of the limit"] : [], ...reached.map(({ name }) => name), words("run file")],
      this.order.map(index => {
        const [run, shown] = [search.runs[index]!, runs[index]!]
        return [String(index + 1), shown.value,
          h("span.outcome", {}, glyph(shown.mark), run.outcome, shown.mark === "doubtful" && run.outcome !== "invalid" ? ", close" : ""),
          run.grade, ...conditions.map((_, at) => run.judgements[at]?.measured), ...hasUsage ? [shown.usage] : [],
          ...reached.map(({ name, unit }) => Knee.show(run.reached?.[name], unit)), run.run_file ? h("code", {}, broken(run.run_file)) : null]
      }), "In the order of the values. throng report and the name of a run file show that run.")
    element.id = "runs"
    return element
  }
}

function nextTheme(): void {
  change({ theme: view.theme === null ? "dark" : view.theme === "dark" ? "light" : null })
}

function head({ sentence, why, warning, search }: SearchPage): HTMLElement {
  const { knob, slo, scenario } = search.header
  return h("header.head", {},
    h("p.run", {}, h("b", {}, "throng find"), ` · ${scenario.path} · ${knob} · ${slo.join(", ")}`),
    headline(`${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`),
    search.end ? null : h("p.measurement", {}, h("span", { class: "grade incomplete" }, "not ended")),
    why || warning ? h("ul.reasons", {}, [why, warning].filter(line => line !== null).map(line => h("li", {}, long(line)))) : null)
}

function legend({ runs, search }: SearchPage): HTMLElement {
  const of = (wanted: Mark) => runs.filter(({ mark }) => mark === wanted).length
  const band = `within ${Math.round(search.header.rules.hysteresis * 100)} % of the limit, or invalid: such a run decides nothing alone`
  return h("p.note.marks", {}, MARKS.filter(([mark]) => of(mark) > 0).map(([mark, name]) =>
    h("span", {}, glyph(mark), `${name} ${of(mark)}${mark === "doubtful" ? ` (${band})` : ""}`)))
}

/** The verdict of each run; runs in a row that have the same one share a row. */
function verdicts({ search, runs }: SearchPage, order: number[]): HTMLElement | null {
  if (runs.length === 0) return null
  const groups: { verdict: string; members: number[] }[] = []
  for (const index of order) {
    const { verdict } = search.runs[index]!
    const same = groups.find(group => withoutNumbers(group.verdict) === withoutNumbers(verdict))
    if (same) same.members.push(index)
    else groups.push({ verdict, members: [index] })
  }
  return table("Verdicts", [search.header.knob, text("verdict"), words("")], groups.map(({ verdict, members }) => {
    const values = [...new Set(members.map(index => runs[index]!.value))]
    const isSame = members.every(index => search.runs[index]!.verdict === verdict)
    return [values.length > 1 ? `${values[0]} to ${values.at(-1)}` : values[0],
      [long(verdict), isSame ? null : h("span.dim", {}, " (the other runs alike, with other figures)")],
      `${members.length === 1 ? "run" : "runs"} ${members.map(index => index + 1).join(", ")}`]
  }))
}

/** Returns what verdicts of the same cause share. */
function withoutNumbers(verdict: string): string {
  return verdict.replace(/\d[\d.,]*[kMG]?/g, "#")
}

function plan({ search }: SearchPage): HTMLElement {
  const { header: { knob, unit, rules, flags, slo } } = search
  const value = (of: Value) => of === null ? "–" : `${of}${unit}`
  return table("Search", ["", text("")], [
    ["knob", knob], ["conditions", slo.join(", ")], ["first value", value(rules.first)], ["largest value", value(rules.most)],
    ["precision", `${Number((rules.precision * 100).toPrecision(3))} %`], ["values at most", String(rules.steps_max)],
    ["runs of a value at most", String(rules.repeats)], ["flags of each run", flags.join(" ") || "none"],
  ])
}
