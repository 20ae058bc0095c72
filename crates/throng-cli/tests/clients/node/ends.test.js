// Ends of channels and replies, message by message: the table that throng's client is tested with is what npm's
// clients do. THRONG_WRITE_ENDS=1 writes it anew.

import assert from "node:assert/strict"
import { readFileSync, writeFileSync } from "node:fs"
import { after, test } from "node:test"
import { CLIENTS, messages, outcome } from "./ends.js"

const TABLE = new URL("../../../../throng-proto/tests/phoenix/npm_clients.json", import.meta.url)

// The clients leave timers.
after(() => setTimeout(() => process.exit(), 100).unref())

test("throng's table is what npm's clients of 1.2 to 1.8 do", () => {
  const lines = messages().map(message => JSON.stringify(judge(message)))
  const text = `{"cases": [\n${lines.join(",\n")}\n]}\n`
  if (process.env.THRONG_WRITE_ENDS) writeFileSync(TABLE, text)
  assert.equal(readFileSync(TABLE, "utf8"), text)
})

/** Adds what each client does and, if they agree, that as what throng does. */
function judge({ vsn, frame, expected }) {
  // 1.2 speaks version 1 alone.
  const able = Object.entries(CLIENTS).filter(([series]) => vsn === "1.0.0" || series !== "1.2")
  const clients = Object.fromEntries(able.map(([series, client]) => [series, outcome(client, { vsn, frame })]))
  const all = new Set(Object.values(clients))
  const agreed = all.size === 1 ? [...all][0] : undefined
  assert.ok((agreed === undefined) !== (expected === undefined), `${frame}: ${JSON.stringify(clients)}, ${expected}`)
  assert.ok(expected === undefined || all.has(expected), frame)
  return { vsn, frame, clients, expected: agreed ?? expected }
}
