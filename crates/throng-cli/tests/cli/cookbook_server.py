"""The server of the cookbook's recipes: logins and items over HTTP, rooms over WebSockets.

It says its port in its first line.
"""

import asyncio
import base64
import hashlib
import itertools
import json
from urllib.parse import parse_qs, urlsplit

REASONS = {200: "OK", 201: "Created", 204: "No Content", 304: "Not Modified",
           401: "Unauthorized", 404: "Not Found", 412: "Precondition Failed"}
rooms, items, ids = {}, {}, itertools.count(1)


def answer(writer, status, body=None, headers=()):
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} {REASONS[status]}", f"content-length: {len(data)}", *headers]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)


def item(writer, method, path, headers, body):
    """Answers a request for the items or for one of them."""
    name = path.removeprefix("/items/")
    if path == "/items" and method == "POST":
        name = str(next(ids))
        items[name] = body
        return answer(writer, 201, {"id": int(name)}, [f"location: /items/{name}"])
    if name not in items:
        return answer(writer, 404)
    data = json.dumps(items[name]).encode()
    etag = '"' + hashlib.sha256(data).hexdigest()[:16] + '"'
    if method == "PUT" and headers.get("if-match", etag) != etag:
        return answer(writer, 412)
    if method == "PUT":
        items[name] = body
        return answer(writer, 200, body)
    if method == "DELETE":
        del items[name]
        return answer(writer, 204)
    if headers.get("if-none-match") == etag:
        return answer(writer, 304, None, [f"etag: {etag}"])
    return answer(writer, 200, items[name], [f"etag: {etag}"])


def frame(opcode, data):
    size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + len(data).to_bytes(2, "big")
    return bytes([0x80 | opcode]) + size + data


async def read_frame(reader):
    head = await reader.readexactly(2)
    size = head[1] & 127
    if size == 126:
        size = int.from_bytes(await reader.readexactly(2), "big")
    mask = await reader.readexactly(4)
    data = await reader.readexactly(size)
    return head[0] & 15, bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))


async def chat(reader, writer, room):
    """Sends each message to all members of its sender's room, the sender included."""
    members = rooms.setdefault(room, set())
    members.add(writer)
    try:
        while True:
            opcode, data = await read_frame(reader)
            if opcode == 8:
                writer.write(frame(8, data))
                return
            message = json.loads(data)
            if message["type"] != "join":
                for member in members:
                    member.write(frame(1, data))
                continue
            members.discard(writer)
            members = rooms.setdefault(message["room"], set())
            members.add(writer)
            writer.write(frame(1, json.dumps({**message, "type": "joined"}).encode()))
    finally:
        members.discard(writer)


async def serve(reader, writer):
    try:
        while head := (await reader.readuntil(b"\r\n\r\n")).decode():
            first, *lines = head.strip().split("\r\n")
            method, target, _ = first.split(" ")
            headers = {line.split(": ", 1)[0].lower(): line.split(": ", 1)[1] for line in lines}
            size = int(headers.get("content-length", 0))
            body = json.loads(await reader.readexactly(size)) if size else None
            url = urlsplit(target)
            if "upgrade" in headers:
                token = headers.get("authorization", "").removeprefix("Bearer ")
                token = parse_qs(url.query).get("token", [token])[0]
                if url.path == "/ws" and not token.startswith("t-"):
                    answer(writer, 401)
                    continue
                key = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
                accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
                writer.write(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n"
                             b"connection: Upgrade\r\nsec-websocket-accept: "
                             + accept.encode() + b"\r\n\r\n")
                return await chat(reader, writer, "")
            if url.path == "/login":
                cookie = ["set-cookie: session=1; path=/"]
                answer(writer, 200, {"ok": True, "token": f"t-{body['user']}"}, cookie)
            else:
                item(writer, method, url.path, headers, body)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
