"""Prints its port, and then each thing that arrives as a line of JSON: requests of HTTP, frames of
WebSockets, and lines of text, all on one port. It answers each of them, and ends after two minutes."""

import asyncio
import base64
import hashlib
import json

JSON = b'{"id": "a&b", "list": ["x"]}'
PAGE = b'<form id="f"><input name="csrf" value="z9"></form>'
HEADERS = (
    b"Content-Type: text/html; charset=utf-8\r\nLocation: /next?a=1&b=%20c\r\n"
    b"Set-Cookie: sid=abc; Path=/\r\nX-Token: t/1\r\n"
)


def record(*event):
    print(json.dumps(event), flush=True)


async def connection(reader, writer):
    try:
        while True:
            line = await reader.readline()
            if not line:
                break
            if b" HTTP/1." not in line:
                record("line", line.decode("latin1"))
                writer.write(b"ok 5\n")
            elif await request(line.decode("latin1").rstrip("\r\n"), reader, writer):
                await frames(reader, writer)
                break
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def request(line, reader, writer):
    """Answers a request; returns whether it was the upgrade of a WebSocket."""
    fields = []
    while (field := (await reader.readline()).decode("latin1").rstrip("\r\n")):
        name, value = field.split(":", 1)
        fields.append((name.lower(), value.strip()))
    named = dict(fields)
    body = await reader.readexactly(int(named.get("content-length", 0)))
    record("request", line, sorted(fields), body.decode("latin1"))
    if "sec-websocket-key" not in named:
        answer = JSON if "/json" in line else PAGE
        writer.write(b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n" % (HEADERS, len(answer)))
        writer.write(answer)
        return False
    key = named["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
    chosen = named.get("sec-websocket-protocol", "").split(",")[0]
    chosen = f"Sec-WebSocket-Protocol: {chosen}\r\n" if chosen else ""
    head = f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n{chosen}"
    writer.write(f"HTTP/1.1 101 Switching Protocols\r\n{head}\r\n".encode())
    return True


async def frames(reader, writer):
    while True:
        opcode, length = await reader.readexactly(2)
        opcode, length = opcode & 15, length & 127
        if length >= 126:
            length = int.from_bytes(await reader.readexactly(2 if length == 126 else 8), "big")
        key = await reader.readexactly(4)
        masked = await reader.readexactly(length)
        payload = bytes(byte ^ key[index % 4] for index, byte in enumerate(masked))
        if opcode == 8:
            record("frame", opcode, "")
            writer.write(bytes([0x88, 2]) + payload[:2])
            return
        record("frame", opcode, payload.decode("latin1"))
        writer.write(b"\x81\x02ok")


async def main():
    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.sleep(120)


asyncio.run(main())
