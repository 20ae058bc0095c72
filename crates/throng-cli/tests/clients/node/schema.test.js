// The schema of `throng schema`, as an editor uses it.

import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { test } from "node:test"
import Ajv from "ajv"
import { parse } from "yaml"

const ROOT = new URL("../../../../../", import.meta.url).pathname
const schema = JSON.parse(execFileSync(process.env.THRONG, ["schema"], { encoding: "utf8" }))
const validate = new Ajv({ allErrors: true, allowUnionTypes: true }).compile(schema)

/** The files of a folder that are scenarios, by their names. */
function scenarios(folder) {
  const names = readdirSync(join(ROOT, folder)).filter(name => name.endsWith(".yaml"))
  return names.map(name => [join(folder, name), readFileSync(join(ROOT, folder, name), "utf8")])
}

test("every example is valid", () => {
  const docs = readFileSync(join(ROOT, "docs/scenario.md"), "utf8")
  const shown = [...docs.matchAll(/```yaml\n(.*?)```/gs)].map(([, text], at) => [`example ${at}`, text])
  const all = [...shown, ...scenarios("examples"), ...scenarios("labs")]
  assert.ok(all.length > 20, `${all.length} examples`)
  for (const [name, text] of all) {
    assert.ok(validate(parse(text)), `${name}: ${JSON.stringify(validate.errors, null, 1)}`)
  }
})

test("what an editor can see is marked", () => {
  const marked = new Set()
  for (const [name, text] of scenarios("crates/throng-load/tests/broken")) {
    let scenario
    try {
      scenario = parse(text, { maxAliasCount: 100 })
    } catch {
      continue // It is not YAML, which an editor says without a schema.
    }
    if (!name.includes("alias") && !validate(scenario)) marked.add(name.replace(/.*\/|\.yaml/g, ""))
  }
  for (const name of ["key-misspelled", "step-misspelled", "no-target", "duration-without-unit",
    "rate-without-unit", "hold-without-time", "transaction-without-name", "user-and-users",
    "every-with-period-and-rate", "on-error-unknown", "join-without-topic", "probe-not-a-list"]) {
    assert.ok(marked.has(name), `${name} is not marked; these are: ${[...marked].join(", ")}`)
  }
})
