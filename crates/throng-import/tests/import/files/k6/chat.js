import ws from 'k6/ws';
import { check } from 'k6';

export let options = { vus: 100, duration: '1m' };

export default function () {
  const url = 'ws://127.0.0.1:7900/ws';
  const params = { headers: { Origin: 'http://localhost' } };
  const res = ws.connect(url, params, function (socket) {
    socket.on('open', () => {
      socket.send(JSON.stringify({ type: 'hello', name: `user ${__VU}` }));
      // every two seconds
      socket.setInterval(() => {
        socket.send('ping');
      }, 2000);
    });
    socket.on('message', (data) => console.log(data));
    socket.on('close', () => console.log('closed'));
    socket.setTimeout(function () {
      socket.close();
    }, 30000);
  });
  check(res, { 'status is 101': (r) => r && r.status === 101 });
}
