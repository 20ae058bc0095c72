"""Measures a chat server with another client: `chat_client.py URL TOKEN ROOM SECONDS`.

Waits for the first message of another user in ROOM. Then it joins a room of its own, and sends a
message each 20 ms without waiting for answers, for SECONDS or until the server closes. Prints as
JSON the percentiles of the time until its own messages came back, their number, the close code, and
how late it was itself at most when it was to send.
"""

import asyncio
import json
import math
import sys
import time

import websockets


async def join(url, token, room):
    socket = await websockets.connect(f"{url}?token={token}")
    assert json.loads(await socket.recv())["type"] == "hello"
    await socket.send(json.dumps({"type": "join", "room": room}))
    assert json.loads(await socket.recv())["type"] == "joined"
    return socket


async def measure(url, token, room, seconds):
    ear = await join(url, token, room)
    socket = await join(url, token, "of its own")
    assert json.loads(await ear.recv())["type"] == "msg"
    await ear.close()
    count = round(seconds / EVERY_S)
    sent, took = {}, []

    async def receive():
        async for text in socket:
            now = time.monotonic()
            took.append(now - sent.pop(json.loads(text)["body"]))
            if len(took) == count:
                return

    receiver = asyncio.create_task(receive())
    begin = time.monotonic()
    code, late_s = None, 0
    try:
        for number in range(count):
            due = begin + number * EVERY_S
            await asyncio.sleep(due - time.monotonic())
            late_s = max(late_s, time.monotonic() - due)
            body = f"message {number}"
            sent[body] = time.monotonic()
            await socket.send(json.dumps({"type": "msg", "body": body}))
        await receiver
    except websockets.ConnectionClosed as closed:
        code = closed.rcvd and closed.rcvd.code
        await asyncio.gather(receiver, return_exceptions=True)
    took.sort()

    def percentile(share):
        return round(1e6 * took[math.ceil(share * len(took)) - 1])

    return {
        "answered": len(took),
        "close_code": code,
        "late_us": round(1e6 * late_s),
        "p50_us": percentile(0.5),
        "p99_us": percentile(0.99),
    }


EVERY_S = 0.02

url, token, room, seconds = sys.argv[1:]
print(json.dumps(asyncio.run(measure(url, token, room, float(seconds)))))
