// A chat server as one might have it: WebSockets with a token each, rooms, JSON. It knows nothing
// of throng. `node chat_server.js USERS.CSV DISEASE` prints its port, and ends with its standard
// input. Its diseases begin with the first message, and none depends on how fast the machine is.

import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import { WebSocketServer } from "ws"

const [file, disease] = process.argv.slice(2)
const lines = readFileSync(file, "utf8").trim().split("\n").slice(1)
const names = new Map(lines.map((line) => line.split(",").reverse()))
const rooms = new Map()
const kept = []
const http = createServer()
const sockets = new WebSocketServer({ noServer: true })
let connections = 0
let began

http.on("upgrade", (request, socket, head) => {
  const url = new URL(request.url, "http://localhost")
  const name = names.get(url.searchParams.get("token"))
  if (url.pathname !== "/ws" || name === undefined) {
    socket.end("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")
    return
  }
  sockets.handleUpgrade(request, socket, head, (peer) => welcome(peer, name))
})

function welcome(peer, name) {
  const id = ++connections
  let room = new Set()
  let messages = 0
  const send = (to, message) => to.send(JSON.stringify(message))
  send(peer, { type: "hello", id, name })
  if (disease === "chatty") {
    // Sends 8 kB each 20 ms, unasked.
    const timer = setInterval(() => send(peer, { type: "ad", text: "x".repeat(8000) }), 20)
    peer.on("close", () => clearInterval(timer))
  }
  peer.on("message", (data) => {
    const message = JSON.parse(data)
    if (message.type === "join") {
      if (!rooms.has(message.room)) rooms.set(message.room, new Set())
      room = rooms.get(message.room).add(peer)
      send(peer, { type: "joined", room: message.room })
      return
    }
    if (began === undefined) begin()
    messages += 1
    // Closes at the fifth message of a connection.
    if (disease === "closing" && messages === 5) return peer.close(1011, "oops")
    const deliver = () => {
      for (const other of room) send(other, { type: "msg", from: id, body: message.body })
    }
    const delay = delayMs()
    if (delay === 0) deliver()
    else setTimeout(deliver, delay)
  })
  peer.on("close", () => room.delete(peer))
}

function begin() {
  began = Date.now()
  // Out of each 4.5 s, 3 s without an answer: it sleeps, or it computes.
  const [free, busy] = [1500, 3000]
  const stop = { stalled: sleep, blocked: compute }[disease]
  if (stop === undefined) return
  const next = (at) => setTimeout(() => { stop(at + busy); next(at + busy + free) }, at - Date.now())
  next(began + free)
}

function sleep(until) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, until - Date.now())
}

function compute(until) {
  while (Date.now() < until) Math.sqrt(until)
}

// Returns how much later than at once a message is delivered now.
function delayMs() {
  switch (disease) {
    case "delayed":
      return 3000
    case "leaking": // keeps each message, and takes longer and longer until it takes 2.5 s
      kept.push(Buffer.alloc(64 * 1024, kept.length & 255))
      return Math.max(0, Math.min(2500, 0.25 * (Date.now() - began - 2000)))
    default:
      return 0
  }
}

http.listen(0, "127.0.0.1", () => console.log(http.address().port))
process.stdin.on("end", () => process.exit()).resume()
