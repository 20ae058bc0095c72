// The charts of a run, as data: which lines each has, and where their values come from.

import type { Run } from "./data"
import type { Unit } from "./format"

export interface Line {
  label: string
  unit: Unit
  /** The name of a colour of the theme. */
  colour: string
  /** The series that it is made of. */
  id: string
  /** Returns a value for each row, NaN where it is not known. */
  values: (run: Run) => Float64Array
  /** Dashed, or with these lengths of lines and gaps. */
  dash?: boolean | number[]
  fill?: boolean
  /** Whether it is in the legend only. */
  hidden?: boolean
}

/** A core, drawn as a row whose strength is its share of a CPU. */
export interface CoreRow { label: string; id: string; colour: string }

export interface ChartSpec {
  id: string
  title: string
  /** One sentence for a reader who sees the chart for the first time. */
  help: string
  lines: Line[]
  log?: boolean
  stacked?: boolean
  /** The operation whose heat map lies under the lines. */
  heat?: string
  /** Cores, drawn as rows instead of lines. */
  cores?: CoreRow[]
  height?: number
}

export const OPERATIONS: [string, string][] = [
  ["message", "messages"], ["push", "pushes"], ["http", "HTTP requests"], ["connect", "connects"], ["join", "joins"],
  ["tcp", "TCP handshakes"], ["broadcast", "broadcasts"],
]

/** Returns the operations that the run has latencies of, the most telling first. */
export function operationsOf(run: Run): [string, string][] {
  return OPERATIONS.filter(([id]) => run.has(`${id}.p50`))
}

/** Returns the charts that have something to show, and a note of those that are left out. */
export function chartsOf(run: Run, operation: string): { charts: ChartSpec[]; note: string } {
  const isImported = run.summary.run.imported !== undefined
  if (isImported && run.time.length <= 2) {
    return { charts: [], note: "No charts: the log has one number for the whole run, and not its course." }
  }
  const charts = [
    users(run), connects(run), messages(run), received(run), latency(operation), errors(run), cpu(run), cores(run), lag(), machines(run),
    queues(run), memory(run), trouble(run),
  ]
  const known = charts.map(chart => ({ ...chart, lines: chart.lines.filter(line => run.has(line.id)) }))
  // What a log does not have, an imported run did not measure: that is no zero.
  const flat = isImported ? [] : known.filter(({ id, lines }) => lines.length === 0 && FLAT.includes(id))
  const note = flat.length > 0 ? `Not drawn, because all of it stayed at zero: ${flat.map(({ title }) => title).join(", ").toLowerCase()}.` : ""
  return { charts: known.filter(chart => chart.lines.length > 0), note }
}

/** Charts of which a reader wants to know that there was nothing. */
const FLAT = ["errors", "queues", "kernel"]

function users(run: Run): ChartSpec {
  return {
    id: "users", title: "Users and connections",
    help: "Users in the middle of their program, and the connections that they hold.",
    lines: [
      gauge("users", "load.users_active", "grey", true),
      ...measured(run, "load.connected", { ...gauge("connected", "load.connected", "blue"), fill: true }),
      gauge("open at the server", "server.open", "orange", true),
      ...some(run, "load.joined", gauge("joined channels", "load.joined", "green")),
    ],
  }
}

function connects(run: Run): ChartSpec {
  return {
    id: "connects", title: "Connects",
    help: "Connects begun, established and failed each second; where the generator falls behind, fewer users start than were due.",
    lines: [
      ...some(run, "load.users_intended", rate("users due", "load.users_intended", "grey", true)),
      ...some(run, "load.users_started", rate("users started", "load.users_started", "purple")),
      ...measured(run, "load.connects_started", rate("begun", "load.connects_started", "orange", true)),
      ...measured(run, "load.connects_ok", { ...rate("established", "load.connects_ok", "blue"), fill: true }),
      ...some(run, "load.connects_failed", rate("failed", "load.connects_failed", "red")),
    ],
  }
}

function messages(run: Run): ChartSpec {
  return {
    id: "messages", title: "Messages",
    help: "Messages sent and answered each second; turns of `every` that came due, and those that began.",
    lines: [
      ...some(run, "load.turns_intended", rate("turns due", "load.turns_intended", "grey", true)),
      ...some(run, "load.turns_intended", rate("turns begun", "load.turns_started", "yellow", true)),
      ...some(run, "load.messages_sent", rate("sent", "load.messages_sent", "orange")),
      ...some(run, "load.messages_answered", { ...rate("answered", "load.messages_answered", "blue"), fill: true }),
      ...some(run, "load.pushes_sent", rate("pushes", "load.pushes_sent", "ink")),
      ...some(run, "load.pushes_ok", rate("pushes answered", "load.pushes_ok", "green")),
      ...some(run, "load.http_ok", rate("HTTP requests answered", "load.http_ok", "purple")),
    ],
  }
}

