# sgcli run shop script.exs --size 1000 --target-port 8080 --script-params '{"shop": "s1", "n": 3}'
# A visitor of the shop.
start_timing(:visit)
{200, _, {:json, user}} = post("/login", [{"accept", "application/json"}], {:json, %{name: "user", n: params["n"]}})
token = user["token"]
key = Base.url_encode64(random_bits(24), padding: false)
1..2 |> Enum.each(fn _ ->
  get("/items/#{key}", %{"authorization" => "Bearer #{token}", "host" => "other"})
  delay(500)
end)
stop_timing(:visit)
inc_counter(:visits)
# Pays, and leaves.
{status, headers, body} = put("/pay", [], "shop=" <> params["shop"])
true = status in [200, 201]
delete("/cart/#{user["id"]}")
patch("/x", [], "y")
