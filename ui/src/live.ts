// A run that goes on: its rows come from the program that runs it, and commands go there.

import { Run, type PagePart, type PageData, type Summary } from "./data"
import { h } from "./dom"
import { moment } from "./format"

/** What follows a run. */
export interface Follower {
  /** Shows a run; another one than before, if `isNext`. */
  show(run: Run, isNext: boolean): void
  /** Shows what is new: rows, a summary, or the end. */
  grow(what: "rows" | "summary" | "end"): void
}

/** The answer to `GET /run`. Without a page, no run has begun. */
interface Answer {
  run: number; waiting?: string
  title: string; verbs: string[]; ended: boolean; cursor: string; summary: number
  page?: PageData
}

/** Reports whether the page is one of a run that goes on. */
export function isLive(): boolean {
  return document.getElementById("live") !== null
}

/** The connection to a run, and the part of the page that shows it. */
export class Live {
  readonly element: HTMLElement
  private run: Run | null = null
  private number = 0
  private cursor = ""
  private summary = 0
  private over = false
  private wait = RETRY_MS
  private readonly state = h("b.state")
  private readonly progress = h("span.progress")
  private readonly lost = h("p.failure", { role: "alert", hidden: true })
  private readonly controls = new Controls()

  constructor(private readonly follower: Follower) {
    this.element = h("section.live", { "aria-label": "The run" },
      h("p.status", {}, this.state, this.progress), this.controls.element, this.lost)
  }

  /** Fetches the run so far, and follows it from there. */
  async fetch(): Promise<void> {
    let answer: Answer
    try {
      const response = await fetch("/run", { headers: BEARER })
      if (response.status === 403) return this.say((await response.text()).trim())
      answer = await response.json() as Answer
    } catch {
      return this.retry(() => void this.fetch())
    }
    const isNext = this.number !== 0 && answer.run !== this.number
    this.number = answer.run
    this.cursor = answer.cursor ?? ""
    this.summary = answer.summary ?? 0
    if (answer.page) {
      const run = new Run(answer.page)
      run.title = answer.title
      run.live = !answer.ended
      this.run = run
      this.controls.offer(answer.verbs)
      this.follower.show(run, isNext)
    }
    this.draw(answer.waiting)
    this.follow()
  }

  private follow(): void {
    const query = new URLSearchParams({ run: String(this.number), from: this.cursor, summary: String(this.summary), token: TOKEN })
    const events = new EventSource(`/rows?${query}`)
    const on = (name: string, act: (data: string) => void) =>
      events.addEventListener(name, event => act((event as MessageEvent<string>).data))
    events.onopen = () => {
      this.wait = RETRY_MS
      this.lost.hidden = true
    }
    events.onerror = () => {
      events.close()
      if (!this.over) this.retry(() => this.follow())
    }
    on("rows", data => {
      const part = JSON.parse(data) as PagePart
      this.cursor = part.cursor
      this.run?.add(part)
      this.changed("rows")
    })
    on("summary", data => {
      const { summary, curves } = JSON.parse(data) as { summary: Summary; curves: Run["curves"] }
      if (this.run) Object.assign(this.run, { summary, curves })
      this.changed("summary")
    })
    on("end", () => {
      if (this.run) this.run.live = false
      this.changed("end")
    })
    on("run", () => {
      events.close()
      void this.fetch()
    })
    on("over", () => {
      this.over = true
      events.close()
      this.draw()
    })
  }

  private changed(what: "rows" | "summary" | "end"): void {
    this.draw()
    if (this.run) this.follower.grow(what)
  }

  private retry(again: () => void): void {
    if (this.lost.hidden) this.say(`The connection was lost at ${new Date().toLocaleTimeString()}. What is here stays; the page tries again.`)
    setTimeout(again, this.wait)
    this.wait = Math.min(this.wait * 2, RETRY_MOST_MS)
  }

  private say(text: string): void {
    this.lost.textContent = text
    this.lost.hidden = false
  }

  private draw(waiting?: string): void {
    const { run } = this
    const phase = run?.phases.at(-1)
    const goesOn = run?.live ?? false
    this.element.classList.toggle("over", !goesOn)
    this.element.classList.toggle("paused", goesOn && (phase?.paused ?? false))
    this.state.textContent = goesOn ? phase?.paused ? "paused" : "live" : run ? "over" : "waiting"
    this.progress.textContent = !run ? waiting ?? ""
      : goesOn ? [run.title, phase?.name, times(run)].filter(Boolean).join(" · ")
      : this.over && run.title ? "The lab is over. --keep DIR keeps the run files, for throng report."
      : this.over ? `The run took ${moment(run.end)}. ${kept(run)}`
      : `${run.title} took ${moment(run.end)}; the next run follows.`
    this.controls.enable(goesOn, phase?.paused ?? false)
  }
}