/** Broadcasts make many times as many messages as users send, so they have a scale of their own. */
function received(run: Run): ChartSpec {
  return {
    id: "received", title: "Messages received", height: 110,
    help: "All messages that arrived each second: answers, and those that no user asked for.",
    lines: hasBroadcasts(run) ? [{ ...rate("received", "load.messages_received", "blue"), fill: true }] : [],
  }
}

/** Reports whether clearly more messages arrive than are answers. */
export function hasBroadcasts(run: Run): boolean {
  const sum = (id: string) => run.values(id).reduce((sum, growth) => sum + (growth || 0), 0)
  return sum("load.messages_received") > 1.5 * (sum("load.messages_answered") + sum("load.pushes_ok") + sum("load.joins_ok"))
}

function latency(operation: string): ChartSpec {
  const line = (name: string, label: string, colour: string, dash = false): Line =>
    ({ ...gauge(label, `${operation}.${name}`, colour, dash), unit: "us" })
  return {
    id: "latency", title: "Latency", heat: operation, log: true, height: 220,
    help: "Each cell counts answers: the darker, the more. The lines are percentiles of each second's answers.",
    lines: [
      line("max", "max", "red", true), line("p999", "p99.9", "orange"), line("p99", "p99", "purple"),
      line("p90", "p90", "green"), line("p50", "p50", "ink"),
    ],
  }
}

function errors(run: Run): ChartSpec {
  const colours = ["red", "orange", "purple", "yellow", "sky", "green", "blue", "grey"]
  const lines = run.ids("errors.").map((id, index) =>
    rate(id.slice("errors.".length), id, colours[index % colours.length] ?? "grey"))
  return {
    id: "errors", title: "Errors by kind", stacked: true, lines,
    help: "Failed connects by errno, and errors of established connections, each second.",
  }
}

function cpu(run: Run): ChartSpec {
  const server = run.has("server.cpu_us") ? "server.cpu_us" : "kernel.process.server.cpu_us"
  const line = (label: string, id: string, colour: string, dash = false): Line =>
    ({ ...rate(label, id, colour, dash), unit: "cpus", values: run => run.perSecond(id).map(us => us / 1e6) })
  const thread = (label: string, end: string, colour: string): Line => {
    const id = `kernel.process.${end}.busiest_thread_permille`
    return { ...gauge(label, id, colour, true), unit: "cpus", values: run => run.values(id).map(permille => permille / 1000) }
  }
  return {
    id: "cpu", title: "CPUs used",
    help: "CPU time per second; dashed: the busiest thread of each end. A thread that stays at 1 is a limit, however many CPUs are idle.",
    lines: [
      { ...gauge("CPUs there are", "machine.cpus", "grey", true), unit: "cpus" },
      { ...line("machine", "machine.busy_us", "yellow"), fill: true },
      line("generator", "load.cpu_us", "blue"), line("server", server, "orange"),
      line("server's machine", "server_machine.busy_us", "red"),
      thread("server's thread", "server", "orange"),
      thread("generator's thread", "client", "blue"),
    ],
  }
}

function cores(run: Run): ChartSpec {
  const rows = [["server", "server", "orange"], ["load", "generator", "blue"]] as const
  const idsOf = (end: string) => run.ids(`${end}.cpu_us_per_core.`)
  return {
    id: "cores", title: "CPU by core",
    help: "Each row is an event loop: the stronger, the more of its time it worked. A core that is full is a limit, however idle the others are.",
    cores: rows.flatMap(([end, name, colour]) => idsOf(end).map((id, core) => ({ id, label: `${name} ${core}`, colour }))),
    lines: rows.flatMap(([end, name, colour]) => idsOf(end).slice(0, 1).map(id => ({
      ...gauge(`${name}'s busiest`, id, colour), unit: "share" as const, hidden: true,
      values: (run: Run) => greatest(idsOf(end).map(id => run.perSecond(id).map(us => us / 1e6))) }))),
  }
}

/** Returns the largest value of each row. */
function greatest(lines: Float64Array[]): Float64Array {
  return (lines[0] ?? new Float64Array(0)).map((_, row) => Math.max(...lines.map(line => line[row] ?? NaN)))
}

