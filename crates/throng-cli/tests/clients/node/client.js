// The client `phoenix`, with promises instead of callbacks.

import { LongPoll, Presence, Socket } from "phoenix"
import { WebSocket } from "ws"
import { PATIENCE_MS, within } from "./within.js"

export const TRANSPORTS = { WebSocket, LongPoll }

export class Client {
  #waiting = new Set()

  /** Connects to `server`; `options` are those of phoenix's Socket, here with short pauses between its attempts. */
  constructor(server, transport, options = {}) {
    this.socket = new Socket(`${server.ws}/socket`, {
      transport,
      timeout: PATIENCE_MS,
      reconnectAfterMs: () => 50,
      rejoinAfterMs: () => 50,
      ...options,
    })
    /** The received messages, in order. */
    this.seen = []
    /** The close events of its transports. */
    this.closes = []
    this.socket.onMessage(message => {
      this.seen.push(message)
      this.#look()
    })
    this.socket.onClose(event => {
      this.closes.push(event)
      this.#look()
    })
    this.socket.onOpen(() => this.#look())
    this.socket.connect()
  }

  /** Joins `topic` and returns the channel once the server has replied ok. */
  async join(topic, payload = {}) {
    const channel = this.channel(topic, payload)
    const answer = await answered(channel.join())
    if (answer.status !== "ok") throw new Error(`${topic}: ${JSON.stringify(answer)}`)
    return channel
  }

  /** Creates a channel whose changes wake `until`. */
  channel(topic, payload = {}) {
    const channel = this.socket.channel(topic, payload)
    channel.onClose(() => queueMicrotask(() => this.#look()))
    channel.onError(() => queueMicrotask(() => this.#look()))
    return channel
  }

  /** Tracks the members of `channel`; call it before the join. */
  presence(channel) {
    const presence = new Presence(channel)
    presence.onSync(() => queueMicrotask(() => this.#look()))
    return presence
  }

  /** Waits until `holds` returns true; checks it after every event. */
  until(what, holds) {
    return within(new Promise(done => {
      const look = () => holds() && (this.#waiting.delete(look), done())
      this.#waiting.add(look)
      look()
    }), what)
  }

  /** Waits for a message with these fields and returns the first one. */
  async message(fields) {
    const fits = message => Object.entries(fields).every(([key, value]) => message[key] === value)
    await this.until(`a message ${JSON.stringify(fields)}`, () => this.seen.some(fits))
    return this.seen.find(fits)
  }

  /** Pushes with any refs, past the state of the channel, and does not wait. */
  raw(join_ref, ref, topic, event, payload = {}) {
    this.socket.push({ join_ref, ref, topic, event, payload })
  }

  /** Leaves all channels, so that the server forgets them even where the transport has no end; then disconnects. */
  async close() {
    const leaving = this.socket.channels.map(channel => answered(channel.leave()))
    if (this.socket.isConnected()) await Promise.all(leaving)
    await within(new Promise(done => this.socket.disconnect(done)), "disconnected")
  }

  #look() {
    for (const look of [...this.#waiting]) look()
  }
}

/** Returns the server's reply to a push. */
export function answered(push) {
  return within(new Promise(done => {
    for (const status of ["ok", "error", "timeout"]) {
      push.receive(status, response => done({ status, response }))
    }
  }), `an answer to ${push.event}`)
}
