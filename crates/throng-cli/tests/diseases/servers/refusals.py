"""A WebSocket server that answers, refuses or closes in a way of its own.

Usage: refusals.py DISEASE. It writes its port as the first line, and ends with its standard input.
"""

import asyncio
import base64
import hashlib
import json
import random
import socket
import struct
import sys
import time

DISEASE = sys.argv[1]
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(payload, opcode=1):
    """Returns a frame of at most 65,535 bytes (RFC 6455 section 5.2)."""
    data = payload.encode() if isinstance(payload, str) else payload
    length = len(data)
    size = bytes([length]) if length < 126 else b"\x7e" + struct.pack(">H", length)
    return bytes([0x80 | opcode]) + size + data


def close(code, reason=b""):
    return frame(struct.pack(">H", code) + reason, 8)


async def read_frame(reader):
    """Returns the opcode and the payload of a client's frame."""
    first, second = await reader.readexactly(2)
    length = second & 0x7F
    if length == 126:
        (length,) = struct.unpack(">H", await reader.readexactly(2))
    mask = await reader.readexactly(4)
    data = await reader.readexactly(length)
    return first & 0x0F, bytes(byte ^ mask[n % 4] for n, byte in enumerate(data))


async def read_key(reader):
    """Reads an upgrade request, and returns its key."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    for line in head.split("\r\n"):
        name, _, value = line.partition(":")
        if name.lower() == "sec-websocket-key":
            return value.strip().encode()
    return b""


def consent(key):
    accept = base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()
    return (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {accept}\r\n\r\n"
    ).encode()


def http(status, fields="", body=""):
    head = f"HTTP/1.1 {status}\r\n{fields}Content-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


LOGIN = (
    "<!doctype html><html><head><title>Sign in - Example</title></head><body><form>"
    '<input name="user"><input type="password" name="word"></form></body></html>'
)

# What answers each upgrade, in place of a consent.
ANSWERS = {
    "login page": http("200 OK", "Content-Type: text/html\r\n", LOGIN),
    "redirect": http("301 Moved Permanently", "Location: http://chat.example.com/live/ws\r\n"),
    "redirect to login": http("302 Found", "Location: /login?next=%2Fws\r\n"),
    "unauthorized": http("401 Unauthorized", 'WWW-Authenticate: Bearer realm="chat"\r\n'),
    "429": http("429 Too Many Requests", "Retry-After: 30\r\n"),
}


# The age in seconds at which a connection is closed.
AGES = {"age": 3.0, "young": 1.5}


class Limit:
    """So many things a second; a fifth of a second's worth may come at once."""

    def __init__(self, per_second):
        self.per_second = per_second
        self.most = self.left = per_second / 5
        self.at = time.monotonic()

    def takes(self):
        now = time.monotonic()
        self.left = min(self.most, self.left + (now - self.at) * self.per_second)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Server:
    """What all connections share."""

    def __init__(self):
        self.messages = 0
        self.members = set()
        self.held = None
        self.random = random.Random(7)
        self.limit = Limit(20 if DISEASE == "429" else 30)

    async def serve(self, reader, writer):
        try:
            await self.converse(reader, writer)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.members.discard(writer)
            writer.close()

    async def converse(self, reader, writer):
        if DISEASE == "not HTTP":
            await reader.read(100)
            writer.write(b"+OK hello redis\r\n")
            return
        if DISEASE == "silent":
            while await reader.read(4096):
                pass
            return
        key = await read_key(reader)
        if DISEASE in ANSWERS and (DISEASE != "429" or not self.limit.takes()):
            writer.write(ANSWERS[DISEASE])
            return
        writer.write(consent(key))
        self.members.add(writer)
        age = AGES.get(DISEASE)
        ends = time.monotonic() + age if age else None
        held = []
        while True:
            left = max(0.0, ends - time.monotonic()) if ends else None
            left = 2.0 if DISEASE == "idle" else left
            try:
                opcode, data = await asyncio.wait_for(read_frame(reader), left)
            except asyncio.TimeoutError:
                if age:
                    writer.write(close(1001))
                return
            if opcode == 8:
                writer.write(frame(data, 8))
                return
            if opcode in (1, 2):
                self.answer(writer, data, held)
                await writer.drain()

    def answer(self, writer, data, held):
        self.messages += 1
        n = self.messages
        if DISEASE == "drops" and not self.limit.takes():
            return
        if DISEASE == "loses" and n % 10 == 0:
            return
        if DISEASE == "loses some" and self.random.random() < 0.05:
            return
        if DISEASE == "wrong" and n % 20 == 0:
            writer.write(frame('{"type":"error","reason":"no such room"}'))
            return
        if DISEASE == "out of order":
            held.append(data)
            if len(held) == 2:
                for one in reversed(held) if n % 10 < 4 else list(held):
                    writer.write(frame(one))
                held.clear()
            return
        if DISEASE == "no mark":
            body = json.loads(data).get("body")
            for member in list(self.members):
                member.write(frame(json.dumps({"type": "msg", "body": body})))
            return
        if DISEASE == "broadcasts out of order":
            if n % 2:
                self.held = data
                return
            for member in list(self.members):
                member.write(frame(data))
                member.write(frame(self.held))
            return
        writer.write(frame(data))
        if DISEASE == "twice":
            writer.write(frame(data))


async def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1000)
    listener.setblocking(False)
    print(listener.getsockname()[1], flush=True)
    stdin = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    server = None
    if DISEASE != "never accepts":
        server = await asyncio.start_server(Server().serve, sock=listener)
    await stdin.read()


asyncio.run(main())
