// Elements of the page. Text is always text: nothing that a run file holds becomes markup.

type Child = Node | string | number | null | undefined | false | Child[]

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

/** Creates a table. The first column is a heading, the others are numbers. */
export function table(title: string, heads: string[], rows: Child[][], note?: string, kind: "numbers" | "words" = "numbers"): HTMLElement {
  return h("section", { class: `table ${kind}` },
    h("h2", {}, title),
    h("div.scroll", { tabindex: "0", role: "region", "aria-label": title }, h("table", {},
      h("thead", {}, h("tr", {}, heads.map(head => head === "" ? h("td") : h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map(([first, ...others]) => h("tr", {},
        h("th", { scope: "row" }, first ?? ""), others.map(cell => h("td", {}, cell ?? "–"))))))),
    note ? h("p.note", {}, note) : null)
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
