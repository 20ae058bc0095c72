"""tlslite-ng, TLS in pure Python, as the peer: `tests/tls/peers.rs` says what it does."""

import socket
import sys

from tlslite.api import HandshakeSettings, SessionCache, TLSConnection
from tlslite.api import TLSAbruptCloseError, X509CertChain, parsePEMKey
from tlslite.constants import KeyUpdateMessageType


def talk(conn):
    version, resumed, clean = conn.getVersionName(), conn.resumed, True
    # A server of TLS 1.3 does not say whether it resumed a session.
    if role == "server" and conn.version == (3, 4):
        resumed = "?"
    try:
        while data := conn.read(max=4096, min=1):
            if b"update" in data and conn.version == (3, 4):
                for _ in conn.send_keyupdate_request(KeyUpdateMessageType.update_requested):
                    pass
            conn.write(data)
    except TLSAbruptCloseError:
        clean = False
    print(version, resumed, clean, flush=True)
    session = conn.session
    conn.close()
    return session


settings = HandshakeSettings()
settings.minVersion, settings.maxVersion = (3, 3), (3, 4)
role, folder = sys.argv[1:3]
if role == "client":
    session = None
    for _ in range(2):
        conn = TLSConnection(socket.create_connection(("127.0.0.1", int(sys.argv[3]))))
        conn.handshakeClientCert(session=session, settings=settings, serverName="localhost")
        session = talk(conn)
else:
    settings.ticketKeys = [bytearray(range(32))]
    with open(f"{folder}/chain.pem") as chain, open(f"{folder}/key.pem") as key:
        certificates = X509CertChain()
        certificates.parsePemList(chain.read())
        options = {"certChain": certificates, "privateKey": parsePEMKey(key.read(), private=True)}
    cache = SessionCache()
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    for _ in range(2):
        conn = TLSConnection(listener.accept()[0])
        conn.handshakeServer(settings=settings, sessionCache=cache, **options)
        talk(conn)
