// The list of present users, ordered by name.

import { element, hue } from "./dom.js"

/** The most names shown; the others are a number. */
const SHOWN_MAX = 200

/** Shows `people`, each with a `name` and the number of open `tabs`. */
export function showPeople(list, people) {
  people.sort((a, b) => a.name.localeCompare(b.name))
  const items = people.slice(0, SHOWN_MAX).map(({ name, tabs }) => {
    const item = element("li")
    const dot = element("i", [...name][0]?.toUpperCase() ?? "?")
    dot.style.setProperty("--hue", hue(name))
    dot.setAttribute("aria-hidden", "true")
    item.append(dot, element("span", name))
    if (tabs > 1) item.append(element("small", `${tabs} tabs`))
    return item
  })
  const more = people.length - items.length
  if (more > 0) items.push(element("li", `and ${more} more`))
  list.replaceChildren(...items)
}
