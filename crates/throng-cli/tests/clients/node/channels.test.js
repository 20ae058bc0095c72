// Channels as phoenix's own client expects them, over each of its transports.

import assert from "node:assert/strict"
import { after, before, describe, test } from "node:test"
import { Client, TRANSPORTS, answered } from "./client.js"
import { Server } from "./server.js"

let server

before(async () => { server = await Server.start() })
after(() => server.stop())

for (const [name, transport] of Object.entries(TRANSPORTS)) {
  // Separate topics, because a long-poll session outlives its client by seconds.
  const topic = room => `rooms:${name}-${room}`

  const check = (behaviour, clients, body) => test(behaviour, async () => {
    const all = Array.from({ length: clients }, () => new Client(server, transport))
    try {
      await body(...all)
    } finally {
      await Promise.all(all.map(client => client.close()))
    }
  })

  describe(`over ${name}`, () => {
    check("a join and a leave are answered ok with an empty object", 1, async client => {
      const channel = client.channel(topic("a"))
      assert.deepEqual(await answered(channel.join()), { status: "ok", response: {} })
      assert.equal(channel.state, "joined")
      assert.deepEqual(await answered(channel.leave()), { status: "ok", response: {} })
      await client.message({ topic: topic("a"), event: "phx_close" })
      assert.equal(channel.state, "closed")
    })

    check("a push gets its own reply, ok or error", 1, async client => {
      const channel = await client.join(topic("a"))
      const payload = { text: "grüße \u0000 \ud83d\ude00 \"", list: [1, 2.5e300, null, { deep: [] }] }
      assert.deepEqual(await answered(channel.push("echo", payload)), { status: "ok", response: payload })
      assert.deepEqual(
        await answered(channel.push("error", {})),
        { status: "error", response: { reason: "asked" } },
      )
    })

    check("a thousand pushes at once get a thousand replies, each its own", 1, async client => {
      const channel = await client.join(topic("a"))
      const turns = Array.from({ length: 1000 }, (_, turn) => answered(channel.push("echo", { turn })))
      const answers = await Promise.all(turns)
      answers.forEach((answer, turn) => assert.deepEqual(answer.response, { turn }))
    })

    check("a message of 256 KiB comes back whole", 1, async client => {
      const channel = await client.join(topic("a"))
      const text = "0123456789abcdeä".repeat(16 * 1024)
      const answer = await answered(channel.push("echo", { text }))
      assert.ok(answer.response.text === text, "another text came back")
    })

    check("push_me pushes to its sender alone", 2, async (ada, bob) => {
      const mine = await ada.join(topic("push-me"))
      await bob.join(topic("push-me"))
      mine.push("push_me", { only: "ada" })
      assert.deepEqual((await ada.message({ event: "pushed" })).payload, { only: "ada" })
      mine.push("new_msg", { then: "all" })
      await bob.message({ event: "new_msg" })
      assert.ok(!bob.seen.some(message => message.event === "pushed"))
    })

    check("a message goes to everyone in the room, its sender included, and to no other room", 3, async (ada, bob, eve) => {
      const mine = await ada.join(topic("talk"))
      const theirs = await bob.join(topic("talk"))
      await eve.join(topic("elsewhere"))
      for (const event of ["new_msg", "new:msg"]) {
        assert.deepEqual(await answered(mine.push(event, { body: event })), { status: "ok", response: {} })
        for (const client of [ada, bob]) {
          const message = await client.message({ event })
          assert.deepEqual(message.payload, { body: event })
          assert.equal(message.join_ref, null)
          assert.equal(message.ref, null)
        }
      }
      await answered(theirs.push("new_msg", { last: true }))
      const own = eve.socket.channels[0]
      await answered(own.push("echo", {}))
      assert.ok(!eve.seen.some(message => ["new_msg", "new:msg"].includes(message.event)))
    })

    check("a channel that crashes says so, its client joins again, and its neighbour never notices", 1, async client => {
      const channel = await client.join(topic("crash"))
      const neighbour = await client.join(topic("neighbour"))
      const [first, other] = [channel.joinRef(), neighbour.joinRef()]
      channel.push("crash", {})
      const failed = await client.message({ event: "phx_error" })
      assert.deepEqual([failed.join_ref, failed.ref, failed.payload], [first, first, { reason: "channel_crash" }])
      await client.until("joined again", () => channel.state === "joined" && channel.joinRef() !== first)
      assert.deepEqual((await answered(channel.push("echo", { again: 1 }))).response, { again: 1 })
      assert.equal(neighbour.joinRef(), other)
      assert.equal((await answered(neighbour.push("echo", {}))).status, "ok")
    })

    check("a channel that stops is closed for good", 1, async client => {
      const channel = await client.join(topic("stop"))
      const ref = channel.joinRef()
      channel.push("stop", {})
      const closed = await client.message({ event: "phx_close" })
      assert.deepEqual([closed.join_ref, closed.ref, closed.payload], [ref, ref, {}])
      assert.equal(channel.state, "closed")
      client.raw(null, "after", topic("stop"), "echo")
      const answer = await client.message({ ref: "after" })
      assert.deepEqual(answer.payload, { status: "error", response: { reason: "unmatched topic" } })
    })

    check("joins that are refused say why", 1, async client => {
      for (const [topic, reason] of [["nowhere:at-all", "unmatched topic"], ["private:1", "unauthorized"]]) {
        const channel = client.channel(topic)
        assert.deepEqual(await answered(channel.join()), { status: "error", response: { reason } })
        channel.leave()
      }
    })

    check("a second channel of the same topic takes the place of the first", 1, async client => {
      const first = await client.join(topic("twice"))
      const second = await client.join(topic("twice"))
      await client.until("the first is closed", () => first.state === "closed")
      assert.equal(second.state, "joined")
      assert.equal((await answered(second.push("echo", {}))).status, "ok")
    })

    check("what has a stale join_ref is ignored", 1, async client => {
      const channel = await client.join(topic("stale"))
      client.raw("stale", "s1", topic("stale"), "echo", {})
      client.raw("stale", "s2", topic("stale"), "phx_leave", {})
      client.raw("stale", "s3", topic("stale"), "new_msg", { body: "nobody hears it" })
      assert.equal((await answered(channel.push("echo", {}))).status, "ok")
      assert.ok(!client.seen.some(({ ref, event }) => /^s\d/.test(ref) || event === "new_msg"))
      assert.equal(channel.state, "joined")
    })

    check("to leave what was never joined is answered ok", 1, async client => {
      client.raw(null, "l1", topic("never"), "phx_leave", {})
      const answer = await client.message({ ref: "l1" })
      assert.deepEqual(answer.payload, { status: "ok", response: {} })
    })

    check("a transport carries a hundred channels and not one more", 1, async client => {
      const joined = await Promise.all(Array.from({ length: 100 }, (_, n) => client.join(topic(`many-${n}`))))
      const refused = client.channel(topic("many-100"))
      assert.deepEqual(
        await answered(refused.join()),
        { status: "error", response: { reason: "too many channels joined" } },
      )
      refused.leave()
      await answered(joined[0].leave())
      await client.join(topic("many-100"))
    })

    check("presence follows those who come and go", 3, async (ada, bob, ada2) => {
      const place = `presence:${name}`
      const channel = ada.channel(place, { user: "ada", mood: "calm" })
      const presence = ada.presence(channel)
      const who = () => presence.list((key, { metas }) => `${key} ${metas.length}`).sort().join()
      await answered(channel.join())
      await ada.until("ada is there", () => who() === "ada 1")
      const [meta] = presence.state.ada.metas
      assert.equal(meta.mood, "calm")
      assert.match(meta.phx_ref, /^[\w-]{16}$/)

      const bobs = bob.channel(place, { user: "bob" })
      const seenByBob = bob.presence(bobs)
      await answered(bobs.join())
      await ada.until("bob came", () => who() === "ada 1,bob 1")
      await bob.until("bob sees both", () => seenByBob.list().length === 2)

      const second = await ada2.join(place, { user: "ada", mood: "again" })
      await ada.until("ada is there twice", () => who() === "ada 2,bob 1")
      second.leave()
      await ada.until("ada is there once", () => who() === "ada 1,bob 1")
      bobs.leave()
      await ada.until("bob left", () => who() === "ada 1")
      assert.ok(ada.seen.some(({ event, payload }) => event === "presence_diff" && payload.leaves.bob))
    })
  })
}

