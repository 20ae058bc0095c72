"""A TLS server of Python: `tls.py KIND CERT KEY [CLIENT_CA]`.

KIND is `http`, which answers each request, `echo`, which sends back what it receives, or `silent`,
which accepts and never makes a handshake. It prints its port. When its input ends, it prints how
many handshakes it made, how many of them resumed a session, and the names that clients showed. With
CLIENT_CA, a client must show a certificate.
"""

import json
import socket
import ssl
import sys
import threading

kind, cert, key = sys.argv[1:4]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)
if len(sys.argv) > 4:
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(sys.argv[4])
seen = {"handshakes": 0, "resumed": 0, "names": [], "clients": []}
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
                if subject := (secured.getpeercert() or {}).get("subjectAltName"):
                    seen["clients"].append(subject[0][1])
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
