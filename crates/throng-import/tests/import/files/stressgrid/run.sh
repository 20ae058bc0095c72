#!/bin/sh
# Browsing, for an hour.
sgcli run browsing browse.exs -c coordinator -t shop.test --size 25000 \
  --target-port 8080 --script-params '{"user": "ann"}' \
  --rampup 600 --sustain 3600 --rampdown 60
