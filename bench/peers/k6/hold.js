// Users arrive evenly, open a WebSocket and stay: USERS of them over ARRIVALS_S seconds, each for STAY_S.

import { WebSocket } from 'k6/websockets';
import { Counter } from 'k6/metrics';

const { PORT, USERS, ARRIVALS_S, STAY_S } = __ENV;

export const options = {
  scenarios: {
    hold: {
      executor: 'ramping-vus',
      startVUs: 0,
      stages: [
        { duration: `${ARRIVALS_S}s`, target: Number(USERS) },
        { duration: `${STAY_S}s`, target: Number(USERS) },
      ],
      gracefulRampDown: '0s',
      gracefulStop: '0s',
    },
  },
};

const opened = new Counter('opened');

export default function () {
  const socket = new WebSocket(`ws://127.0.0.1:${PORT}/`);
  socket.onopen = () => opened.add(1);
}
