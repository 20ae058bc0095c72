// The messages, newest at the bottom. A server under load may send thousands a second, so they are
// shown together once a frame, and the oldest are removed.

import { element, hue } from "./dom.js"

const LINES_MAX = 500

export class Log {
  #list
  #waiting = []

  constructor(list) {
    this.#list = list
  }

  message(user, body, mine) {
    const name = element("b", user)
    name.style.setProperty("--hue", hue(user))
    this.#add(mine ? "mine" : "theirs", name, element("span", body))
  }

  note(text) {
    this.#add("note", element("span", text))
  }

  #add(kind, ...parts) {
    const line = element("li")
    line.className = kind
    const now = new Date()
    const time = element("time", now.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }))
    time.dateTime = now.toISOString()
    line.append(...parts, time)
    if (this.#waiting.push(line) === 1) requestAnimationFrame(() => this.#show())
    // A hidden tab has no frames.
    if (this.#waiting.length > LINES_MAX) this.#waiting.shift()
  }

  #show() {
    const list = this.#list
    const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40
    list.append(...this.#waiting.splice(0))
    while (list.childElementCount > LINES_MAX) list.firstElementChild.remove()
    if (atEnd) list.scrollTop = list.scrollHeight
  }
}
