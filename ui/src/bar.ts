// The bar that stays in sight: what is shown, the moment at the cursor, and buttons for what keys do.

import { shownRange } from "./chart"
import type { Run } from "./data"
import { h } from "./dom"
import { moment } from "./format"
import { change, view } from "./view"

export class Bar {
  readonly element: HTMLElement
  private readonly shown = h("span.shown")
  private readonly at = h("span.at", { "aria-hidden": "true" })
  private readonly whole = h("button", { type: "button", click: () => change({ range: null }) }, "whole run")
  private readonly theme = h("button", { type: "button", title: "light, dark, or as the system has it (t)", click: nextTheme })

  constructor(private readonly run: Run) {
    const button = (name: string, text: string, key: string) =>
      h("button", { type: "button", "aria-label": name, title: `${name} (${key})`, click: () => act(run, key) }, text)
    this.element = h("div.bar", {}, this.shown, this.whole,
      h("span.moves", {}, button("earlier", "←", "a"), button("later", "→", "d"),
        button("zoom in", "+", "w"), button("zoom out", "−", "s")),
      this.theme, this.at, h("span.keys", {}, "drag to zoom · keys: ← → + − 0 · , . cursor · l latency · t theme"))
  }

  draw(): void {
    const [from, to] = shownRange(this.run)
    this.shown.textContent = view.range ? `${moment(from)} to ${moment(to)}` : `${moment(this.run.end)}, all of it`
    this.whole.disabled = view.range === null
    this.theme.textContent = `theme: ${view.theme ?? "system"}`
  }

  /** Shows the moment at the cursor. */
  point(seconds: number | null): void {
    this.at.textContent = seconds === null ? "" : `at ${moment(seconds)}`
  }
}

/** Does what a key stands for. Returns whether it stands for anything. */
export function act(run: Run, key: string): boolean {
  const [from, to] = shownRange(run)
  const span = to - from
  const move = (from: number, to: number) => {
    if (to - from < 0.01) return
    const begin = Math.max(Math.min(from, run.end - (to - from)), 0)
    const end = Math.min(begin + (to - from), run.end)
    change({ range: end - begin >= run.end ? null : [begin, end] })
  }
  switch (key) {
    case "ArrowLeft": case "a": move(from - span / 4, to - span / 4); break
    case "ArrowRight": case "d": move(from + span / 4, to + span / 4); break
    case "+": case "=": case "w": move(from + span / 4, to - span / 4); break
    case "-": case "s": move(from - span / 2, to + span / 2); break
    case "0": case "Escape": change({ range: null }); break
    case "t": nextTheme(); break
    default: return false
  }
  return true
}

function nextTheme(): void {
  change({ theme: view.theme === null ? "dark" : view.theme === "dark" ? "light" : null })
}
