// A login over HTTP, and WebSockets that need its token and its cookie, on Node's own HTTP server.
// It says its port, and at the end of its standard input what it has seen, as JSON.
const { createHash } = require("node:crypto");
const http = require("node:http");

const seen = { connections: 0, logins: 0, refused: 0, upgraded: 0, echoed: 0 };
const cookies = (request) => (request.headers.cookie ?? "").split("; ");

const server = http.createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const { user, password } = JSON.parse(Buffer.concat(parts).toString());
    seen.logins += 1;
    if (password !== "secret") {
      response.writeHead(403, { "content-type": "application/json" });
      return response.end('{"error":"wrong password"}');
    }
    response.setHeader("set-cookie", [
      `sid=s-${user}; Path=/; HttpOnly; SameSite=Lax`,
      "old=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
      "hidden=x; Secure",
    ]);
    response.setHeader("content-type", "application/json");
    // Without a length: Node sends it in chunks.
    response.write('{"ok":true,');
    response.end(`"token":"t-${user}"}`);
  });
});

server.on("connection", () => (seen.connections += 1));

server.on("upgrade", (request, socket) => {
  socket.on("error", () => {});
  const token = new URL(request.url, "http://h").searchParams.get("token");
  const user = (token ?? "").replace(/^t-/, "");
  if (!user || cookies(request).join() !== `sid=s-${user}`) {
    seen.refused += 1;
    return socket.end("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n");
  }
  seen.upgraded += 1;
  const key = request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const accept = createHash("sha1").update(key).digest("base64");
  socket.write(
    "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n" +
      `sec-websocket-accept: ${accept}\r\n\r\n`,
  );
  socket.on("data", (frame) => {
    // Each frame is short and comes alone: the client waits for its echo.
    const length = frame[1] & 127;
    const mask = frame.subarray(2, 6);
    const payload = frame.subarray(6, 6 + length).map((byte, at) => byte ^ mask[at % 4]);
    const isClose = (frame[0] & 15) === 8;
    seen.echoed += isClose ? 0 : 1;
    socket.write(Buffer.concat([Buffer.from([frame[0], length]), payload]));
    if (isClose) socket.end();
  });
});

server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume();
process.stdin.on("end", () => {
  console.log(JSON.stringify(seen));
  process.exit(0);
});
