// Eleven iterations of ten users.
import http from 'k6/http';

export const options = { vus: 10, iterations: 11, duration: 30000 };

export default function () {
  http.get('http://127.0.0.1:80/one');
}
