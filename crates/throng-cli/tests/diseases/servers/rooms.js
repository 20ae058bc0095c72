// A chat of rooms over WebSockets, with `ws`, and one disease. A user joins with `{type: join,
// room}`, and each of its messages goes to all members of its room.
//
// Usage: node rooms.js DISEASE. It writes its port as the first line, and ends with its standard
// input.

import { createRequire } from "node:module"

// `ws` is among the packages of the clients.
const { WebSocketServer } = createRequire(new URL("../../clients/node/", import.meta.url))("ws")

const disease = process.argv[2]
const rooms = new Map()
let messages = 0
let deliveries = 0
let kept = []

const server = new WebSocketServer({ host: "127.0.0.1", port: 0 })
server.on("listening", () => console.log(server.address().port))
server.on("connection", socket => {
  let room = null
  socket.on("message", async data => {
    const message = JSON.parse(data)
    if (message.type === "join") {
      room = message.room
      if (!rooms.has(room)) rooms.set(room, new Set())
      rooms.get(room).add(socket)
      return socket.send(JSON.stringify({ type: "joined", room }))
    }
    messages += 1
    await suffer()
    for (const member of rooms.get(room) ?? []) {
      deliveries += 1
      // Loses every 19th message to a member.
      if (disease === "drops" && deliveries % 19 === 7) continue
      member.send(JSON.stringify(message))
    }
  })
  socket.on("close", () => rooms.get(room)?.delete(socket))
  socket.on("error", () => {})
})

async function suffer() {
  switch (disease) {
    case "clean":
    case "drops":
      return
    case "blocks": // computes for 300 ms at every 100th message, in its only loop
      if (messages % 100 === 0) compute(300)
      return
    case "delays": // delays each message by 2.00 s
      return new Promise(resolve => setTimeout(resolve, 2000))
    case "leak": // keeps 40 KiB of each message, and never forgets
      kept.push(Buffer.alloc(40 * 1024, messages & 255))
      return
    default:
      throw new Error(`no disease ${disease}`)
  }
}

function compute(ms) {
  const began = process.cpuUsage()
  let used
  do {
    for (let n = 0; n < 10_000; n += 1) Math.sqrt(n)
    used = process.cpuUsage(began)
  } while (used.user + used.system < ms * 1000)
}

process.stdin.resume()
process.stdin.on("end", () => process.exit(0))
