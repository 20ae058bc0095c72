// The data of a run: columns of numbers on one time axis, heat maps, events, the summary. The
// writer of a report (`page.rs`) packs them as `throng.page/1`.

import { Column, Numbers } from "./packed"

export const SCHEMA = "throng.page/1"

export type Value = number | null

export interface Latency {
  p50: number; p90: number; p95: number; p99: number; p999: number; max: number; mean: number; count: number
}

export interface Finding {
  id: string; side: string; severity: string; confidence: number; text: string; remedy: string
  evidence: { counter: string; from: number; to: number; at_ms: number }[]
  follows_from?: string | null; machines?: string[]
}

/** The verdict in a line and in its parts: what stopped the run, what became of it, and what to do. */
export interface Diagnosis {
  verdict: string; headline?: string; effect?: string; remedy?: string
  findings: Finding[]; unseen: string[]
}

export interface Judgement { threshold: string; met: boolean; value: number | null; measured: string }

/** The summary, as `--json` writes it. Only the fields that the page reads by name are typed. */
export interface Summary {
  run: { target: string; scenario: string; started: string; throng_version: string;
         end: string | null; incomplete: string | null; imported?: { tool: string; format: string } }
  duration_s: number
  paused_s?: number
  validity: { grade: string; reasons: string[] }
  users: Record<string, number>
  connect: Operation
  message: Operation
  join?: Operation
  push?: Operation
  http?: HttpOperation
  broadcast?: { expected: number; delivered: number; missing: number; latency_us: Latency;
                probes: Record<string, number | null>[] }
  steps?: StepOfRun[]
  /** Of an imported run: latencies of which the log has no values, by their names in thresholds. */
  latency_stats?: Record<string, LatencyStats>
  errors: Record<string, number>
  exchanges?: Exchange[]
  generator: { cpu_cores_used: number | null; lag_us: Latency; cores: number
               cpu_us_per_connect: number | null; cpu_us_per_message: number | null
               rss_bytes_per_user: number | null; ceiling_share: number | null }
  /** Of a fleet: each machine. */
  machines?: MachineOfRun[]
  machine: { cpus: number; cpu_busy_share: number | null }
  server: ServerCosts & { handler: string; accept: string; cores: number; open_most: number } | null
  /** The costs of a server that is not throng's. */
  foreign_server?: ServerCosts
  classes?: Record<string, Record<string, number>>
  /** Operations of the classes that a threshold is about, by the names of class and operation. */
  class_operations?: Record<string, Record<string, OperationOfClass>>
  thresholds: Judgement[]
  diagnosis: Diagnosis
}

export interface ServerCosts {
  cpu_cores_used: number | null; cpu_us_per_connection: number | null
  cpu_us_per_message: number | null; rss_bytes_per_connection: number | null
}

/** What is known of a latency without its values, in microseconds. */
export interface LatencyStats {
  count: number; mean_us: number; deviation_us?: number; min_us?: number; max_us?: number
  percentiles_us?: Record<string, number>
}

/** A machine of a fleet: its totals, and the worst of its intervals. */
export interface MachineOfRun {
  name: string; host: string; share: number; start_error_us?: number; users_most: number; connected_most: number
  connects_ok: number; connects_failed: number; answered: number; errors: number
  connects_per_s_most: number | null; lag_us_p99_most: number | null
  connect_us_p99_most: number | null; message_us_p99_most: number | null
  busiest_core_most: number | null; cpu_cores_used: number | null; rss_bytes_most: number | null
  lost: { from_s: number; until_s: number | null; reason: string }[]
}

/** A step with a name, or a transaction. */
export interface StepOfRun {
  name: string; ok: number; errors: number; waiting: number; rate_mean: number | null
  latency_us: Latency; unanswered_us: Latency; judged_us: Latency
}

/** The first error of a kind: its step, what the step expected, and what came. */
export interface Exchange {
  kind: string; class?: string; step?: string; step_kind?: string; line?: number; user?: number
  expected: string; got: string; first_ms: number; last_ms: number
  awaited_elsewhere?: boolean
}

