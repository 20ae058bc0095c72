"""A TCP server that takes 20 ms for each connection before it accepts the next one, as for a login.

Usage: accepts.py BACKLOG. It writes its port as the first line, and ends with its standard input.
"""

import socket
import sys
import threading
import time

from lifetime import end_with_stdin


def serve(connection):
    try:
        while connection.recv(4096):
            connection.sendall(b"ok")
    except OSError:
        pass


def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(int(sys.argv[1]))
    print(listener.getsockname()[1], flush=True)
    end_with_stdin()
    while True:
        connection, _ = listener.accept()
        time.sleep(0.02)
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


main()
