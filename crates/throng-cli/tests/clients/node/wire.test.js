// The frames themselves, which phoenix's client hides: order, refs, versions and ends.

import assert from "node:assert/strict"
import { on, once } from "node:events"
import { after, before, test } from "node:test"
import { WebSocket } from "ws"
import { Server } from "./server.js"
import { within } from "./within.js"

let server

before(async () => { server = await Server.start() })
after(() => server.stop())

const OK = { status: "ok", response: {} }
const V2 = "?vsn=2.0.0"

test("each message of version 2 has its refs in their places", () => conversation(V2, [
  [["7", "1", "rooms:a", "phx_join", {}], ["7", "1", "rooms:a", "phx_reply", OK]],
  [["7", "2", "rooms:a", "echo", [1, { a: null }]], ["7", "2", "rooms:a", "phx_reply", { status: "ok", response: [1, { a: null }] }]],
  [[null, "3", "rooms:a", "echo", {}], ["7", "3", "rooms:a", "phx_reply", OK]],
  [["7", null, "rooms:a", "push_me", { to: "me" }], ["7", null, "rooms:a", "pushed", { to: "me" }]],
  [["7", "4", "rooms:a", "error", {}], ["7", "4", "rooms:a", "phx_reply", { status: "error", response: { reason: "asked" } }]],
  [[null, "5", "phoenix", "heartbeat", {}], [null, "5", "phoenix", "phx_reply", OK]],
  [[null, "6", "rooms:b", "echo", {}], [null, "6", "rooms:b", "phx_reply", { status: "error", response: { reason: "unmatched topic" } }]],
  [["9", "8", "private:a", "phx_join", {}], ["9", "8", "private:a", "phx_reply", { status: "error", response: { reason: "unauthorized" } }]],
  [["7", "10", "rooms:a", "phx_leave", {}], ["7", "10", "rooms:a", "phx_reply", OK], ["7", "7", "rooms:a", "phx_close", {}]],
  [["7", "11", "rooms:a", "phx_leave", {}], ["7", "11", "rooms:a", "phx_reply", OK]],
]))

test("a broadcast has no refs, and reaches its sender before the answer", async () => {
  const all = await Promise.all([open(V2), open(V2)])
  for (const one of all) {
    one.say(["1", "1", "rooms:wire", "phx_join", {}])
    await one.hear()
  }
  const [ada, bob] = all
  ada.say(["1", "2", "rooms:wire", "new_msg", { body: "hello" }])
  const broadcast = [null, null, "rooms:wire", "new_msg", { body: "hello" }]
  assert.deepEqual(await bob.hear(), broadcast)
  assert.deepEqual(await ada.hear(), broadcast)
  assert.deepEqual(await ada.hear(), ["1", "2", "rooms:wire", "phx_reply", OK])
  all.forEach(({ socket }) => socket.close())
})

test("of a join in the place of another, the answer comes before the end of the old", () => conversation(V2, [
  [["1", "1", "rooms:a", "phx_join", {}], ["1", "1", "rooms:a", "phx_reply", OK]],
  [["2", "2", "rooms:a", "phx_join", {}], ["2", "2", "rooms:a", "phx_reply", OK], ["1", "1", "rooms:a", "phx_close", {}]],
  [["1", "3", "rooms:a", "echo", {}]],
  [["1", "4", "rooms:a", "phx_leave", {}]],
  [["2", "5", "rooms:a", "echo", {}], ["2", "5", "rooms:a", "phx_reply", OK]],
  [["2", "6", "rooms:a", "crash", {}], ["2", "2", "rooms:a", "phx_error", { reason: "channel_crash" }]],
  [["3", "7", "rooms:a", "phx_join", {}], ["3", "7", "rooms:a", "phx_reply", OK]],
  [["3", null, "rooms:a", "stop", {}], ["3", "3", "rooms:a", "phx_close", {}]],
]))

test("version 1 is an object, whether it is asked for or nothing is", async () => {
  const answer = { topic: "rooms:a", event: "phx_reply", payload: OK, ref: "1" }
  for (const query of ["", "?vsn=1.0.0"]) {
    await conversation(query, [
      [{ topic: "rooms:a", event: "phx_join", payload: { user: "x" }, ref: "1" }, answer],
      [{ topic: "rooms:a", event: "push_me", payload: { a: 1 }, ref: "2" }, { topic: "rooms:a", event: "pushed", payload: { a: 1 }, ref: null }],
    ])
  }
})

test("bytes are answered in bytes, each field with its length", async () => {
  const one = await open(V2)
  one.say(["12", "1", "rooms:a", "phx_join", {}])
  await one.hear()
  const text = (...parts) => Buffer.concat(parts.map(part => Buffer.from(part)))
  one.socket.send(text([0, 2, 3, 7, 4], "12", "123", "rooms:a", "echo", [0, 255, 101]))
  assert.deepEqual(await one.hear(), text([1, 2, 3, 7, 2], "12", "123", "rooms:a", "ok", [0, 255, 101]))
  one.socket.send(text([0, 2, 0, 7, 7], "12", "rooms:a", "push_me", [5]))
  assert.deepEqual(await one.hear(), text([0, 2, 7, 6], "12", "rooms:a", "pushed", [5]))
  one.socket.close()
})

test("a version that does not exist is refused with 403", async () => {
  for (const query of ["?vsn=3.0.0", "?vsn=", "?vsn=two", "?vsn=2.1.0"]) {
    const socket = new WebSocket(`${server.ws}/socket/websocket${query}`)
    const answer = Promise.race([once(socket, "unexpected-response"), once(socket, "open")])
    const [, response] = await within(answer, `an answer to ${query}`)
    assert.equal(response?.statusCode, 403, query)
    response.destroy()
  }
})

test("what is not a message of the protocol ends the connection with 1011", async () => {
  for (const frame of ["{", "[]", "[1,2,3]", '{"topic":"phoenix"}', Buffer.from([9, 9])]) {
    const { socket } = await open(V2)
    socket.send(frame)
    const [code] = await within(once(socket, "close"), `it is closed after ${frame}`)
    assert.equal(code, 1011, `after ${frame}`)
  }
})

/** Sends the first frame of each turn and expects the others, in this order and without any other. */
async function conversation(query, turns) {
  const one = await open(query)
  for (const [said, ...expected] of turns) {
    one.say(said)
    for (const frame of expected) assert.deepEqual(await one.hear(), frame, `after ${JSON.stringify(said)}`)
  }
  one.socket.close()
}

async function open(query) {
  const socket = new WebSocket(`${server.ws}/socket/websocket${query}`)
  const heard = on(socket, "message")
  await within(once(socket, "open"), "it opens")
  return {
    socket,
    say: frame => socket.send(JSON.stringify(frame)),
    hear: async () => {
      const { value: [data, binary] } = await within(heard.next(), "a frame")
      return binary ? data : JSON.parse(data)
    },
  }
}
