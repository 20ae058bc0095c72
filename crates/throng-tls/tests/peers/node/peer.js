// Node's tls (OpenSSL) as the peer: `tests/tls/peers.rs` says what it does.
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const tls = require('node:tls');

const [role, folder, port] = process.argv.slice(2);
const read = (name) => readFileSync(join(folder, name));

const talk = (socket) => new Promise((resolve) => {
  const line = () => `${socket.getProtocol()} ${socket.isSessionReused()}`;
  let said = line();
  socket.on('secureConnect', () => { said = line(); });
  socket.on('data', (data) => socket.write(data));
  socket.on('error', (error) => console.log('failed:', error.message));
  // Node does not say whether close_notify arrived. It sends its own at the end of the stream.
  socket.on('close', () => { console.log(said, '?'); resolve(); });
});

const client = async () => {
  let session;
  for (let count = 0; count < 2; count += 1) {
    const socket = tls.connect(
      { host: '127.0.0.1', port: Number(port), servername: 'localhost', ca: read('ca.pem'), session },
    );
    socket.on('session', (fresh) => { session = fresh; });
    await talk(socket);
  }
};

const serve = () => {
  let left = 2;
  const server = tls.createServer({ cert: read('chain.pem'), key: read('key.pem') }, async (socket) => {
    await talk(socket);
    left -= 1;
    if (left === 0) server.close();
  });
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));
};

if (role === 'client') client(); else serve();
