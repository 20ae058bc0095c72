// The head of the page: the verdict, what to do, and six figures.

import { broken, type Child, cutAt, h, svg } from "./dom"
import type { Judgement, Operation, Run, Value } from "./data"
import { show, type Unit } from "./format"
import { remedy } from "./remedy"

export function head(run: Run): HTMLElement {
  const { summary, header } = run
  const { diagnosis } = summary
  const [cause] = diagnosis.findings
  // While a run goes on it is not over, which is no news.
  const cut = run.live ? null : summary.run.incomplete
  const missed = summary.thresholds.filter(threshold => !threshold.met && !isOpen(run, threshold))
  const open = summary.thresholds.filter(threshold => isOpen(run, threshold))
  const toDo = diagnosis.remedy ?? (cause && !cause.follows_from && cause.severity !== "noted" ? cause.remedy : "")
  const hasBegun = !run.live || summary.duration_s > 0
  return h("header.head", {},
    h("p.run", {}, h("b", {}, "throng"), ` ${header.throng_version}`, " · ", run.title && `${run.title} · `, header.scenario.path || "run",
      header.target ? ` → ${header.target}` : null,
      header.started ? [" · ", h("time", { datetime: header.started }, header.started.replace("T", " ").replace("Z", " UTC"))] : null),
    hasBegun ? headline(`${run.live ? "So far: " : ""}${cut ? `Incomplete: ${cut}. ` : ""}${sentence(run)}`)
      : h("h1", {}, "The run has just begun."),
    hasBegun && diagnosis.effect ? h("p.more", {}, broken(diagnosis.effect)) : null,
    toDo ? remedy(toDo) : null,
    summary.thresholds.length > 0 ? h("p.thresholds", {},
      missed.length === 0 && open.length > 0 ? `Not measured yet: ${open.map(({ threshold }) => threshold).join(", ")}`
        : missed.length === 0 ? `${share(0, summary.thresholds.length)} met${cut ? " so far" : ""}.`
        : `${share(missed.length, summary.thresholds.length)} missed${cut ? " so far" : ""}: ${missed.map(({ threshold, measured }) => `${threshold} (${measured})`).join(", ")}`) : null,
    hasBegun ? measurement(run, cut) : null,
    run.warnings.length > 0 ? h("ul.reasons", {}, run.warnings.map(warning => h("li", {}, broken(warning)))) : null)
}

/** Says which thresholds a sentence is about: some of them, or (0 or all) every one. */
function share(some: number, all: number): string {
  return some > 0 && some < all ? `${some} of ${all} thresholds` : all === 1 ? "The threshold is" : `All ${all} thresholds are`
}

/** Returns a headline of a bounded length; what is longer goes on below it, in the size of the text. */
export function headline(sentence: string): HTMLElement[] {
  if (sentence.length <= HEADLINE) return [h("h1", {}, broken(sentence))]
  const [head, rest] = splitSentence(sentence)
  return [h("h1", {}, broken(head)), h("p.more", {}, broken(rest))]
}

/** The most characters of a headline: six lines on a phone. */
const HEADLINE = 170

/** Splits a long sentence, where it ends or pauses if it does so early enough. */
function splitSentence(sentence: string): [string, string] {
  const begin = sentence.slice(0, HEADLINE)
  const pause = ["\\.", "[;:]", ","].map(mark => begin.search(new RegExp(`${mark} (?!.*${mark} )`))).find(at => at > HEADLINE / 4)
  const end = pause === undefined ? cutAt(sentence, HEADLINE).length : pause + 1
  return pause === undefined ? [`${sentence.slice(0, end)} …`, `… ${sentence.slice(end).trim()}`]
    : [sentence.slice(0, end), sentence.slice(end).trim()]
}

/** Reports whether a threshold waits for its first value, while the run goes on. */
export function isOpen(run: Run, { met, value, measured }: Judgement): boolean {
  return run.live && !met && value === null && measured === "nothing"
}

/** Returns the grade of the measurement and its reasons, but those that the headline has said: it is not that of the
 * result. A run that ended early is incomplete, and is not called valid. */
