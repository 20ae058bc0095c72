"""A program between the users and instances of `answers.py`, which it starts.

Usage: between.py balancer|proxy DISEASE...: one instance for each disease. A balancer gives
connection k to instance k modulo their number. A proxy has one instance, and computes for each
message with its only thread. It writes its port as the first line, and ends with its standard
input.
"""

import asyncio
import os
import subprocess
import sys

from answers import compute
from lifetime import end_with_stdin

COST_S = 0.004


def instance(disease):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "answers.py")
    child = subprocess.Popen(
        [sys.executable, script, disease], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    return child, int(child.stdout.readline())


async def main():
    is_proxy = sys.argv[1] == "proxy"
    instances = [instance(disease) for disease in sys.argv[2:]]
    taken = 0

    async def pump(reader, writer, cost_s):
        try:
            while data := await reader.read(4096):
                compute(cost_s)
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def serve(reader, writer):
        nonlocal taken
        _, port = instances[taken % len(instances)]
        taken += 1
        inner, outer = await asyncio.open_connection("127.0.0.1", port)
        cost_s = COST_S if is_proxy else 0
        await asyncio.gather(pump(reader, outer, cost_s), pump(inner, writer, 0))

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    print(listener.sockets[0].getsockname()[1], flush=True)
    end_with_stdin()
    await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
