// The band above the charts: phases of the load, events, and where each finding began.

import { h } from "./dom"
import type { Run } from "./data"
import { findingMoments, shownRange } from "./chart"
import { moment } from "./format"

/** The narrowest part that is drawn, in per cent of the width. */
const NARROWEST = 0.2

export class Band {
  readonly element = h("div.band", { "aria-hidden": "true" })

  constructor(private readonly run: Run) {}

  draw(): void {
    const [from, to] = shownRange(this.run)
    const place = (seconds: number) => (seconds - from) / (to - from) * 100
    const phases = this.run.phases.map((phase, index) => {
      const begin = Math.max(place(phase.from_ms / 1000), 0)
      const next = this.run.phases[index + 1]
      const end = Math.min(place(next ? next.from_ms / 1000 : this.run.end), 100)
      if (end - begin < NARROWEST) return null
      const text = phase.paused ? `paused (${phase.name})` : phase.name
      const element = h("span.phase", { title: `${text}, from ${moment(phase.from_ms / 1000)}` }, text)
      element.style.left = `${begin}%`
      element.style.width = `${end - begin}%`
      return element
    })
    const pins = new Map<string, HTMLElement>()
    const pin = (seconds: number, kind: string, text: string, title: string, click?: () => void) => {
      const left = place(seconds)
      if (left < 0 || left > 100) return
      // What happened at the same place shares a pin.
      const key = `${kind} ${Math.round(left / (kind === "event" ? NARROWEST : 2))}`
      const there = pins.get(key)
      if (there) {
        if (kind === "finding") there.textContent = `${there.textContent?.split("–")[0]}–${text}`
        if (there.title.length < 1000) there.title += `\n${title}`
        return
      }
      const element = h("span", { class: `pin ${kind}`, title, ...(click ? { click } : {}) }, text)
      element.style.left = `${left}%`
      pins.set(key, element)
    }
    for (const event of this.run.events) pin(event.at_ms / 1000, "event", "▾", `${moment(event.at_ms / 1000)}: ${event.text}`)
    for (const [seconds, number] of findingMoments(this.run)) {
      pin(seconds, "finding", String(number), this.run.summary.diagnosis.findings[number - 1]?.text ?? "",
        () => document.getElementById(`finding-${number}`)?.scrollIntoView({ block: "center" }))
    }
    this.element.replaceChildren(h("div.phases", {}, phases), h("div.pins", {}, [...pins.values()]))
  }
}
