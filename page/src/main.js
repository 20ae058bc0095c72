// The page: a name, a room, the people in it. `Chat` supplies the messages and the members; this
// file shows them.

import { Chat } from "./chat.js"
import { Log } from "./log.js"
import { showPeople } from "./people.js"

const find = id => document.getElementById(id)
const log = new Log(find("log"))
let chat = null

find("name").value = sessionStorage.getItem("name") ?? ""

find("enter").addEventListener("submit", event => {
  event.preventDefault()
  const name = find("name").value.trim()
  if (name === "") return
  sessionStorage.setItem("name", name)
  document.title = `${name} · throng chat`
  find("enter").hidden = true
  find("room").hidden = false
  find("body").focus()
  chat = new Chat(name, chosenTransport(), { state, note, message, people })
})

find("say").addEventListener("submit", event => {
  event.preventDefault()
  const body = find("body").value.trim()
  if (body === "") return
  find("body").value = ""
  chat.say(body).then(took, why => note(`“${body}” was not sent: ${why}`))
})

find("transport").addEventListener("change", () => chat?.use(chosenTransport()))

function chosenTransport() {
  return document.querySelector("input[name=transport]:checked").value
}

function state(name, text) {
  find("state").dataset.state = name
  find("state").textContent = text
}

function note(text) {
  log.note(text)
}

function message({ user, body }) {
  log.message(user, body, user === chat.name)
}

function people(list) {
  find("count").textContent = list.length
  showPeople(find("people"), list)
}

function took(milliseconds) {
  find("took").textContent = `answered in ${milliseconds.toFixed(1)} ms`
}
