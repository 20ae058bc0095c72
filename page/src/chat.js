// One user: a socket with two channels, the chat room and the presence list.

import { LongPoll, Presence, Socket } from "phoenix"

const TRANSPORTS = {
  websocket: { make: WebSocket, label: "WebSocket" },
  longpoll: { make: LongPoll, label: "long poll" },
}

export class Chat {
  /**
   * Connects and joins; reconnects and rejoins by itself until the page closes.
   *
   * @param {string} name the name of the user
   * @param {"websocket"|"longpoll"} transport
   * @param {object} on the callbacks: `state(name, text)`, `note(text)`,
   *   `message({user, body})`, `people([{name, tabs}])`
   */
  constructor(name, transport, on) {
    this.name = name
    this.on = on
    this.transport = transport
    this.socket = new Socket("/socket", { transport: TRANSPORTS[transport].make })
    this.socket.onOpen(() => this.#say("open", `connected by ${this.#label()}`))
    this.socket.onClose(event => this.#lost(event?.code))
    this.room = this.#join("rooms:lobby", {})
    this.room.on("new_msg", payload => on.message(readable(payload)))
    this.room.on("new:msg", payload => on.message(readable(payload)))
    this.#watch(this.#join("presence:lobby", { user: name }))
    this.#connect()
  }

  /** Sends a message to the room; resolves to the milliseconds until the server's reply. */
  say(body) {
    const begun = performance.now()
    return new Promise((done, failed) => {
      this.room.push("new_msg", { user: this.name, body })
        .receive("ok", () => done(performance.now() - begun))
        .receive("error", answer => failed(answer.reason ?? JSON.stringify(answer)))
        .receive("timeout", () => failed("no answer in 10 s"))
    })
  }

  /** Switches to the other transport, on which the channels rejoin. */
  use(transport) {
    this.transport = transport
    this.socket.replaceTransport(TRANSPORTS[transport].make)
    this.#connect()
  }

  #connect() {
    this.#say("connecting", `connecting by ${this.#label()}`)
    this.socket.connect()
  }

  #join(topic, payload) {
    const channel = this.socket.channel(topic, payload)
    channel.onError(reason => {
      if (reason?.source !== "transport") this.on.note(`${topic} failed; joining it again`)
    })
    channel.join()
      .receive("ok", () => this.on.note(`joined ${topic}`))
      .receive("error", answer => this.on.note(`${topic} does not let you in: ${answer.reason}`))
      .receive("timeout", () => this.on.note(`${topic} does not answer; trying again`))
    return channel
  }

  #watch(channel) {
    const presence = new Presence(channel)
    presence.onSync(() => {
      this.on.people(presence.list((name, { metas }) => ({ name, tabs: metas.length })))
    })
    presence.onJoin((name, before) => before || name === this.name || this.on.note(`${name} came`))
    presence.onLeave((name, left) => left.metas.length > 0 || this.on.note(`${name} left`))
  }

  #lost(code) {
    const why = code === undefined || code === 1005 || code === 1006 ? "" : ` (${code})`
    this.#say("lost", `connection lost${why}, trying again`)
  }

  #label() {
    return TRANSPORTS[this.transport].label
  }

  #say(state, text) {
    this.on.state(state, text)
  }
}

/** Any client may send anything to the room: a message of another form is shown as it is. */
function readable(payload) {
  const said = typeof payload?.body === "string"
  return {
    user: typeof payload?.user === "string" ? payload.user : "somebody",
    body: said ? payload.body : JSON.stringify(payload),
  }
}