function measurement(run: Run, cut: string | null): Child[] {
  const { grade } = run.summary.validity
  const reasons = run.summary.validity.reasons.filter(reason => !sentence(run).includes(reason))
  const badge = (text: string) => [h("span", { class: `grade ${text}` }, `measurement: ${text}`), " "]
  const [first, ...more] = reasons
  return [
    h("p.measurement", {}, cut ? badge("incomplete") : null, cut && grade === "valid" ? null : badge(grade),
      more.length === 0 ? broken(first) : null),
    more.length > 0 ? h("ul.reasons", {}, reasons.map(reason => h("li", {}, broken(reason)))) : null,
  ]
}

/** Returns what stopped the run, or the verdict without the remedy that stands beside it. */
function sentence(run: Run): string {
  const { headline, verdict } = run.summary.diagnosis
  return headline || (verdict.split("; do: ")[0] ?? verdict).replace(/\.?$/, ".")
}

/** Reports whether the run has more than one interval, as all but imported summaries have. */
function hasCourse(run: Run): boolean {
  return !run.summary.run.imported || run.time.length > 2
}

interface Figure { label: string; value: string; detail: string; line: Float64Array; bad?: boolean }

/** Reports whether a figure of an imported run is one that its log has. */
function isInLog({ label, value }: Figure): boolean {
  return label !== "CPUs used" && value !== "–"
}

export function figures(run: Run): HTMLElement {
  const all = run.summary.run.imported ? figuresOf(run).filter(isInLog) : figuresOf(run)
  return h("section.figures", { "aria-label": "Key figures", class: `figures n${all.length}` }, all.map(figure =>
    h("div.figure", figure.bad ? { class: "figure bad" } : {},
      h("h2", {}, figure.label), h("p", {}, figure.value), h("small", {}, broken(figure.detail)), hasCourse(run) ? spark(figure.line) : null)))
}

function figuresOf(run: Run): Figure[] {
  const { summary } = run
  const [name, main, operation] = mainLatency(run)
  const latency = main?.latency_us
  // Questions without an answer took at least as long as they waited: that counts, as for thresholds.
  const unanswered = main?.unanswered_us?.count ?? 0
  const judged = unanswered > 0 && (main?.judged_us?.p99 ?? 0) > (latency?.p99 ?? 0) ? main?.judged_us : undefined
  const errors = Object.values(summary.errors).reduce((sum, n) => sum + n, 0)
  const talk = summary.message.rate_most !== null ? summary.message : summary.push ?? summary.http ?? summary.message
  const sent = talk === summary.push ? "load.pushes_ok" : talk === summary.http ? "load.http_ok"
    : run.has("load.messages_answered") && Number(summary.message["answered"] ?? 0) > 0 ? "load.messages_answered" : "load.messages_sent"
  const text = (value: Value | undefined, unit: Unit) => show(value ?? null, unit)
  return [
    connections(run),
    { label: "connects/s", value: text(summary.connect.rate_most, "count"),
      detail: `at best; mean ${text(summary.connect.rate_mean, "count")}`, line: run.rates("load.connects_ok") },
    { label: talk === summary.push ? "pushes/s" : talk === summary.http ? "HTTP requests/s" : "messages/s", value: text(talk.rate_most, "count"),
      detail: `at best; mean ${text(talk.rate_mean, "count")}`, line: run.rates(sent) },
    meanOfLog(run) ?? { label: `p99 of ${name}`, value: judged ? `≥ ${text(judged.p99, "us")}` : latency && latency.count > 0 ? text(latency.p99, "us") : "–",
      detail: judged ? `${text(unanswered, "count")} unanswered; answered ${text(latency?.p99, "us")}`
        : latency && latency.count > 0 ? `median ${text(latency.p50, "us")}, max ${text(latency.max, "us")}` : "no answers",
      line: run.values(`${operation}.p99`) },
    { label: "errors", value: text(errors, "count"), detail: errors === 0 ? "none" : kinds(summary.errors),
      line: sum(run.ids("errors.").filter(id => run.moves(id)).map(id => run.values(id))), bad: errors > 0 },
    { label: "CPUs used", value: `${text(summary.generator.cpu_cores_used, "cpus")} + ${text((summary.server ?? summary.foreign_server)?.cpu_cores_used, "cpus")}`,
      detail: `generator + server, of ${summary.machine.cpus} CPUs`,
      line: run.perSecond("machine.busy_us") },
  ]
}

