// The tables below the charts. They hold in text what the charts show.

import { broken, type Child, folded, h, long, table, text, words } from "./dom"
import type { Exchange, Judgement, Latency, LatencyStats, MachineOfRun, Operation, Run } from "./data"
import { moment, show } from "./format"
import { isOpen } from "./head"
import { remedy } from "./remedy"

export function tables(run: Run): HTMLElement {
  return h("div.tables", {},
    findings(run), operations(run), imported(run), steps(run), operationsOfClasses(run), costs(run), machines(run),
    thresholds(run),
    statuses(run), errors(run), exchanges(run), classes(run), probes(run), events(run), scenario(run), machine(run))
}

function thresholds(run: Run): HTMLElement | null {
  const all = run.summary.thresholds
  if (all.length === 0) return null
  const verdict = (judgement: Judgement): Child => judgement.met ? "met"
    : isOpen(run, judgement) ? "not measured yet" : h("b.bad", {}, "missed")
  return table("Thresholds", ["threshold", words(""), "measured"],
    all.map(judgement => [judgement.threshold, verdict(judgement), judgement.measured]))
}

/** The scenario and the command. An imported run has no scenario. */
function scenario({ header }: Run): HTMLElement {
  const { source } = header.scenario
  return h("section.table.wide", {}, h("h2", {}, source ? "Scenario" : "Command"),
    source ? h("pre.scroll", { tabindex: "0" }, source) : null, h("p.note", {}, header.command.join(" ")))
}

function findings(run: Run): HTMLElement | null {
  const { findings, unseen } = run.summary.diagnosis
  if (findings.length === 0 && unseen.length === 0) return null
  return h("section.table.wide", {}, h("h2", {}, "Findings, the most important first"),
    h("ol.findings", {}, findings.map((finding, index) => h("li", { id: `finding-${index + 1}` },
      h("p", {}, h("span.side", {}, finding.side), " ", broken(finding.text),
        finding.confidence < 1 ? h("small", {}, ` (confidence ${Math.round(finding.confidence * 100)} %)`) : null),
      finding.machines?.length ? h("p.note", {}, `at ${finding.machines.join(", ")}`) : null,
      finding.follows_from ? h("p.note", {}, `follows from ${named(finding.follows_from, findings.findIndex(({ id }) => id === finding.follows_from))}`)
        : finding.remedy ? remedy(finding.remedy) : null,
      h("ul.evidence", {}, finding.evidence.map(({ counter, from, to, at_ms }) =>
        h("li", {}, h("code", {}, broken(counter)), ` ${from === to ? "" : `${number(from)} → `}${number(to)} at ${moment(at_ms / 1000)}`)))))),
    unseen.length > 0 ? h("p.note", {}, `Could not be read: ${unseen.join("; ")}`) : null)
}

/** Returns a finding's name with its place in the list, if it is there. */
function named(id: string, at: number): string {
  return at < 0 ? id : `finding ${at + 1}, ${id}`
}

function number(value: number): string {
  return String(Math.round(value * 1000) / 1000)
}

function operations(run: Run): HTMLElement | null {
  const { connect, message, join, push, http, broadcast, generator } = run.summary
  const rows: Child[][] = []
  const stats = run.summary.latency_stats ?? {}
  const latencies = (name: string, operation: Operation | undefined, of: string) => {
    if (!operation || (operation.latency_us.count === 0 && !operation.rate_most)) return
    const [done, ...times] = cells(operation.latency_us, stats[of])
    rows.push([name, done!, show(operation.rate_mean, "rate"), show(operation.rate_most, "rate"), ...times])
    rows.push(...waits(operation, 2))
  }
  latencies("connects", ofSteps(connect), "connect")
  latencies("messages", message, "message")
  latencies("joins", join, "join")
  latencies("pushes", push, "push")
  latencies("HTTP requests", http, "http")
  const row = (name: string, [done, ...times]: string[]) => rows.push([name, done!, null, null, ...times])
  if (broadcast) row("broadcasts", cells(broadcast.latency_us))
  const heads = ["", "done", "mean rate", "best rate", ...statistics]
  if (run.summary.run.imported) return rows.length > 0 ? table("Operations", heads, rows, "Latencies are those of the log.") : null
  row("generator lag", cells(generator.lag_us))
  const all = Number(connect["ok"] ?? 0)
  const ofRequests = ofSteps(connect) === connect ? "" : ` The best rate of connects counts all ${all}, also those for HTTP requests.`
  return table("Operations", heads, rows,
    "Latencies count from the intended moment. Unanswered: only the requests that got no answer, each for as long as it waited. "
    + `With unanswered: answered and unanswered together; thresholds judge this row.${ofRequests}`)
}

/** Returns the rows below those of the answers: only the waits without an answer, and both together, as thresholds judge
 * them. `blank` columns stand between the count and the times. */