export interface Operation {
  rate_most: number | null; rate_mean: number | null
  latency_us: Latency; unanswered_us?: Latency; judged_us?: Latency
  failed?: number | Record<string, number>
  [other: string]: unknown
}

export interface OperationOfClass {
  ok: number; failed: number; rate_mean: number | null
  latency_us: Latency; unanswered_us: Latency; judged_us: Latency
}

/** HTTP requests; `statuses` has the answers by their status. */
export interface HttpOperation extends Operation {
  started: number; retried: number
  statuses?: Record<string, number>
}

export interface Header {
  started: string; throng_version: string; command: string[]; target: string
  scenario: { path: string; source: string }
  users_planned: number; planned_ms?: number; capacity?: number; target_is_here: boolean
  ceiling?: Record<string, number>; machine?: Record<string, string>
}

export interface Phase { from_ms: number; name: string; paused: boolean }
export interface PageEvent { at_ms: number; text: string }

/** How many latencies of which size there were, over time. */
export interface HeatMap {
  /** Cell `c` begins at `2 ** (c / cellsPerOctave)` µs. */
  cellsPerOctave: number
  columns: HeatColumn[]
  /** The largest count of a cell. */
  most: number
}

/** The cells that are not empty, with their counts, from the smallest latency to the largest. */
export interface HeatColumn { from: number; to: number; cells: number[]; counts: number[] }

interface PackedHeatMap { cells_per_octave: number; intervals_per_column: number; columns: string }

/** The data of a page, as JSON. */
export interface PageData {
  schema: string
  header: Header
  summary: Summary
  warnings: string[]
  intervals_per_row: number
  columns: Record<string, string>
  heat: Record<string, PackedHeatMap>
  curves: Record<string, [number, number][]>
  phases: Phase[]
  events: PageEvent[]
  events_left_out: number
}

/** What a page that grows has more. Rows and columns from `from` on replace those that were there. */
export interface PagePart {
  cursor: string
  from: number
  at_ms: number[]
  columns: Record<string, (number | null)[]>
  heat: Record<string, { from: number; cells_per_octave: number; columns: { at_ms: number; cells: [number, number][] }[] }>
  phases: Phase[]
  events: PageEvent[]
  events_left_out: number
}

/** A run. It alone knows how the page carries it. */
export class Run {
  /** True while the run goes on. */
  live = false
  /** Which run of several it is: `2/4 dispatch`. */
  title = ""
  header: Header
  summary: Summary
  warnings: string[]
  curves: Record<string, [number, number][]>
  readonly intervalsPerRow: number
  phases: Phase[]
  readonly events: PageEvent[]
  eventsLeftOut: number
  private readonly atMs: Column
  private readonly columns = new Map<string, Column>()
  private readonly packedHeat: Record<string, PackedHeatMap>
  private readonly heatMaps = new Map<string, HeatMap>()
  private seconds: Float64Array | null = null
  /** Grows with each change of the rows. */
  revision = 0

  constructor(page: PageData) {
    if (page.schema !== SCHEMA) throw new Error(`this page cannot show ${page.schema}`)
    this.header = page.header
    this.summary = page.summary
    this.warnings = page.warnings
    this.curves = page.curves
    this.intervalsPerRow = page.intervals_per_row
    this.packedHeat = page.heat
    this.phases = page.phases
    this.events = page.events
    this.eventsLeftOut = page.events_left_out
    const { at_ms, ...others } = page.columns
    this.atMs = new Column(at_ms)
    for (const [id, text] of Object.entries(others)) this.columns.set(id, new Column(text))
  }

