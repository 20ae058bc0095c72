// What part of the run is shown, and how. It stands in the address, so that a link shows the same.

export interface View {
  /** The shown time in seconds; null for all of the run. */
  range: [number, number] | null
  /** The operation whose latency is shown. */
  operation: string | null
  /** The theme; null for that of the system. */
  theme: "light" | "dark" | null
}

type Listener = (view: View) => void

export const view: View = parse(location.hash)
const listeners: Listener[] = []

/** Calls `listener` after each change. */
export function onChange(listener: Listener): void {
  listeners.push(listener)
}

/** Changes the view, and the address with it. */
export function change(change: Partial<View>): void {
  Object.assign(view, change)
  // What the address keeps, so that a link shows the same.
  if (view.range) view.range = [milliseconds(view.range[0]), milliseconds(view.range[1])]
  const parts = [
    view.range && `t=${view.range.join("-")}`,
    view.operation && `latency=${encodeURIComponent(view.operation)}`,
    view.theme && `theme=${view.theme}`,
  ].filter(Boolean)
  history.replaceState(null, "", parts.length > 0 ? `#${parts.join("&")}` : location.pathname + location.search)
  notify()
}

addEventListener("hashchange", () => {
  Object.assign(view, parse(location.hash))
  notify()
})

/** Rounds a time in seconds to whole milliseconds. */
function milliseconds(seconds: number): number {
  return Number(seconds.toFixed(3))
}

function notify(): void {
  for (const listener of listeners) listener(view)
}

function parse(hash: string): View {
  const parts = new URLSearchParams(hash.slice(1))
  const [from, to] = (parts.get("t") ?? "").split("-").map(Number)
  const theme = parts.get("theme")
  return {
    range: from !== undefined && to !== undefined && from < to ? [from, to] : null,
    operation: parts.get("latency"),
    theme: theme === "light" || theme === "dark" ? theme : null,
  }
}
