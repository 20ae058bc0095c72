"""A TCP server of several processes that answers each message with `ok`.

Usage: workers.py DISEASE. It writes its port as the first line, and ends with its standard input.
Each message takes a few milliseconds of CPU time.

- spread: four workers accept from one listening socket, in turn.
- sticky: the supervisor accepts, and gives all connections to one of four workers, as a balancer
  that goes by the address of the client.
- crashes: four workers, one of which ends each second, and is started again.
- recycled: four workers that run on.
"""

import asyncio
import os
import signal
import socket
import sys
import time

from answers import compute
from lifetime import end_with_stdin

DISEASE = sys.argv[1]
WORKERS = 4
COST_S = 0.004 if DISEASE in ("spread", "sticky") else 0

# A loop keeps no task by itself.
tasks = set()


async def serve(reader, writer):
    try:
        while await reader.read(4096):
            compute(COST_S)
            writer.write(b"ok")
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def adopt(connection):
    """Serves a connection in a task of its own."""
    connection.setblocking(False)
    task = asyncio.create_task(serve(*await asyncio.open_connection(sock=connection)))
    tasks.add(task)
    task.add_done_callback(tasks.discard)


async def accept_from(listener):
    """Takes one connection at a time, so that idle workers have their turn."""
    loop = asyncio.get_running_loop()
    while True:
        connection, _ = await loop.sock_accept(listener)
        await adopt(connection)
        await asyncio.sleep(0.02)


async def receive_from(channel):
    """Takes the connections that the supervisor passes on."""
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()
    channel.setblocking(False)
    loop.add_reader(channel, arrived.set)
    while True:
        await arrived.wait()
        arrived.clear()
        try:
            _, fds, _, _ = socket.recv_fds(channel, 1, 1)
        except BlockingIOError:
            # What the reader reported was taken in the turn before.
            continue
        for fd in fds:
            await adopt(socket.socket(fileno=fd))


def start(run, source):
    """Starts a worker that ends with its supervisor, and returns its process id."""
    supervisor = os.getpid()
    pid = os.fork()
    if pid:
        return pid

    async def work():
        tasks.add(asyncio.create_task(run(source)))
        while os.getppid() == supervisor:
            await asyncio.sleep(0.2)
        os._exit(0)

    asyncio.run(work())


def pass_on(listener, channel):
    while True:
        connection, _ = listener.accept()
        socket.send_fds(channel, [b"c"], [connection.fileno()])
        connection.close()


def crash(listener, workers):
    # The first end comes after all users have come.
    time.sleep(3)
    while True:
        pid = workers.pop(0)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        workers.append(start(accept_from, listener))
        time.sleep(1.3)


def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    is_sticky = DISEASE == "sticky"
    listener.setblocking(is_sticky)
    # No thread is there yet when the workers start.
    if is_sticky:
        pairs = [socket.socketpair() for _ in range(WORKERS)]
        workers = [start(receive_from, inner) for _, inner in pairs]
    else:
        workers = [start(accept_from, listener) for _ in range(WORKERS)]
    print(listener.getsockname()[1], flush=True)
    if DISEASE == "crashes":
        # Each worker that starts later is a copy of this process, without its threads.
        end_with_stdin()
        crash(listener, workers)
    end_with_stdin()
    if is_sticky:
        pass_on(listener, pairs[0][0])
    while True:
        time.sleep(1)


main()
