"""An HTTP server of Python's standard library. It says its port, and at the end of its standard
input what it has seen, as JSON."""

import http.server
import json
import sys
import threading
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = sys.argv[1]
    timeout = float(sys.argv[2])
    lock = threading.Lock()
    seen = {"connections": 0, "requests": 0, "slow_us": [], "bodies": []}

    def setup(self):
        super().setup()
        self.count("connections")

    def count(self, name):
        with self.lock:
            self.seen[name] += 1
            return self.seen[name]

    def answer(self, status, body=b"ok", fields=()):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        begun = time.monotonic()
        number = self.count("requests")
        if self.path == "/share":
            return self.answer(500 if number % 4 == 0 else 200)
        if self.path == "/slow":
            time.sleep(0.2)
            with self.lock:
                self.seen["slow_us"].append(int((time.monotonic() - begun) * 1e6))
            return self.answer(200)
        if self.path == "/last":
            # The answer does not say that the connection ends behind it.
            self.close_connection = True
            return self.answer(200)
        if self.path == "/chunked":
            self.send_response(200)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for part in [b"hello", b" ", b"chunks" * 2000]:
                self.wfile.write(b"%x;a=b\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
            return self.wfile.write(b"0\r\nx-trailer: y\r\n\r\n")
        if self.path == "/until-close":
            self.send_response(200)
            self.send_header("connection", "close")
            self.end_headers()
            self.close_connection = True
            return self.wfile.write(b"until the end")
        if self.path == "/moved":
            return self.answer(302, b"", [("location", "/elsewhere")])
        self.answer(200, b"x" * 100_000 if self.path == "/large" else b"ok")

    def do_POST(self):
        self.count("requests")
        body = self.rfile.read(int(self.headers["content-length"]))
        with self.lock:
            self.seen["bodies"].append([self.headers["content-type"], body.decode()])
        self.answer(201, body)

    do_PUT = do_POST
    do_DELETE = do_GET

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True

    def handle_error(self, *_):
        """Says nothing of users that left before their answer."""


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
print(json.dumps(Handler.seen), flush=True)