function lag(): ChartSpec {
  const line = (name: string, label: string, colour: string, dash = false): Line =>
    ({ ...gauge(label, `lag.${name}`, colour, dash), unit: "us" })
  return {
    id: "lag", title: "Generator lag", log: true, height: 90,
    help: "How much later than intended the generator acted. It is a part of no server's latency.",
    lines: [line("max", "max", "red", true), line("p99", "p99", "purple"), line("p50", "p50", "ink")],
  }
}

function machines(run: Run): ChartSpec {
  const colours = ["blue", "orange", "green", "purple", "red", "sky", "yellow", "grey"]
  return {
    id: "machines", title: "Lag by machine", log: true, height: 90,
    help: "p99 of each second on each machine. One line above the others is a slow machine, not a slow server.",
    lines: run.ids("machines.").map((id, index) => ({
      ...gauge(id.slice("machines.".length, -".lag_us_p99".length), id, colours[index % colours.length] ?? "grey", index >= colours.length),
      unit: "us" as const })),
  }
}

function queues(run: Run): ChartSpec {
  const side = run.ids("server_kernel.").length > 0 ? "server_kernel" : "kernel"
  return {
    id: "queues", title: "Queues",
    help: "Connections that wait for accept, handshakes in SYN-RECV, and what waits inside a throng server.",
    lines: ([
      ["accept queue", `${side}.listener.accept_queue`, "blue"],
      ["SYN-RECV", `${side}.listener.syn_recv`, "orange"],
      ["mailbox, longest", "server.mailbox_per_core", "green"],
      ["registry's mailbox", "server.registry_mailbox_most", "purple"],
      ["cores not accepting", "server.paused_cores", "red"],
    ] as const).flatMap(([label, id, colour]) => some(run, id, gauge(label, id, colour))),
  }
}

function memory(run: Run): ChartSpec {
  const server = run.has("server.rss_bytes") ? "server.rss_bytes" : "kernel.process.server.rss_bytes"
  const line = (label: string, id: string, colour: string, factor = 1): Line[] => some(run, id,
    { ...gauge(label, id, colour), unit: "bytes", values: run => run.values(id).map(value => value * factor) })
  return {
    id: "memory", title: "Memory",
    help: "Resident memory of both ends, the kernel's socket buffers, and bytes that wait for slow peers.",
    lines: [
      ...line("generator", "load.rss_bytes", "blue"), ...line("server", server, "orange"),
      ...line("TCP's buffers", "kernel.sockstat.tcp.mem_pages", "green", 4096),
      ...line("waits for slow clients", "server.pending_bytes", "red"),
    ],
  }
}

const TROUBLE: [string, string, string][] = [
  ["TcpExt.ListenOverflows", "accept queue overflows", "red"],
  ["TcpExt.ListenDrops", "drops at listeners", "orange"],
  ["TcpExt.TCPReqQFullDrop", "SYN queue drops", "purple"],
  ["TcpExt.TCPReqQFullDoCookies", "SYN cookies", "yellow"],
  ["Tcp.RetransSegs", "retransmits", "blue"],
  ["TcpExt.TCPTimeouts", "retransmission time-outs", "ink"],
  ["TcpExt.TCPAbortOnMemory", "aborts for want of memory", "red"],
  ["TcpExt.TCPTimeWaitOverflow", "TIME-WAIT overflows", "green"],
  ["TcpExt.RcvPruned", "pruned receive buffers", "green"],
  ["softnet.dropped", "packets dropped by CPUs", "grey"],
  ["conntrack.dropped", "conntrack drops", "grey"],
]

function trouble(run: Run): ChartSpec {
  const lines = TROUBLE.flatMap(([name, label, colour]) => [
    ...some(run, `kernel.${name}`, rate(label, `kernel.${name}`, colour)),
    ...some(run, `server_kernel.${name}`, rate(`${label} (server)`, `server_kernel.${name}`, colour, true)),
  ])
  return {
    id: "kernel", title: "Kernel: drops and retransmits", lines,
    help: "Counters of the kernel that stay flat when all is well.",
  }
}

function gauge(label: string, id: string, colour: string, dash = false): Line {
  return { label, unit: "count", colour, dash, id, values: run => run.values(id) }
}

function rate(label: string, id: string, colour: string, dash = false): Line {
  return { label, unit: "rate", colour, dash, id, values: run => run.rates(id) }
}

/** Returns the line, if it is not always zero in an imported run: its log may not have it. */
function measured(run: Run, id: string, line: Line): Line[] {
  return run.summary.run.imported ? some(run, id, line) : [line]
}

/** Returns the line if the series is ever more than zero. */
function some(run: Run, id: string, line: Line): Line[] {
  return run.moves(id) ? [line] : []
}
