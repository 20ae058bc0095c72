# sgcli run shop script.exs --size 1000 --target-port 8080 --script-params '{"shop": "s1", "n": 3}'
# A visitor of the shop.
start_timing(:visit)
{200, _, {:json, user}} = post("/login", [{"accept", "application/json"}], {:json, %{name: "user #{Enum.random(1..100)}", n: params["n"]}})
token = user["token"]
for item <- ["a", "b"] do
  get("/items/#{item}", %{"authorization" => "Bearer #{token}", "host" => "other"})
  delay(500)
end
stop_timing(:visit)
inc_counter(:visits)
# Pays, or leaves.
if :rand.uniform() < 0.25 do
  {status, headers, body} = put("/pay", [], "shop=" <> params["shop"])
else
  delete("/cart/#{user["id"]}")
end
patch("/x", [], "y")
