// A server of Node that is not what users look for, or closes on them.
//
// Usage: node refusals.js DISEASE. It writes its port as the first line, and ends with its standard
// input.

import { createServer } from "node:http"
import { createRequire } from "node:module"

// `ws` is among the packages of the clients.
const { WebSocketServer } = createRequire(new URL("../../clients/node/", import.meta.url))("ws")

const disease = process.argv[2]
const page = "<!doctype html><html><head><title>Welcome to nginx!</title></head></html>"
let messages = 0

const web = createServer((request, response) => {
  response.setHeader("content-type", "text/html")
  response.end(page)
})
if (disease === "closes") {
  const server = new WebSocketServer({ server: web })
  server.on("connection", socket => {
    socket.on("message", data => {
      messages += 1
      if (messages % 10 === 0) return socket.close(1011, "oops")
      socket.send(data.toString())
    })
    socket.on("error", () => {})
  })
}
web.listen(0, "127.0.0.1", () => console.log(web.address().port))
process.stdin.on("end", () => process.exit()).resume()
