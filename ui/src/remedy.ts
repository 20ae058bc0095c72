// What to do about a finding: prose, in which the commands stand out and can be copied.

import { broken, type Child, copyButton, h } from "./dom"

/** How commands begin that remedies name. */
const BEGINS = "sysctl -|ulimit -|throng \\w|perf \\w|strace -|ss -|ip (?:-|addr)|nft \\w|tc -|ps -|top -|taskset -"
/** How the prose goes on after a command. */
const ENDS = "\\s+(?:and|or|on|for|in|if|to|which|here)\\b|[,;:]\\s|\\s?[()]|\\.?$"
const COMMAND = new RegExp(`(?<![\\w./-])((?:${BEGINS}).*?)(?=${ENDS})`)

/** Returns the line that says what to do. */
export function remedy(what: string): HTMLElement {
  const parts = what.split(COMMAND).map((part, index): Child =>
    index % 2 === 0 ? broken(part) : [h("code", {}, broken(part)), " ", copyButton(part)])
  return h("p.remedy", {}, h("span.do", {}, "do"), h("span", {}, parts))
}
