# sgcli run tcp script.exs -s 10 --target-protocol tcp
send("hello ${x}\n")
{:ok, "ok\n"} = recv()
send(<<1, 2, "ab">>)
recv(1000)
send(random_bytes(64))
Process.sleep 10
