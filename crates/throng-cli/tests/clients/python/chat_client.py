"""Measures a chat server with another client: `chat_client.py URL TOKEN SECONDS`. Joins a room of
its own, sends a message each 100 ms without waiting for answers, and prints the median time in
microseconds until its own message came back."""

import asyncio
import json
import statistics
import sys
import time

import websockets


async def measure(url, token, seconds):
    async with websockets.connect(f"{url}?token={token}") as socket:
        assert json.loads(await socket.recv())["type"] == "hello"
        await socket.send(json.dumps({"type": "join", "room": "of its own"}))
        assert json.loads(await socket.recv())["type"] == "joined"
        sent, took = {}, []

        async def receive():
            async for text in socket:
                now = time.monotonic()
                took.append(now - sent.pop(json.loads(text)["body"]))
                if len(took) == count:
                    return

        count = int(seconds * 10)
        receiver = asyncio.create_task(receive())
        for number in range(count):
            body = f"message {number}"
            sent[body] = time.monotonic()
            await socket.send(json.dumps({"type": "msg", "body": body}))
            await asyncio.sleep(0.1)
        await receiver
        return statistics.median(took)


print(round(1e6 * asyncio.run(measure(sys.argv[1], sys.argv[2], float(sys.argv[3])))))
