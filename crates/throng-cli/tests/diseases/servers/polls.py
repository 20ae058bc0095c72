"""A TCP server with one loop that answers each message with `ok`.

Usage: polls.py DISEASE. It writes its port as the first line, and ends with its standard input.

- keeps: it goes on to poll the sockets that its clients have closed, so that its poll never waits.
- closes: it closes them.
"""

import selectors
import socket
import sys

from lifetime import end_with_stdin

DISEASE = sys.argv[1]


def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    print(listener.getsockname()[1], flush=True)
    end_with_stdin()
    polled = selectors.DefaultSelector()
    polled.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in polled.select():
            ready = key.fileobj
            if ready is listener:
                connection, _ = listener.accept()
                polled.register(connection, selectors.EVENT_READ)
                continue
            try:
                got = ready.recv(4096)
            except OSError:
                got = b""
            if got:
                ready.sendall(b"ok")
            elif DISEASE == "closes":
                polled.unregister(ready)
                ready.close()


main()