function waits({ latency_us, unanswered_us, judged_us }: { latency_us: Latency; unanswered_us?: Latency; judged_us?: Latency }, blank: number): Child[][] {
  const rows: Child[][] = []
  const row = (name: string, latency: Latency) => {
    const [count, ...times] = cells(latency)
    rows.push([h("span.below", {}, name), count!, ...Array<Child>(blank).fill(""), ...times])
  }
  if (unanswered_us && unanswered_us.count > 0) row("unanswered", unanswered_us)
  const percentiles = ({ p50, p90, p95, p99, p999, max }: Latency) => [p50, p90, p95, p99, p999, max].join()
  if (judged_us && percentiles(judged_us) !== percentiles(latency_us)) row("with unanswered", judged_us)
  return rows
}

/** Returns the connects with the mean rate of those that are timed: others are parts of HTTP requests. */
function ofSteps(connect: Operation): Operation {
  const [ok, timed] = [Number(connect["ok"] ?? 0), connect.latency_us.count]
  return connect.rate_mean && timed > 0 && timed < ok ? { ...connect, rate_mean: connect.rate_mean * timed / ok } : connect
}

/** What the log of another tool has of latencies without their values. */
function imported(run: Run): HTMLElement | null {
  const known = Object.entries(run.summary.latency_stats ?? {})
  if (known.length === 0) return null
  const us = (value: number | undefined) => show(value ?? null, "us")
  const rows = known.map(([name, of]) => [name.replace(/^step\./, ""), show(of.count, "count"), us(of.mean_us), us(of.deviation_us),
    us(of.min_us), ...cellsOfLog(of).slice(1)])
  return table("Latencies as imported", ["", "count", "mean", "deviation", "min", ...statistics], rows,
    "The log has these statistics and not the values: what it does not say is not known.")
}

/** Steps with a name, and transactions. */
function steps(run: Run): HTMLElement | null {
  const all = run.summary.steps ?? []
  if (all.length === 0) return null
  const rows: Child[][] = []
  for (const step of all) {
    rows.push([step.name, show(step.ok, "count"), show(step.errors, "count"), show(step.rate_mean, "rate"),
      ...cells(step.latency_us, run.summary.latency_stats?.[`step.${step.name}`]).slice(1)])
    rows.push(...waits(step, 2))
  }
  return table("Steps", ["", "done", "errors", "mean rate", ...statistics], rows)
}

/** The operations of the classes that a threshold is about. */
function operationsOfClasses(run: Run): HTMLElement | null {
  const rows: Child[][] = []
  for (const [name, operations] of Object.entries(run.summary.class_operations ?? {})) {
    for (const [operation, of] of Object.entries(operations)) {
      rows.push([`${name}: ${operation}`, show(of.ok, "count"), show(of.failed, "count"), show(of.rate_mean, "rate"), ...cells(of.latency_us).slice(1)])
      rows.push(...waits(of, 2))
    }
  }
  return rows.length === 0 ? null : table("Operations of classes", ["", "done", "failed", "mean rate", ...statistics], rows)
}

const statistics = ["p50", "p90", "p95", "p99", "p99.9", "max"]

function cells(latency: Latency, ofLog?: LatencyStats): string[] {
  if (ofLog) return cellsOfLog(ofLog)
  const us = (value: number) => latency.count > 0 ? show(value, "us") : "–"
  return [String(latency.count), us(latency.p50), us(latency.p90), us(latency.p95), us(latency.p99), us(latency.p999), us(latency.max)]
}

function cellsOfLog({ count, percentiles_us, max_us }: LatencyStats): string[] {
  const known = ["p50", "p90", "p95", "p99", "p999"].map(name => percentiles_us?.[name])
  return [show(count, "count"), ...[...known, max_us].map(us => show(us ?? null, "us"))]
}

function costs(run: Run): HTMLElement | null {
  if (run.summary.run.imported) return null
  const { generator, machine, message, push, http } = run.summary
  const server = run.summary.server ?? run.summary.foreign_server
  const isHttp = http && !push && !message["sent"] && !message["answered"]
  const us = (value: number | null | undefined) => show(value ?? null, "us")
  const bytes = (value: number | null | undefined) => show(value ?? null, "bytes")
  return table("Costs", ["", "CPU/connect", `CPU/${isHttp ? "request" : "message"}`, "memory/connection", "CPUs used"], [
    ["generator", us(generator.cpu_us_per_connect), us(generator.cpu_us_per_message), bytes(generator.rss_bytes_per_user), show(generator.cpu_cores_used, "cpus")],
    ["server", us(server?.cpu_us_per_connection), us(server?.cpu_us_per_message), bytes(server?.rss_bytes_per_connection), show(server?.cpu_cores_used ?? null, "cpus")],
  ], machine.cpu_busy_share === null ? undefined : `The machine's ${machine.cpus} CPUs were busy for ${show(machine.cpu_busy_share, "share")} of the time.`)
}

