"""An HTTP server, with a thread for each connection, that has too few places or fds.

Usage: places.py DISEASE [NUMBER]. It writes its port as the first line, and ends with its standard
input.

- nothing: it serves every connection.
- threads N: it accepts every connection, and N threads serve one each until it ends.
- limit N: it accepts a connection when fewer than N are open, as behind a LimitListener.
- closes-others N: it accepts every connection, and closes it at once when N others are open.
- inside N: it reads every request, and answers on N connections at a time.
- listeners N: it has four listening sockets of one port, and accepts from N of them.
- mute N, slow N: it has four listening sockets of one port, as four workers have. On connections of
  one of them it never answers, or takes N ms for each answer.
- sleeps N: it sleeps for N ms after each connection that it accepts.
- pool N: it reads every request, and works on N at a time for 80 ms each.
- files N: it may have N fds, opens a file for each request, and does not close it.
- closes N: it may have N fds, and does not close a socket that its client has closed.
- files-closed N, closes-all N: their healthy twins.
"""

import queue
import resource
import socket
import sys
import threading
import time

from lifetime import end_with_stdin

DISEASE = sys.argv[1]
NUMBER = int(sys.argv[2]) if len(sys.argv) > 2 else 0
WORKERS = DISEASE in ("listeners", "mute", "slow")
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

places = threading.Semaphore(NUMBER or 1)
accepted = queue.Queue()
kept = []


def work(is_ill):
    """Does what each request needs."""
    if DISEASE == "mute" and is_ill:
        threading.Event().wait()
    if DISEASE == "slow" and is_ill:
        time.sleep(NUMBER / 1000)
    if DISEASE == "pool":
        with places:
            time.sleep(0.08)
    if DISEASE.startswith("files"):
        try:
            file = open("/etc/passwd", "rb")
        except OSError:
            return
        if DISEASE == "files":
            kept.append(file)
        else:
            file.close()


def answer_all(connection, is_ill=False):
    """Answers each request of a connection until it ends."""
    request = b""
    while True:
        got = connection.recv(65536)
        if not got:
            return
        request += got
        while b"\r\n\r\n" in request:
            request = request.partition(b"\r\n\r\n")[2]
            work(is_ill)
            connection.sendall(ANSWER)


def serve(connection, is_ill=False):
    try:
        if DISEASE == "inside":
            if connection.recv(65536):
                with places:
                    connection.sendall(ANSWER)
                    answer_all(connection)
        else:
            answer_all(connection, is_ill)
    except OSError:
        pass
    if DISEASE == "closes":
        kept.append(connection)
    else:
        connection.close()


def serve_in_place(connection):
    serve(connection)
    places.release()


def serve_next():
    while True:
        serve(accepted.get())


def listen(port, reuse):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if reuse:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(1024)
    return listener


def start(target, *args):
    threading.Thread(target=target, args=args, daemon=True).start()


def accept_all(listener, is_ill=False):
    while True:
        if DISEASE == "limit":
            places.acquire()
        try:
            connection, _ = listener.accept()
        except OSError:
            # No fd is left: try again.
            time.sleep(0.02)
            continue
        if DISEASE == "threads":
            accepted.put(connection)
        elif DISEASE == "closes-others" and not places.acquire(blocking=False):
            connection.close()
        elif DISEASE in ("limit", "closes-others"):
            start(serve_in_place, connection)
        else:
            start(serve, connection, is_ill)
        if DISEASE == "sleeps":
            time.sleep(NUMBER / 1000)


def main():
    listeners = [listen(0, WORKERS)]
    port = listeners[0].getsockname()[1]
    if WORKERS:
        listeners += [listen(port, True) for _ in range(3)]
    if DISEASE in ("files", "files-closed", "closes", "closes-all"):
        resource.setrlimit(resource.RLIMIT_NOFILE, (NUMBER, NUMBER))
    if DISEASE == "threads":
        for _ in range(NUMBER):
            start(serve_next)
    for listener in listeners[: NUMBER if DISEASE == "listeners" else len(listeners)]:
        start(accept_all, listener, listener is listeners[-1])
    print(port, flush=True)
    end_with_stdin()
    threading.Event().wait()


main()
