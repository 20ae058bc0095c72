// Elements of the page. Text is always text: nothing that a run file holds becomes markup.

export type Child = Node | string | number | null | undefined | false | Child[]

/** Creates an element. `tag` may name classes: `div.figure.wide`. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K | `${K}.${string}`,
  attributes: Record<string, string | boolean | ((event: Event) => void)> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const [name, ...classes] = tag.split(".")
  const element = document.createElement(name as K)
  if (classes.length > 0) element.className = classes.join(" ")
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value)
    else if (value === true) element.setAttribute(key, "")
    else if (value !== false) element.setAttribute(key, value)
  }
  append(element, children)
  return element
}

function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child)
    else if (child !== null && child !== undefined && child !== false)
      element.append(child instanceof Node ? child : String(child))
  }
}

export function svg(tag: string, attributes: Record<string, string | number>, ...children: Node[]) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value))
  element.append(...children)
  return element
}

/** Creates a button that copies a text. */
export function copyButton(text: string): HTMLElement {
  const tell = (word: string) => {
    button.textContent = word
    button.setAttribute("aria-label", word)
  }
  const button = h("button", { type: "button", "aria-label": `copy ${text}`, click: () => {
    void navigator.clipboard.writeText(text).then(() => tell("copied"), () => tell("cannot copy"))
  } }, "copy")
  return button
}

/** A column of a table. A number stands to the right and never wraps; `words` wrap between words; a
 * `text` takes the room that is left. */
export interface Column { head: string; kind: "number" | "words" | "text" }

export const words = (head: string): Column => ({ head, kind: "words" })
export const text = (head: string): Column => ({ head, kind: "text" })

/** Creates a table. The first column is a heading; a column that is a mere head has numbers. */
export function table(title: string, heads: (string | Column)[], rows: Child[][], note?: string): HTMLElement {
  const [first, ...others] = heads.map(head => typeof head === "string" ? { head, kind: "number" as const } : head)
  const headOf = ({ head, kind }: Column) => head === "" ? h("td") : h("th", { scope: "col", class: classOf(kind, head) }, head)
  // Two columns fit on a phone. Where one text stands beside more, it gets lines of its own there.
  const isStacked = others.length > 1 && others.filter(({ kind }) => kind === "text").length === 1
  return h("section", { class: `table${isWide(others) ? " wide" : ""}` },
    h("h2", {}, title),
    h("div.scroll", { tabindex: "0", role: "region", "aria-label": title }, h("table", isStacked ? { class: "stacked" } : {},
      h("thead", {}, h("tr", {}, headOf({ ...first!, kind: "words" }), others.map(headOf))),
      h("tbody", {}, rows.map(([name, ...cells]) => h("tr", {},
        h("th", { scope: "row", class: classOf("words", name) }, broken(name ?? "")),
        cells.map((cell, index) => h("td", { class: classOf(others[index]!.kind, cell) }, broken(cell ?? "–")))))))),
    note ? h("p.note", {}, note) : null)
}

/** Returns the classes of a cell. A few words stay on one line, and many need a wider column. */
function classOf(kind: Column["kind"], cell: Child): string {
  const length = lengthOf(cell)
  return length <= SHORT ? `${kind} short` : length > MANY ? `${kind} many` : kind
}

function lengthOf(child: Child): number {
  if (Array.isArray(child)) return child.reduce((sum: number, one) => sum + lengthOf(one), 0)
  return child instanceof Node ? child.textContent?.length ?? 0 : String(child || "").length
}

const SHORT = 14
const MANY = 40

/** Reports whether columns need the whole page: many, or a text. */
function isWide(columns: Column[]): boolean {
  return columns.length > 3 || columns.some(({ kind }) => kind === "text")
}

/** Puts a section behind its heading: closed at first. */
export function folded(section: HTMLElement): HTMLElement {
  const [heading, ...rest] = section.childNodes
  section.replaceChildren(h("details", {}, h("summary", {}, heading!), rest))
  return section
}

/** Returns a text whose end is a click away where the page is narrow and the text is long. */
export function long(text: string): Child {
  if (text.length <= LONG) return broken(text)
  const begin = cutAt(text, LONG)
  const element = h("span.long", {}, broken(begin), h("span.rest", {}, broken(text.slice(begin.length))),
    h("button", { type: "button", click: () => element.classList.add("open") }, "… more"))
  return element
}

/** The most characters of a text in a narrow table: three lines on a phone. */
const LONG = 120

/** Returns the beginning of a text, at most so long, without a part of a word if it has several. */
export function cutAt(text: string, most: number): string {
  const cut = text.slice(0, most)
  return text.length > most ? cut.slice(0, Math.max(cut.lastIndexOf(" "), most / 2)) : cut
}

/** Lets a line break where a long word has a joint: JSON, addresses and names with underscores. */
export function broken(child: Child): Child {
  if (typeof child !== "string") return child
  return child.split(/(\S{16,})/).map((part, index) => index % 2 === 0 ? part
    : part.split(/(?<=[,;:&?=/_.@}\])])(?=[^\s,;:&?=/_.@}\])])/).map((piece, at) => at === 0 ? piece : [h("wbr"), piece]))
}

const colours = new Map<string, string>()

/** Returns a colour of the present theme. */
export function colour(name: string): string {
  let value = colours.get(name)
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()
    colours.set(name, value)
  }
  return value
}

/** Forgets the colours: the theme is another one. */
export function recolour(): void {
  colours.clear()
}
