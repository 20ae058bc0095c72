// A chat on uWebSockets: every text message goes to all clients, the sender included.
//
//   node chat.js PORT THREADS
//
// Each thread has its own listener (SO_REUSEPORT) and event loop. A message is published to the thread's own
// subscribers and handed to the other threads, which publish it to theirs.

const { App } = require('uwebsockets');
const { Worker, isMainThread, workerData, BroadcastChannel } = require('node:worker_threads');

const TOPIC = 'all';

function serve(port) {
  const others = new BroadcastChannel('chat');
  const app = App().ws('/*', {
    compression: 0,
    idleTimeout: 0,
    sendPingsAutomatically: false,
    open: (socket) => socket.subscribe(TOPIC),
    message: (_socket, message) => {
      app.publish(TOPIC, message, false);
      others.postMessage(message);
    },
  });
  others.onmessage = ({ data }) => app.publish(TOPIC, data, false);
  app.listen('127.0.0.1', port, (listening) => {
    if (!listening) process.exit(1);
  });
}

if (isMainThread) {
  const [port, threads] = process.argv.slice(2).map(Number);
  for (let i = 0; i < threads; i++) new Worker(__filename, { workerData: port });
} else {
  serve(workerData);
}
