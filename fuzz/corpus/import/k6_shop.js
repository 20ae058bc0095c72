// A shop: people log in, look around, and think.
import http from 'k6/http';
import { check, group, sleep } from "k6";
import { randomIntBetween } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';

const BASE = 'http://127.0.0.1:8080';

export const options = {
  stages: [
    { duration: '30s', target: 20 },
    { duration: '1m30s', target: 20 },
    { duration: '20s', target: 0 },
  ],
  thresholds: {
    http_req_duration: ['p(95)<500', 'avg<200'],
    http_req_failed: ['rate<0.01'],
  },
};

export default function () {
  const params = { headers: { 'Content-Type': 'application/json' }, tags: { name: 'login' } };
  // a login gives a token
  const res = http.post(`${BASE}/login`, JSON.stringify({ user: `user ${__VU}`, n: 1 }), params);
  check(res, {
    'is 200': (r) => r.status === 200,
    'has a token': (r) => r.body.includes('token'),
  });
  const token = res.json('session.token');
  group('browse', () => {
    http.get(BASE + '/items?page=' + randomIntBetween(1, 9), {
      headers: { Authorization: `Bearer ${token}` },
      timeout: '10s',
    });
    sleep(0.5);
  });
  http.del(`${BASE}/basket`);
  sleep(randomIntBetween(1, 3));
  console.log('done');
}
