// A server of GraphQL over WebSockets (npm's graphql-ws) that sends a ping as a message every
// 300 ms, and closes a connection that does not answer. `node graphql_ws_server.js` prints its
// port, ends with its standard input, and prints what it counted.

import { buildSchema } from "graphql"
import { CloseCode, GRAPHQL_TRANSPORT_WS_PROTOCOL, makeServer } from "graphql-ws"
import { WebSocketServer } from "ws"

const counted = { connections: 0, pongs: 0, operations: 0, codes: {} }
const schema = buildSchema("type Query { hello(name: String): String }")
const roots = {
  query: {
    hello({ name }) {
      counted.operations += 1
      return `hi ${name}`
    },
  },
}
const graphql = makeServer({ schema, roots })
const handleProtocols = (offered) =>
  offered.has(GRAPHQL_TRANSPORT_WS_PROTOCOL) ? GRAPHQL_TRANSPORT_WS_PROTOCOL : false
const server = new WebSocketServer({ host: "127.0.0.1", port: 0, handleProtocols })
server.on("listening", () => console.log(server.address().port))
server.on("connection", (socket, request) => {
  counted.connections += 1
  let waits = 0
  const timer = setInterval(() => {
    // A busy machine may be late by several of them.
    if (++waits > 100) socket.close(CloseCode.ConnectionAcknowledgementTimeout, "no pong")
    else socket.send(JSON.stringify({ type: "ping" }))
  }, 300)
  const closed = graphql.opened(
    {
      protocol: socket.protocol,
      send: (data) => socket.send(data),
      close: (code, reason) => socket.close(code, reason),
      onMessage: (take) => socket.on("message", (data) => take(String(data))),
      onPong() {
        waits = 0
        counted.pongs += 1
      },
    },
    { socket, request },
  )
  socket.once("close", (code, reason) => {
    clearInterval(timer)
    counted.codes[code] = (counted.codes[code] ?? 0) + 1
    closed(code, String(reason))
  })
})
process.stdin.resume()
process.stdin.on("end", () => {
  console.log(JSON.stringify(counted))
  process.exit(0)
})