test("the two transports meet in one room", async () => {
  const poll = new Client(server, TRANSPORTS.LongPoll)
  const web = new Client(server, TRANSPORTS.WebSocket)
  const [polled, webbed] = await Promise.all([poll.join("rooms:meet"), web.join("rooms:meet")])
  polled.push("new_msg", { from: "poll" })
  webbed.push("new:msg", { from: "web" })
  for (const client of [poll, web]) {
    assert.deepEqual((await client.message({ event: "new_msg" })).payload, { from: "poll" })
    assert.deepEqual((await client.message({ event: "new:msg" })).payload, { from: "web" })
  }
  await Promise.all([poll.close(), web.close()])
})

test("bytes travel as bytes", async () => {
  const [ada, bob] = [new Client(server, TRANSPORTS.WebSocket), new Client(server, TRANSPORTS.WebSocket)]
  const mine = await ada.join("rooms:bytes")
  await bob.join("rooms:bytes")
  const bytes = Uint8Array.from({ length: 70_000 }, (_, at) => at * 7 % 256)
  const answer = await answered(mine.push("echo", bytes.buffer))
  assert.deepEqual(new Uint8Array(answer.response), bytes)
  mine.push("push_me", bytes.buffer.slice(0, 3))
  assert.deepEqual(new Uint8Array((await ada.message({ event: "pushed" })).payload), bytes.slice(0, 3))
  mine.push("new_msg", bytes.buffer)
  assert.deepEqual(new Uint8Array((await bob.message({ event: "new_msg" })).payload), bytes)
  await Promise.all([ada.close(), bob.close()])
})

test("bytes that are posted reach those who hold a socket", async () => {
  const poll = new Client(server, TRANSPORTS.LongPoll)
  const web = new Client(server, TRANSPORTS.WebSocket)
  await web.join("rooms:posted")
  // Long-polling is not tested here, because it has no binary reply.
  const poster = poll.channel("rooms:posted")
  await answered(poster.join())
  poster.push("new_msg", Uint8Array.of(0, 255, 10, 91).buffer)
  assert.deepEqual(new Uint8Array((await web.message({ event: "new_msg" })).payload), Uint8Array.of(0, 255, 10, 91))
  await web.close()
  poll.socket.disconnect()
})
