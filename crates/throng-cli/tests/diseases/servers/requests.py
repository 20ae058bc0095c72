"""An HTTP server whose answers have a disease: each 10th of them.

Usage: requests.py DISEASE. It writes its port as the first line, and ends with its standard input.
"""

import asyncio
import sys
import time

DISEASE = sys.argv[1]


def answer(length, body=b"ok"):
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (length, body)


SOUND = answer(2)
ILL = {
    "nothing": SOUND,
    "busy": SOUND,
    "twice": SOUND + SOUND,
    "long": answer(100),
    "short": answer(1),
}[DISEASE]

# A queue of the usual length, which a busy server lets overflow.
BACKLOG = 128 if DISEASE == "busy" else 1024

asked = 0


def compute(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(100))


async def serve(reader, writer):
    global asked
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            asked += 1
            if DISEASE == "busy":
                compute(0.005)
            writer.write(ILL if asked % 10 == 0 else SOUND)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