/** Returns how to see the page later: by the run file that the command named, or the usual one. */
function kept(run: Run): string {
  const { command } = run.header
  if (command.includes("--no-record")) return "There is no run file (--no-record)."
  const at = command.findIndex(word => word === "--record" || word.startsWith("--record="))
  const file = at < 0 ? "run.jsonl" : command[at]!.includes("=") ? command[at]!.slice("--record=".length) : command[at + 1] ?? "run.jsonl"
  return `Its run file keeps this page: throng report ${file} -o report.html`
}

/** Returns `0:23 of about 1:00, 37 s left`. */
function times(run: Run): string {
  // What a pause delays ends later.
  const planned = run.header.planned_ms ? run.header.planned_ms / 1000 + (run.summary.paused_s ?? 0) : 0
  const left = planned - run.end
  return planned === 0 ? moment(run.end)
    : `${moment(run.end)} of about ${moment(planned)}${left > 0 ? `, ${moment(Math.round(left))} left` : ""}`
}

/** The buttons that steer a run: the verbs of `throng ctl`. */
class Controls {
  readonly element = h("div.controls", { role: "group", "aria-label": "Steer the run" })
  private readonly said = h("span.said", { role: "status" })
  private readonly users = h("input", { type: "number", min: "1", max: "1000000", value: "100", "aria-label": "users to start or stop" })
  private readonly pause = this.button("pause", () => this.send("pause"))
  private readonly resume = this.button("resume", () => this.send("resume"))
  private readonly more = this.button("+ users", () => this.send("start", this.count()))
  private readonly fewer = this.button("− users", () => this.send("stop", this.count()))
  private readonly stop = this.button("stop…", () => this.confirm())
  private readonly question = h("span.question", { hidden: true }, "End it now? ",
    this.button("end the run", () => { this.closeQuestion(); this.send("shutdown") }),
    this.button("go on", () => this.closeQuestion()))

  /** Shows the buttons of these verbs. */
  offer(verbs: string[]): void {
    const has = (verb: string, ...elements: HTMLElement[]) => verbs.includes(verb) ? elements : []
    this.element.replaceChildren(...has("pause", this.pause), ...has("resume", this.resume),
      ...has("start", this.users, this.more), ...has("stop", this.fewer),
      ...has("shutdown", this.stop, this.question), this.said)
  }

  enable(goesOn: boolean, paused: boolean): void {
    for (const element of [this.more, this.fewer, this.users, this.stop]) element.disabled = !goesOn
    this.pause.disabled = !goesOn || paused
    this.resume.disabled = !goesOn || !paused
    if (!goesOn) this.closeQuestion(false)
  }

  private count(): number {
    return Math.max(1, Math.round(this.users.valueAsNumber) || 1)
  }

  private confirm(): void {
    this.stop.hidden = true
    this.question.hidden = false
    this.question.querySelector<HTMLElement>("button:last-child")?.focus()
  }

  private closeQuestion(focus = true): void {
    if (this.question.hidden) return
    this.question.hidden = true
    this.stop.hidden = false
    if (focus) this.stop.focus()
  }

  private button(text: string, click: () => void): HTMLButtonElement {
    return h("button", { type: "button", click }, text)
  }

  private send(verb: string, n?: number): void {
    this.said.textContent = `${verb} …`
    const body = JSON.stringify(n === undefined ? { verb } : { verb, n })
    fetch("/ctl", { method: "POST", headers: BEARER, body })
      .then(answer => answer.json() as Promise<{ ok: boolean; error?: string; data?: Record<string, number> }>)
      .then(({ error, data }) => {
        const users = data?.["users"]
        this.said.textContent = error ?? `${verb}: done${users === undefined ? "" : `, ${users} users`}`
      })
      .catch(() => { this.said.textContent = `${verb}: no answer` })
  }
}

const TOKEN = new URLSearchParams(location.search).get("token") ?? ""
const BEARER = { Authorization: `Bearer ${TOKEN}` }
const RETRY_MS = 1000
const RETRY_MOST_MS = 10_000
