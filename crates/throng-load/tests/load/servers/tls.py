"""A TLS server of Python: `tls.py KIND CERT KEY`.

KIND is `http`, which answers each request, `echo`, which sends back what it receives, or `silent`,
which accepts and never makes a handshake. It prints its port. When its input ends, it prints how
many handshakes it made, and how many of them resumed a session.
"""

import json
import socket
import ssl
import sys
import threading

kind, cert, key = sys.argv[1:4]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)
seen = {"handshakes": 0, "resumed": 0, "names": []}
context.sni_callback = lambda _socket, name, _context: seen["names"].append(name)
lock = threading.Lock()
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def serve(raw):
    try:
        if kind == "silent":
            while raw.recv(4096):
                pass
            return
        with context.wrap_socket(raw, server_side=True) as secured:
            with lock:
                seen["handshakes"] += 1
                seen["resumed"] += bool(secured.session_reused)
            while data := secured.recv(4096):
                secured.sendall(ANSWER if kind == "http" else data)
    except OSError:
        pass


def accept(listener):
    while True:
        raw, _ = listener.accept()
        threading.Thread(target=serve, args=(raw,), daemon=True).start()


listener = socket.create_server(("127.0.0.1", 0), backlog=128)
print(listener.getsockname()[1], flush=True)
threading.Thread(target=accept, args=(listener,), daemon=True).start()
sys.stdin.read()
print(json.dumps(seen), flush=True)
