#!/bin/sh
# A thousand clients ping ten times a second.
tcpkali -c 1000 --connect-rate 500 -T 30s -r 10 -e -1 'hello \{connection.uid}\n' \
    -m 'ping \{re (red|green)}\n' --latency-marker "pong" --statsd 127.0.0.1:5555
