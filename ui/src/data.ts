// The data of a run: columns of numbers on one time axis, heat maps, events, the summary. The
// writer of a report (`page.rs`) packs them as `throng.page/1`.

export const SCHEMA = "throng.page/1"

export type Value = number | null

export interface Latency {
  p50: number; p90: number; p99: number; p999: number; max: number; mean: number; count: number
}

export interface Finding {
  id: string; side: string; severity: string; confidence: number; text: string; remedy: string
  evidence: { counter: string; from: number; to: number; at_ms: number }[]
  follows_from?: string | null
}

export interface Judgement { threshold: string; met: boolean; value: number | null; measured: string }

/** The summary, as `--json` writes it. Only the fields that the page reads by name are typed. */
export interface Summary {
  run: { target: string; scenario: string; started: string; throng_version: string;
         end: string | null; incomplete: string | null }
  duration_s: number
  validity: { grade: string; reasons: string[] }
  users: Record<string, number>
  connect: Operation
  message: Operation
  join?: Operation
  push?: Operation
  broadcast?: { expected: number; delivered: number; missing: number; latency_us: Latency;
                probes: Record<string, number | null>[] }
  errors: Record<string, number>
  generator: { cpu_cores_used: number | null; lag_us: Latency; cores: number
               cpu_us_per_connect: number | null; cpu_us_per_message: number | null
               rss_bytes_per_user: number | null; ceiling_share: number | null }
  machine: { cpus: number; cpu_busy_share: number | null }
  server: { cpu_cores_used: number | null; handler: string; accept: string; cores: number
            open_most: number; cpu_us_per_connection: number | null
            cpu_us_per_message: number | null; rss_bytes_per_connection: number | null } | null
  classes?: Record<string, Record<string, number>>
  thresholds: Judgement[]
  diagnosis: { verdict: string; findings: Finding[]; unseen: string[] }
}

export interface Operation {
  rate_most: number | null; rate_mean: number | null
  latency_us: Latency; unanswered_us?: Latency; judged_us?: Latency
  failed?: number | Record<string, number>
  [other: string]: unknown
}

export interface Header {
  started: string; throng_version: string; command: string[]; target: string
  scenario: { path: string; source: string }
  users_planned: number; planned_ms?: number; capacity?: number; target_is_here: boolean
  ceiling?: Record<string, number>; machine?: Record<string, string>
}

export interface Phase { from_ms: number; name: string; paused: boolean }
export interface PageEvent { at_ms: number; text: string }

export interface HeatMap {
  cells_per_octave: number
  intervals_per_column: number
  columns: { at_ms: number; cells: [number, number][] }[]
}

/** The data of a page, as JSON. */
export interface PageData {
  schema: string
  header: Header
  summary: Summary
  warnings: string[]
  intervals_per_row: number
  columns: Record<string, Value[]>
  heat: Record<string, HeatMap>
  curves: Record<string, [number, number][]>
  phases: Phase[]
  events: PageEvent[]
  events_left_out: number
}

/** A run. */
export class Run {
  header: Header
  summary: Summary
  warnings: string[]
  curves: Record<string, [number, number][]>
  readonly intervalsPerRow: number
  readonly heat: Record<string, HeatMap>
  readonly phases: Phase[]
  readonly events: PageEvent[]
  eventsLeftOut: number
  /** The end of each row, in seconds. */
  readonly time: number[]
  private readonly columns = new Map<string, Value[]>()
  private readonly positive = new Set<string>()

  constructor(page: PageData) {
    if (page.schema !== SCHEMA) throw new Error(`this page cannot show ${page.schema}`)
    this.header = page.header
    this.summary = page.summary
    this.warnings = page.warnings
    this.curves = page.curves
    this.intervalsPerRow = page.intervals_per_row
    this.heat = page.heat
    this.phases = page.phases
    this.events = page.events
    this.eventsLeftOut = page.events_left_out
    const { at_ms, ...others } = page.columns
    this.time = sums(at_ms ?? []).map(ms => (ms ?? 0) / 1000)
    for (const [id, differences] of Object.entries(others)) this.columns.set(id, sums(differences))
  }

  get rows(): number {
    return this.time.length
  }

  /** The end of the run so far, in seconds. */
  get end(): number {
    return this.time.at(-1) ?? 0
  }

  has(id: string): boolean {
    return this.columns.has(id)
  }

  /** Returns the ids that begin with `prefix`. */
  ids(prefix: string): string[] {
    return [...this.columns.keys()].filter(id => id.startsWith(prefix)).sort()
  }

  /** Reports whether a series is ever more than zero. */
  moves(id: string): boolean {
    if (!this.positive.has(id) && this.columns.get(id)?.some(value => (value ?? 0) > 0)) this.positive.add(id)
    return this.positive.has(id)
  }

  at(id: string, row: number): Value {
    return this.columns.get(id)?.[row] ?? null
  }

  /** Returns the seconds of a row by the clock of the run file. */
  span(row: number): number {
    return (this.time[row] ?? 0) - (this.time[row - 1] ?? 0)
  }

  /** Returns the growth of a counter per second. The generator's counters divide by their own time. */
  rate(id: string, row: number): Value {
    const growth = this.at(id, row)
    const grown = id.startsWith("load.") ? this.at("load.grown_us", row) : null
    const seconds = grown === null ? this.span(row) : grown / 1e6
    return growth === null || seconds <= 0 ? null : growth / seconds
  }
}

/** Returns the values of a column from its differences. */
function sums(differences: Value[]): Value[] {
  let sum = 0
  const values: Value[] = new Array(differences.length)
  for (let row = 0; row < differences.length; row++) {
    const difference = differences[row]
    values[row] = difference == null ? null : (sum += difference)
  }
  return values
}

/** Returns the data that the page carries. */
export async function unpacked<T extends { schema: string } = PageData>(): Promise<T> {
  const text = document.getElementById("run")?.textContent
  if (!text) throw new Error("it has no data: write it with throng report run.jsonl -o report.html")
  const packed = atob(text)
  const bytes = new Uint8Array(packed.length)
  for (let at = 0; at < packed.length; at++) bytes[at] = packed.charCodeAt(at)
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))
  return await new Response(stream).json()
}
