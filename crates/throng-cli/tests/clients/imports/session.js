// A session of k6, once.
import ws from 'k6/ws';

export const options = { vus: 1, iterations: 1 };

export default function () {
  ws.connect('ws://127.0.0.1:80/ws?a=b', { headers: { 'X-A': '1' } }, function (socket) {
    socket.on('open', () => {
      socket.send('hello');
      socket.send(JSON.stringify({ a: 1.50 }));
    });
    socket.setInterval(() => socket.send('tick'), 300);
    socket.setTimeout(() => socket.close(), 1000);
  });
}
