// A chat server as one might have it: WebSockets with a token each, rooms, JSON. It knows nothing
// of throng. `node chat_server.js USERS.CSV DELAY_MS` prints its port, and ends with its standard
// input. Each message is delivered DELAY_MS after it came.

import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import { WebSocketServer } from "ws"

const [file, delay] = [process.argv[2], Number(process.argv[3])]
const lines = readFileSync(file, "utf8").trim().split("\n").slice(1)
const names = new Map(lines.map((line) => line.split(",").reverse()))
const rooms = new Map()
const http = createServer()
const sockets = new WebSocketServer({ noServer: true })
let connections = 0

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
  const send = (to, message) => to.send(JSON.stringify(message))
  send(peer, { type: "hello", id, name })
  peer.on("message", (data) => {
    const message = JSON.parse(data)
    if (message.type === "join") {
      if (!rooms.has(message.room)) rooms.set(message.room, new Set())
      room = rooms.get(message.room).add(peer)
      send(peer, { type: "joined", room: message.room })
    } else {
      const deliver = () => {
        for (const other of room) send(other, { type: "msg", from: id, body: message.body })
      }
      setTimeout(deliver, delay)
    }
  })
  peer.on("close", () => room.delete(peer))
}

http.listen(0, "127.0.0.1", () => console.log(http.address().port))
process.stdin.on("end", () => process.exit()).resume()
