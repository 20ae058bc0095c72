"""A TCP server that answers each message with `ok`, and has one disease.

Usage: answers.py DISEASE [PORT]. It writes its port as the first line, and ends with its standard
input. Each disease is a function of `DISEASES`: it is awaited before each answer, and returns `LOST`
if there is none.
"""

import asyncio
import os
import sys
import time

from lifetime import end_with_stdin


LOST = "lost"


class Server:
    """What all connections share."""

    def __init__(self, disease):
        self.ail = disease
        self.began = None
        self.answers = 0
        self.connections = 0
        self.kept = []
        self.next_pause = None
        self.next_turn = 0
        self.lock = asyncio.Semaphore(1)
        self.pool = asyncio.Semaphore(4)
        self.waiting = []
        self.last = {}

    def age(self):
        """Returns the seconds since the first connection."""
        return time.monotonic() - self.began

    async def serve(self, reader, writer):
        self.began = self.began or time.monotonic()
        number = self.connections
        self.connections += 1
        try:
            while await reader.read(4096):
                self.answers += 1
                if await self.ail(self, number) == LOST:
                    continue
                writer.write(b"ok")
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


async def nothing(server, number):
    pass


async def steady(server, number):
    """Each answer takes the same time: slow, but no disease."""
    await asyncio.sleep(0.03)


async def stall(server, number):
    """Sleeps for 2 s once, with its only thread."""
    if server.age() > 3 and not server.kept:
        server.kept.append(True)
        time.sleep(2)


async def pauses(server, number):
    """Sleeps for 0.3 s about every second, as a collector that stops the world."""
    pausing(server, 1.2, lambda: time.sleep(0.3))


async def blocks(server, number):
    """Computes for 0.3 s about every second, in the thread of its event loop."""
    pausing(server, 1.2, lambda: compute(0.3))


def pausing(server, each_s, pause):
    server.next_pause = server.next_pause or server.age() + each_s
    if server.age() >= server.next_pause:
        server.next_pause += each_s
        pause()


async def slower(server, number):
    """Takes longer for each answer than for the one before: a table that it scans grows."""
    await asyncio.sleep(server.answers * 0.00025)


async def searches(server, number):
    """Searches all messages so far, in the thread of its event loop. That takes a third of a CPU
    at the end, and answers come long before the next turn: a machine that lends a part of its CPUs
    makes neither late."""
    compute(server.answers * 0.0000015)
    await asyncio.sleep(server.answers * 0.0002)


async def leak(server, number):
    """Keeps 32 KiB of each message."""
    server.kept.append(os.urandom(32 * 1024))


async def lock(server, number):
    """Holds a lock for 20 ms."""
    async with server.lock:
        await asyncio.sleep(0.02)


async def pool(server, number):
    """Needs one of four connections to a database for 100 ms."""
    async with server.pool:
        await asyncio.sleep(0.1)


async def paced(server, number):
    """Lets 40 messages a second through, evenly, as a limiter that delays."""
    turn = max(server.next_turn, time.monotonic())
    server.next_turn = turn + 0.025
    await asyncio.sleep(turn - time.monotonic())


async def deadlock(server, number):
    """Never answers again after 3 s: two tasks wait for each other's lock."""
    if server.age() > 3:
        await asyncio.Event().wait()


async def cold(server, number):
    """Takes 400 ms an answer for its first 4 s, and then 2 ms: its cache fills."""
    await asyncio.sleep(0.4 if server.age() < 4 else 0.002)


async def warms_up(server, number):
    """Takes 500 ms an answer for its first 0.8 s, and then 2 ms: it compiles its code."""
    await asyncio.sleep(0.5 if server.age() < 0.8 else 0.002)


async def newest(server, number):
    """Does one job of 10 ms at a time, the newest first."""
    turn = asyncio.get_running_loop().create_future()
    server.waiting.append(turn)
    if len(server.waiting) == 1 and not server.lock.locked():
        turn.set_result(None)
        server.waiting.pop()
        await server.lock.acquire()
    else:
        await turn
    until = server.next_pause = max(server.next_pause or 0, time.monotonic()) + 0.01
    await asyncio.sleep(max(0, until - time.monotonic()))
    if server.waiting:
        server.waiting.pop().set_result(None)
    else:
        server.lock.release()


async def two_seconds(server, number):
    """Takes 2 s for each answer."""
    await asyncio.sleep(2)


async def slow_instance(server, number):
    """Is slow itself, whatever is asked."""
    await asyncio.sleep(0.4)


async def retries(server, number):
    """Asks another service, which does not answer one of twenty calls, again after 1 s."""
    if server.answers % 20 == 0:
        await asyncio.sleep(1)


async def throttled(server, number):
    """Gives each connection one answer in 500 ms."""
    turn = max(server.last.get(number, 0) + 0.5, time.monotonic())
    server.last[number] = turn
    await asyncio.sleep(turn - time.monotonic())


async def loses_late(server, number):
    """Loses one of ten messages, from 4 s on."""
    return LOST if server.age() > 4 and server.answers % 10 == 0 else None


def compute(seconds):
    """Keeps a CPU busy for this much CPU time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(1000))


DISEASES = [
    nothing, steady, stall, pauses, blocks, slower, searches, leak, lock, pool, paced, deadlock, cold,
    warms_up, newest, two_seconds, slow_instance, retries, throttled, loses_late,
]


async def main():
    disease = {each.__name__: each for each in DISEASES}[sys.argv[1]]
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    server = Server(disease)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", port, backlog=1024)
    print(listener.sockets[0].getsockname()[1], flush=True)
    end_with_stdin()
    await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