  /** Adds what the run has more. */
  add(part: PagePart): void {
    this.revision += 1
    this.seconds = null
    part.at_ms.forEach((ms, row) => this.atMs.set(part.from + row, ms))
    for (const [id, values] of Object.entries(part.columns)) {
      const column = this.columns.get(id) ?? new Column()
      values.forEach((value, row) => column.set(part.from + row, value))
      this.columns.set(id, column)
    }
    for (const [operation, { from, cells_per_octave: cellsPerOctave, columns }] of Object.entries(part.heat)) {
      const map = this.heat(operation) ?? { cellsPerOctave, columns: [], most: 1 }
      map.columns.length = Math.min(map.columns.length, from)
      for (const { at_ms, cells } of columns) addColumn(map, at_ms, cells.flat())
      this.heatMaps.set(operation, map)
    }
    this.phases = part.phases
    this.events.push(...part.events)
    this.eventsLeftOut = part.events_left_out
  }

  get rows(): number {
    return this.atMs.length
  }

  /** The end of each row, in seconds. */
  get time(): Float64Array {
    if (this.seconds?.length !== this.rows) this.seconds = this.atMs.all().map(ms => ms / 1000)
    return this.seconds!
  }

  /** The end of the run so far, in seconds. */
  get end(): number {
    return this.time[this.rows - 1] ?? 0
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
    return this.columns.get(id)?.moves() ?? false
  }

  /** Returns a value for each row, NaN where it is not known. Rows at the end may be missing. */
  values(id: string): Float64Array {
    return this.columns.get(id)?.all() ?? NONE
  }

  /** Returns the growth of a counter per second, by the clock of the run file. */
  perSecond(id: string): Float64Array {
    const { time } = this
    return this.values(id).map((growth, row) => {
      const seconds = time[row]! - (time[row - 1] ?? 0)
      return seconds > 0 ? growth / seconds : NaN
    })
  }

  /** Returns the growth of a counter per second. The generator's counters divide by their own time. */
  rates(id: string): Float64Array {
    const rates = this.perSecond(id)
    if (!id.startsWith("load.")) return rates
    const [growths, grown] = [this.values(id), this.values("load.grown_us")]
    return rates.map((rate, row) => grown[row]! > 0 ? growths[row]! / (grown[row]! / 1e6) : rate)
  }

  /** Returns the heat map of an operation, if it has one. */
  heat(operation: string): HeatMap | undefined {
    const packed = this.packedHeat[operation]
    const known = this.heatMaps.get(operation)
    if (known || !packed) return known
    const map = unpackHeat(packed)
    this.heatMaps.set(operation, map)
    return map
  }
}

const NONE = new Float64Array(0)

function unpackHeat({ cells_per_octave: cellsPerOctave, columns: text }: PackedHeatMap): HeatMap {
  const map: HeatMap = { cellsPerOctave, columns: [], most: 1 }
  const numbers = new Numbers(text)
  let ms = 0
  while (numbers.left) {
    ms += numbers.next()
    const cells: number[] = []
    let cell = 0
    for (let left = numbers.next(); left > 0; left--) cells.push(cell += numbers.next(), numbers.next())
    addColumn(map, ms, cells)
  }
  return map
}

/** Adds the column that ends at `ms`. `cells` are pairs of a cell and its count. */
function addColumn(map: HeatMap, ms: number, cells: number[]): void {
  const from = map.columns.at(-1)?.to ?? Math.max(ms - 1000, 0) / 1000
  const column: HeatColumn = { from, to: ms / 1000, cells: [], counts: [] }
  for (let at = 0; at < cells.length; at += 2) {
    column.cells.push(cells[at]!)
    column.counts.push(cells[at + 1]!)
    map.most = Math.max(map.most, cells[at + 1]!)
  }
  map.columns.push(column)
}

/** Returns the data that the page carries. */
export async function unpacked<T extends { schema: string } = PageData>(): Promise<T> {
  const element = document.getElementById("run")
  const text = element?.textContent
  if (!text) throw new Error("it has no data: write it with throng report run.jsonl -o report.html")
  // The text is large, and it is not needed again.
  element.remove()
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("gzip"))
  return await new Response(stream).json()
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const { fromBase64 } = Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }
  return fromBase64 ? fromBase64.call(Uint8Array, base64) : Uint8Array.from(atob(base64), char => char.charCodeAt(0))
}
