// Requests of k6, once.
import http from 'k6/http';
import { check, sleep } from 'k6';

export const options = { vus: 1, iterations: 1, duration: '3s' };
const BASE = 'http://127.0.0.1:80';
const COLOURS = ['red'];

export default function () {
  const res = http.get(`${BASE}/first?x=%20y&z='()~`);
  check(res, { ok: (r) => r.status === 200 });
  const next = res.json('next');
  const word = res.json('word');
  http.get(`${BASE}/api${next}`);
  http.get(`${BASE}${next}`);
  http.get(`${BASE}/word/${word}?w=${word}`);
  http.get(http.url`${BASE}/tagged/${word}`);
  http.get(`${BASE}/../a/./b//c`);
  http.request('GET', `${BASE}/request`);
  http.request('POST', `${BASE}/request`, JSON.stringify({ a: 1.50, b: [1e3, null] }));
  http.post(`${BASE}/json`, JSON.stringify({ a: 1 }), {
    headers: { 'Content-Type': 'application/json' },
  });
  http.post(`${BASE}/form`, { a: 'x', b: 1, c: '&=' });
  http.post(`${BASE}/text`, 'plain');
  http.post(`${BASE}/none`);
  http.put(`${BASE}/put`, JSON.stringify({ z: 1, word: 'w' }));
  http.del(`${BASE}/delete`);
  http.patch(`${BASE}/patch`, 'p', { headers: { 'X-A': 'b' } });
  http.head(`${BASE}/head`);
  http.options(`${BASE}/options`);
  http.get(`${BASE}/vu/${__VU}`);
  http.get('http://user:p%40ss@127.0.0.1:80/login');
  const colour = COLOURS[Math.floor(Math.random() * COLOURS.length)];
  http.get(`${BASE}/colour/${colour}/${colour}`);
  sleep(0.1 + Math.random() / 10);
  http.get(`${BASE}/last`);
}
