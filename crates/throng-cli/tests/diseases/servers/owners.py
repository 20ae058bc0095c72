"""A TCP server that answers each message with the message itself, and has one disease.

Usage: owners.py DISEASE. It writes its port as the first line, and ends with its standard input. Each
disease is a function of `DISEASES`: it returns the answer to a message.
"""

import asyncio
import sys
import time

from lifetime import end_with_stdin


class Server:
    """What all connections share."""

    def __init__(self):
        self.answers = 0
        self.last = None


def right(server, own, message):
    return message


def swapped(server, own, message):
    """Gives one of twenty the answer to another user, from a buffer that all share."""
    answer = server.last if server.answers % 20 == 0 and server.last else message
    server.last = message
    return answer


def stale(server, own, message):
    """Answers one of twenty with what this user sent before, from a cache."""
    answer = own.get("last", message) if server.answers % 20 == 0 else message
    own["last"] = message
    return answer


def late(server, own, message):
    """Answers each with its own message, one after the other."""
    time.sleep(0.02)
    return message


DISEASES = [right, swapped, stale, late]


async def main():
    disease = {each.__name__: each for each in DISEASES}[sys.argv[1]]
    server = Server()

    async def serve(reader, writer):
        own = {}
        try:
            while message := await reader.readline():
                server.answers += 1
                writer.write(disease(server, own, message))
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    print(listener.sockets[0].getsockname()[1], flush=True)
    end_with_stdin()
    await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
