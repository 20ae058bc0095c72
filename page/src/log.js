// The messages, newest at the bottom. A server under load may send thousands a second: they are shown together once a
// frame, and the oldest go.

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
    if (this.#waiting.length > LINES_MAX) this.#waiting.splice(1, 1)
  }

  #show() {
    const list = this.#list
    const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40
    list.append(...this.#waiting.splice(0))
    while (list.childElementCount > LINES_MAX) list.firstElementChild.remove()
    if (atEnd) list.scrollTop = list.scrollHeight
  }
}

/** A colour's angle that is always the same for the same name. */
export function hue(name) {
  let sum = 0
  for (const unit of name) sum = (sum * 31 + unit.codePointAt(0)) % 360
  return sum
}

export function element(tag, text) {
  const made = document.createElement(tag)
  if (text !== undefined) made.textContent = text
  return made
}
