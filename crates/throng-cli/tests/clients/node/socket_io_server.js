// A server of socket.io that pings every 300 ms and repeats each message. `node
// socket_io_server.js` prints its port, ends with its standard input, and prints what it counted.

import { createServer } from "node:http"
import { Server } from "socket.io"

const http = createServer()
const io = new Server(http, { pingInterval: 300, pingTimeout: 300_000 })
const counted = { connections: 0, pongs: 0, messages: 0, acks: 0, reasons: {} }

io.engine.on("connection", (socket) => {
  socket.on("packet", ({ type }) => {
    if (type === "pong") counted.pongs += 1
  })
})
io.on("connection", (socket) => {
  counted.connections += 1
  socket.on("message", (text) => {
    counted.messages += 1
    socket.emit("message", text)
    socket.emit("question", text, (answer) => {
      if (answer === `yes ${text}`) counted.acks += 1
    })
  })
  socket.on("disconnect", (reason) => {
    counted.reasons[reason] = (counted.reasons[reason] ?? 0) + 1
  })
})
http.listen(0, "127.0.0.1", () => console.log(http.address().port))
process.stdin.resume()
process.stdin.on("end", () => {
  console.log(JSON.stringify(counted))
  process.exit(0)
})
