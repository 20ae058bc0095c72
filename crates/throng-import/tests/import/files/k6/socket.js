import { WebSocket } from 'k6/websockets';

export const options = {
  scenarios: {
    visitors: {
      executor: 'ramping-arrival-rate',
      startRate: 10,
      timeUnit: '1m',
      preAllocatedVUs: 50,
      stages: [
        { target: 10, duration: '1m' },
        { target: 600, duration: '2m' },
      ],
    },
  },
};

export default function () {
  const ws = new WebSocket('ws://127.0.0.1:9000/a');
  ws.onopen = () => {
    ws.send('hello');
  };
  ws.addEventListener('message', () => ws.close());
}
