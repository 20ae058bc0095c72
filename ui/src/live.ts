// A run that goes on: rows come from the program that runs it, and its commands go there.

import { Run, type Row, type Summary } from "./data"
import { h } from "./dom"

const TOKEN = new URLSearchParams(location.search).get("token") ?? ""

/** Fetches what the run has so far. */
export async function fetchRun(): Promise<Run> {
  const answer = await fetch(`/run?token=${encodeURIComponent(TOKEN)}`)
  if (!answer.ok) throw new Error(answer.status === 403 ? "the link's token is not that of this run" : `the run does not answer: ${answer.status}`)
  return new Run(await answer.json())
}

/** Follows a run. `changed` is called after each row, and at its end. */
export function follow(run: Run, changed: () => void, lost: (why: string) => void): void {
  const events = new EventSource(`/rows?token=${encodeURIComponent(TOKEN)}&from=${run.rows}`)
  events.addEventListener("row", event => { run.add(JSON.parse(event.data) as Row); changed() })
  events.addEventListener("summary", event => {
    const { summary, curves } = JSON.parse(event.data) as { summary: Summary; curves: Run["curves"] }
    Object.assign(run, { summary, curves })
    changed()
  })
  events.addEventListener("end", () => { run.live = false; events.close(); changed() })
  events.onerror = () => {
    if (!run.live) return
    events.close()
    lost("The run does not answer any more. Its run file holds everything up to its last second.")
  }
}

/** The buttons that steer the run: the verbs of `throng ctl`. */
export function controls(): HTMLElement {
  const said = h("span.said", { role: "status" })
  const send = (verb: string) => async () => {
    const answer = await fetch(`/ctl?token=${encodeURIComponent(TOKEN)}`, { method: "POST", body: verb })
    said.textContent = await answer.text()
  }
  const button = (text: string, verb: string) => h("button", { type: "button", click: () => { void send(verb)() } }, text)
  return h("div.controls", { role: "group", "aria-label": "Steer the run" },
    button("pause", "pause"), button("resume", "resume"), button("+100 users", "start 100"),
    button("−100 users", "stop 100"), button("stop", "shutdown"), said)
}