/** The machines of a fleet. */
function machines(run: Run): HTMLElement | null {
  const all = run.summary.machines ?? []
  if (all.length === 0) return null
  return table("Machines", ["agent", "users", "connects/s", "connect p99", "message p99", "lag p99", "busiest core", "CPUs used", "memory", "start", words("lost")],
    all.map(machine => [machine.name, show(machine.users_most, "count"), show(machine.connects_per_s_most, "rate"),
      show(machine.connect_us_p99_most, "us"), show(machine.message_us_p99_most, "us"), show(machine.lag_us_p99_most, "us"),
      show(machine.busiest_core_most, "share"), show(machine.cpu_cores_used, "cpus"), show(machine.rss_bytes_most, "bytes"),
      machine.start_error_us === undefined ? null : `±${show(machine.start_error_us, "us")}`,
      machine.lost.length > 0 ? h("b.bad", {}, lost(machine)) : null]),
    "Of each agent: the most users, the best second, the p99 of its worst interval, and how exactly it began with the others.")
}

function lost({ lost }: MachineOfRun): string {
  return lost.map(({ from_s, until_s }) => until_s === null ? `from ${moment(from_s)}` : `${moment(from_s)} – ${moment(until_s)}`).join(", ")
}

/** The answers to HTTP requests by their status, the most frequent first. */
function statuses(run: Run): HTMLElement | null {
  const { http } = run.summary
  if (!http) return null
  const all = Object.entries(http.statuses ?? {}).sort(([, a], [, b]) => b - a)
  if (all.length === 0) return null
  const answers = all.reduce((sum, [, n]) => sum + n, 0)
  return table("HTTP answers", ["status", "times", "share"],
    all.map(([status, n]) => [status, show(n, "count"), show(n / answers, "share")]),
    http.retried > 0 ? `${show(http.retried, "count")} of ${show(http.started, "count")} HTTP requests ${http.retried === 1 ? "was" : "were"} sent a second time, because the server had closed ${http.retried === 1 ? "its" : "their"} connection without an answer.` : undefined)
}

function errors(run: Run): HTMLElement | null {
  const failed = run.summary.connect.failed
  const kinds = Object.entries(run.summary.errors).filter(([kind]) => kind !== "connect")
  const connects = typeof failed === "object" ? Object.entries(failed).map(([kind, n]) => [`connect ${kind}`, n] as [string, number]) : []
  const all = [...connects, ...kinds].sort(([, a], [, b]) => b - a)
  return all.length > 0 ? table("Errors", ["kind", "times"], all.map(([kind, n]) => [kind, show(n, "count")])) : null
}

function exchanges(run: Run): HTMLElement | null {
  const all = run.summary.exchanges ?? []
  if (all.length === 0) return null
  return table("First error of each kind", ["kind", words("first and last"), words("where"), text("expected and received")],
    all.map(exchange => [exchange.kind, times(exchange), place(exchange), [
      h("div", {}, "expected ", long(exchange.expected)),
      h("div", {}, "received ", long(exchange.got), exchange.awaited_elsewhere ? ", which another `expect` waits for" : "")]]))
}

function times({ first_ms, last_ms }: Exchange): string {
  const [first, last] = [moment(first_ms / 1000), moment(last_ms / 1000)]
  return first === last ? first : `${first} – ${last}`
}

function place({ class: name, step, step_kind, line, user }: Exchange): string {
  const parts: string[] = []
  if (step) parts.push(`step ${step} ${step_kind ?? ""}`)
  if (name && name !== "user") parts.push(`class ${name}`)
  if (line) parts.push(`line ${line}`)
  if (user !== undefined) parts.push(`user ${user}`)
  return parts.join(", ")
}

function classes(run: Run): HTMLElement | null {
  const all = Object.entries(run.summary.classes ?? {})
  const [, first] = all[0] ?? []
  if (!first) return null
  const names = Object.keys(first)
  return table("Classes of users", ["", ...names.map(name => name.replaceAll("_", " "))],
    all.map(([name, counters]) => [name, ...names.map(counter => show(counters[counter] ?? null, "count"))]))
}

function probes(run: Run): HTMLElement | null {
  const probes = run.summary.broadcast?.probes ?? []
  if (probes.length === 0) return null
  const shown = probes.slice(0, 200)
  return table("Probes", ["probe", "due", "expected", "delivered", "missing", "first", "half", "99 %", "last"], shown.map(probe => [
    String(probe["number"]), moment((probe["due_ms"] ?? 0) / 1000), show(probe["expected"], "count"), show(probe["delivered"], "count"),
    show(probe["missing"], "count"), show(probe["first_us"], "us"), show(probe["p50_us"], "us"), show(probe["p99_us"], "us"), show(probe["last_us"], "us")]),
    probes.length > shown.length ? `and ${probes.length - shown.length} more` : undefined)
}

function events(run: Run): HTMLElement | null {
  const shown = run.events.slice(0, 300)
  const more = run.events.length - shown.length + run.eventsLeftOut
  return shown.length === 0 ? null
    : table("Events", ["at", text("what happened")], shown.map(event => [moment(event.at_ms / 1000), long(event.text)]),
      more > 0 ? `and ${more} more; they are in the run file` : undefined)
}

/** The facts of the machine. They are the same in each run there, so they are folded. */
function machine(run: Run): HTMLElement | null {
  const facts = Object.entries(run.header.machine ?? {})
  return facts.length === 0 ? null : folded(table("Machine and kernel", ["", text("")], facts.map(([name, value]) =>
    [name, name === "memory_bytes" ? show(Number(value), "bytes") : long(value)])))
}
