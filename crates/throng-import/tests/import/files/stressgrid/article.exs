# sgcli run 100k script.exs -s 100000 --target-protocol tcp --target-port 5555 --sustain 60
# 100k devices connect, wait for a second, and come back.
delay(1000, 0.1)
