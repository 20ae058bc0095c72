"""A server over TLS with a disease, which sends back what it receives or answers HTTP requests.

Usage: tls.py DISEASE CHAIN KEY CA. It writes its port as the first line, and ends with its standard
input.
"""

import socket
import ssl
import sys
import threading

DISEASE, CHAIN, KEY, CA = sys.argv[1:5]
PAGE = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"a page without its length\n" * 20


def new_context():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CHAIN, KEY)
    if DISEASE == "old version":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if DISEASE in ("demands a certificate", "demands a certificate, 1.2", "asks"):
        context.load_verify_locations(CA)
        asks = DISEASE == "asks"
        context.verify_mode = ssl.CERT_OPTIONAL if asks else ssl.CERT_REQUIRED
        if DISEASE.endswith("1.2"):
            context.maximum_version = ssl.TLSVersion.TLSv1_2
    if DISEASE == "no tickets":
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


CONTEXT = new_context()


def page(secured):
    """Answers a request; the end of the answer is that of the connection."""
    while b"\r\n\r\n" not in secured.recv(4096):
        pass
    secured.sendall(PAGE)
    if DISEASE != "cuts":
        # Sends close_notify, and waits for that of the client.
        secured.unwrap()


def serve(raw):
    try:
        # Two servers behind one address have keys of their own.
        context = new_context() if DISEASE == "keys apart" else CONTEXT
        with context.wrap_socket(raw, server_side=True) as secured:
            if DISEASE in ("cuts", "pages"):
                return page(secured)
            while data := secured.recv(4096):
                secured.sendall(data)
    except OSError:
        pass
    finally:
        raw.close()


def accept(listener):
    while True:
        raw, _ = listener.accept()
        threading.Thread(target=serve, args=(raw,), daemon=True).start()


listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
print(listener.getsockname()[1], flush=True)
threading.Thread(target=accept, args=(listener,), daemon=True).start()
sys.stdin.read()
