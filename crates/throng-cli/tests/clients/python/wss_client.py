"""Speaks to servers of throng over TLS: `wss_client.py CA CHAT-URL CHANNELS-URL`.

Sends a short and a long message to the chat, and joins a channel.
"""

import asyncio
import json
import ssl
import sys

import websockets


async def chat(url, context):
    async with websockets.connect(url, ssl=context) as socket:
        for text in ("hello", "long " * 50_000):
            await socket.send(text)
            assert await socket.recv() == text



async def channels(url, context):
    async with websockets.connect(f"{url}?vsn=2.0.0", ssl=context) as socket:
        await socket.send(json.dumps(["1", "1", "rooms:lobby", "phx_join", {}]))
        while True:
            _, ref, _, event, payload = json.loads(await socket.recv())
            if (ref, event) == ("1", "phx_reply"):
                return payload["status"]


def main():
    authority, chat_url, channels_url = sys.argv[1:]
    context = ssl.create_default_context(cafile=authority)
    asyncio.run(chat(chat_url, context))
    print("join:", asyncio.run(channels(channels_url, context)))


main()
