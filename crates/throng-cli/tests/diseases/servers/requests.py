"""An HTTP server whose answers have a disease: each 10th of them.

Usage: requests.py DISEASE. It writes its port as the first line, and ends with its standard input.
"""

import asyncio
import sys

DISEASE = sys.argv[1]


def answer(length, body=b"ok"):
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (length, body)


SOUND = answer(2)
ILL = {
    "nothing": SOUND,
    "twice": SOUND + SOUND,
    "long": answer(100),
    "short": answer(1),
}[DISEASE]

asked = 0


async def serve(reader, writer):
    global asked
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            asked += 1
            writer.write(ILL if asked % 10 == 0 else SOUND)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
