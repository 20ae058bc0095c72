# A chat.
get("/health")
{:ok, _headers} = ws_upgrade("/socket", [{"origin", "http://localhost"}])
{:ok, %{"type" => "hello", "id" => id}} = ws_receive_json(2000)
room = "red"
ws_send_json(%{type: "join", room: room, n: 7, seen: nil})
{:ok, "joined"} = ws_receive_text()
start_timing(:talk)
Enum.each(1..5, fn _ ->
  ws_send_text("from #{id} in #{room}")
  {:ok, %{"room" => ^room}} = ws_receive_json()
  ws_fetch_json()
  delay(1000, 0.05)
end)
stop_start_timing(:talk, :end)
ws_send_binary(<<1, 255>>)
ws_receive_binary()
ws_send_binary(random_bytes(100))
stop_timing(:end)
