// Outages: servers that hang, restart, drain or time out, and the recovery of phoenix's own client.

import assert from "node:assert/strict"
import { afterEach, describe, test } from "node:test"
import { Client, TRANSPORTS, answered } from "./client.js"
import { Server } from "./server.js"

const running = []

afterEach(async () => {
  for (const { socket } of running.filter(one => one instanceof Client)) socket.disconnect()
  await Promise.all(running.filter(one => one instanceof Server).map(server => server.stop()))
  running.length = 0
})

const start = async options => keep(await Server.start(options))
const connect = (...args) => keep(new Client(...args))

function keep(made) {
  running.push(made)
  return made
}

const { WebSocket } = TRANSPORTS

for (const [name, transport] of Object.entries(TRANSPORTS)) {
  describe(`over ${name}`, () => {
    test("clients come back to a server that was killed and join again", async () => {
      const before = await start()
      const [ada, bob] = [connect(before, transport), connect(before, transport)]
      const mine = await ada.join("rooms:lobby")
      const theirs = await bob.join("rooms:lobby")
      const refs = [mine.joinRef(), theirs.joinRef()]
      await before.stop("SIGKILL")
      await ada.until("it noticed", () => mine.state !== "joined")
      await start({ port: before.port })
      await ada.until("ada is back", () => mine.state === "joined" && mine.joinRef() !== refs[0])
      await bob.until("bob is back", () => theirs.state === "joined" && theirs.joinRef() !== refs[1])
      mine.push("new_msg", { body: "we are back" })
      assert.deepEqual((await bob.message({ event: "new_msg" })).payload, { body: "we are back" })
    })
  })
}

test("a server that drains closes with 1012, and its clients join the next", async () => {
  const before = await start({ args: ["--drain-timeout", "30s"] })
  const client = connect(before, WebSocket)
  const channel = await client.join("rooms:lobby")
  const ref = channel.joinRef()
  const gone = before.stop("SIGTERM")
  await client.until("it was closed", () => client.closes.length > 0)
  assert.equal(client.closes[0].code, 1012)
  await gone
  await start({ port: before.port })
  await client.until("it is back", () => channel.state === "joined" && channel.joinRef() !== ref)
})

test("heartbeats are answered, and a ping is timed", async () => {
  const client = connect(await start(), WebSocket, { heartbeatIntervalMs: 500 })
  const beats = () => client.seen.filter(({ topic, payload }) => topic === "phoenix" && payload.status === "ok")
  await client.until("three heartbeats were answered", () => beats().length >= 3)
  const took = await new Promise(done => client.socket.ping(done))
  assert.ok(took >= 0)
})

test("a push to a server that hangs times out, and is answered by the next", async () => {
  const server = await start()
  const client = connect(server, WebSocket)
  const channel = await client.join("rooms:lobby")
  await server.freeze()
  assert.equal((await answered(channel.push("echo", {}, 200))).status, "timeout")
  server.thaw()
  assert.deepEqual((await answered(channel.push("echo", { next: 1 }))).response, { next: 1 })
})

test("a client whose heartbeat is not answered gives the connection up and joins on another", async () => {
  const server = await start()
  const client = connect(server, WebSocket, { heartbeatIntervalMs: 1000 })
  const channel = await client.join("rooms:lobby")
  const ref = channel.joinRef()
  await server.freeze()
  await client.until("it gave up", () => channel.state === "errored")
  server.thaw()
  await client.until("it is back", () => channel.state === "joined" && channel.joinRef() !== ref)
  assert.equal((await answered(channel.push("echo", {}))).status, "ok")
})

test("a client that says nothing is closed after the server's time-out, one that beats is not", async () => {
  const server = await start({ args: ["--idle-timeout", "5s"] })
  const silent = connect(server, WebSocket)
  const beating = connect(server, WebSocket, { heartbeatIntervalMs: 1500 })
  const channel = await beating.join("rooms:lobby")
  await silent.join("rooms:lobby")
  await silent.until("it was closed", () => silent.closes.length > 0)
  // Cowboy sends 1000 here and Bandit 1002.
  assert.ok([1000, 1002].includes(silent.closes[0].code), `closed with ${silent.closes[0].code}`)
  assert.equal(beating.closes.length, 0)
  assert.equal(channel.state, "joined")
})

test("those whose process is gone leave the presence", async () => {
  const server = await start()
  const [ada, bob] = [connect(server, WebSocket), connect(server, WebSocket)]
  const channel = ada.channel("presence:lobby", { user: "ada" })
  const presence = ada.presence(channel)
  await answered(channel.join())
  await bob.join("presence:lobby", { user: "bob" })
  await ada.until("bob came", () => presence.list().length === 2)
  bob.socket.reconnectTimer.scheduleTimeout = () => {}
  bob.socket.conn.terminate()
  await ada.until("bob is gone", () => presence.list().length === 1)
})
