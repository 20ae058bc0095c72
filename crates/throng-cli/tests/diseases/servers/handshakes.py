"""A server whose handshakes of TLS have a disease. It sends back what it receives.

Usage: handshakes.py DISEASE CHAIN KEY. It writes its port as the first line, and ends with its
standard input. With the disease "cut", a proxy before it closes what is silent for a second, and
each second handshake takes 1.5 s.
"""

import asyncio
import functools
import ssl
import sys

DISEASE, CHAIN, KEY = sys.argv[1:4]
CUT_AFTER_S = 1.0
TAKES_S = {"cut": 1.5, "short": 0.02}.get(DISEASE, 0.0)

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CHAIN, KEY)
accepted = 0


async def echo(reader, writer):
    try:
        while data := await reader.read(4096):
            writer.write(data)
    except OSError:
        pass
    writer.close()


async def passes(reader, writer, limit_s):
    """Passes bytes on until their end; waits for the first ones for this long."""
    try:
        data = await asyncio.wait_for(reader.read(4096), limit_s)
        while data:
            writer.write(data)
            data = await reader.read(4096)
    except (OSError, asyncio.TimeoutError):
        pass
    writer.close()


async def proxy(reader, writer, port):
    global accepted
    accepted += 1
    takes_s = TAKES_S if accepted % 2 == 0 else 0.0
    server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)

    async def hello():
        await asyncio.sleep(takes_s)
        await passes(reader, server_writer, None)

    asked = asyncio.create_task(hello())
    await passes(server_reader, writer, CUT_AFTER_S)
    asked.cancel()
    server_writer.close()


async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=context, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    if TAKES_S:
        front = await asyncio.start_server(
            functools.partial(proxy, port=port), "127.0.0.1", 0, backlog=1024
        )
        port = front.sockets[0].getsockname()[1]
    print(port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