/** Returns the mean of the latency that tells most, of an imported run whose log has no values. */
function meanOfLog(run: Run): Figure | undefined {
  const stats = run.summary.latency_stats ?? {}
  const name = ["message", "http", "connect"].find(name => stats[name])
  const known = name && stats[name]
  if (!known) return undefined
  const us = (value: number | undefined) => show(value ?? null, "us")
  return { label: `mean of ${name}`, value: us(known.mean_us), detail: `of ${show(known.count, "count")}, max ${us(known.max_us)}`,
    line: new Float64Array(0) }
}

/** Returns the connections open at once. Where they live shorter than an interval, its end hardly shows one: all of them. */
function connections(run: Run): Figure {
  const { users, connect } = run.summary
  const [most, made] = [users["connected_most"] ?? 0, Number(connect["ok"] ?? 0)]
  const count = (value: number) => show(value, "count")
  if (run.summary.run.imported && most === 0 && made === 0) {
    const active = run.values("load.users_active")
    return { label: "users", value: count(Math.max(0, ...active)), detail: `at most, of ${count(users["started"] ?? 0)}`, line: active }
  }
  return most < (connect.rate_most ?? 0) / 2 && most < made
    ? { label: "connections", value: count(made), detail: `in all, of ${count(users["started"] ?? 0)} users; each was open for less than an interval`,
        line: run.rates("load.connects_ok") }
    : { label: "connected", value: count(most), detail: `at most, of ${count(users["started"] ?? 0)} users`, line: run.values("load.connected") }
}

/** Returns the operation that tells most: messages, else pushes, HTTP requests, joins, connects. */
function mainLatency(run: Run): [string, Operation | undefined, string] {
  const { message, push, http, join, connect } = run.summary
  const candidates: [string, Operation | undefined, string][] = [
    ["messages", message, "message"], ["pushes", push, "push"], ["HTTP requests", http, "http"], ["joins", join, "join"], ["connects", connect, "connect"],
  ]
  const has = (operation?: Operation) => (operation?.latency_us.count ?? 0) + (operation?.unanswered_us?.count ?? 0) > 0
  return candidates.find(([, operation]) => has(operation)) ?? candidates[4]!
}

function kinds(errors: Record<string, number>): string {
  const sorted = Object.entries(errors).sort(([, a], [, b]) => b - a)
  return sorted.slice(0, 2).map(([kind, n]) => `${kind} ${show(n, "count")}`).join(", ") + (sorted.length > 2 ? ", …" : "")
}

function sum(lines: Float64Array[]): Float64Array {
  const [longest] = [...lines].sort((a, b) => b.length - a.length)
  return (longest ?? new Float64Array(0)).map((_, row) => lines.reduce((sum, line) => sum + (line[row] || 0), 0))
}

/** Draws a line of at most 120 points. */
function spark(values: Float64Array): Element {
  const step = Math.max(1, Math.ceil(values.length / 120))
  const points: number[] = []
  for (let at = 0; at < values.length; at += step) {
    let most = 0
    for (let row = at; row < Math.min(at + step, values.length); row++) if (values[row]! > most) most = values[row]!
    points.push(most)
  }
  const most = Math.max(...points, 1e-9)
  const place = (value: number, index: number) =>
    `${(index * 100 / Math.max(points.length - 1, 1)).toFixed(1)},${(23 - 21 * value / most).toFixed(1)}`
  return svg("svg", { viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("polyline", { points: points.map(place).join(" "), fill: "none", stroke: "currentColor", "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" }))
}
