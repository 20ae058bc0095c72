import ws from 'k6/ws';
import { check } from 'k6';
export const options = { vus: 2, duration: '1s' };
const seen = new Set();
export default function () {
  ws.connect('ws://127.0.0.1:9000/', null, function (socket) {
    socket.on('open', () => socket.send('a'));
    socket.on('message', (m) => {
      const last = new Map([[1, `${m}`]]);
      if (seen.has(m) || last?.get(m)) { seen.delete(m); }
      m.list.map(Number).filter((x) => x > 1).forEach((x) => { total += x; });
      all.push({ a: [m, 1] },); console.log(all.join(', '));
      Object.assign(all, m.reduce(function (sum, x) { return sum + x; }, 0));
    });
    socket.on('ping', () => { channel.push('new_msg', seen); m.list.some((reply)); });
    socket.on('pong', (m) => { check(m, { ok: (x) => x === 'a' }); client.set('a', m); });
    socket.on('close', () => { clearTimeout(a); });
    socket.setTimeout(function () { socket.close(); }, 500);
  });
}
