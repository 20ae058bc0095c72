"""Python's ssl (OpenSSL) as the peer: `tests/tls/peers.rs` says what it does."""

import socket
import ssl
import sys


def talk(conn):
    clean = True
    try:
        while data := conn.recv(4096):
            conn.sendall(data)
    except ssl.SSLEOFError:
        clean = False
    print(conn.version(), conn.session_reused, clean, flush=True)
    session = conn.session
    conn.unwrap()
    return session


role, folder = sys.argv[1:3]
if role == "client":
    context = ssl.create_default_context(cafile=f"{folder}/ca.pem")
    # Certificates of tests have no identifiers of keys.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    session = None
    for _ in range(2):
        plain = socket.create_connection(("127.0.0.1", int(sys.argv[3])))
        options = {"server_hostname": "localhost", "session": session}
        session = talk(context.wrap_socket(plain, suppress_ragged_eofs=False, **options))
else:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/chain.pem", f"{folder}/key.pem")
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    for _ in range(2):
        plain, _ = listener.accept()
        talk(context.wrap_socket(plain, server_side=True, suppress_ragged_eofs=False))
