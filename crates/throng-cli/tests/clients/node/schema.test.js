// The schemas of scenarios, as an editor uses it, and of the diagnosis, as a program reads it.

import assert from "node:assert/strict"
import { execFileSync, spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import Ajv from "ajv"
import Ajv2020 from "ajv/dist/2020.js"
import { parse } from "yaml"

const ROOT = new URL("../../../../../", import.meta.url).pathname
const schema = JSON.parse(execFileSync(process.env.THRONG, ["schema"], { encoding: "utf8" }))
// The rules on the order of steps are about the first items of a list, however long it is.
const validate = new Ajv({ allErrors: true, allowUnionTypes: true, strictTuples: false }).compile(schema)

/** The files of a folder that are scenarios, by their names. */
function scenarios(folder) {
  const names = readdirSync(join(ROOT, folder)).filter(name => name.endsWith(".yaml"))
  return names.map(name => [join(folder, name), readFileSync(join(ROOT, folder, name), "utf8")])
}

test("every example is valid", () => {
  const files = ["docs/scenario.md", "docs/how-to/cookbook.md"]
  const docs = files.map(name => readFileSync(join(ROOT, name), "utf8")).join("\n")
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
    "every-with-period-and-rate", "on-error-unknown", "join-without-topic", "probe-not-a-list",
    "mixed-load-models", "hold-first", "request-on-a-socket"]) {
    assert.ok(marked.has(name), `${name} is not marked; these are: ${[...marked].join(", ")}`)
  }
})

test("a diagnosis is what its schema says", () => {
  const folder = mkdtempSync(join(tmpdir(), "throng-schema-"))
  try {
    const file = join(ROOT, "docs/schema/diagnosis.json")
    const valid = new Ajv2020({ allErrors: true }).compile(JSON.parse(readFileSync(file, "utf8")))
    // Nothing listens there, which is a finding.
    const scenario = join(folder, "closed.yaml")
    writeFileSync(scenario, "target: tcp://127.0.0.1:1\nload: [ramp: {to: 10, over: 300ms}]\nuser: [connect, close]\n")
    const args = ["run", scenario, "--no-calibrate", "--no-record", "--json", "-"]
    const run = spawnSync(process.env.THRONG, args, { encoding: "utf8" })
    const { diagnosis } = JSON.parse(run.stdout)
    assert.equal(diagnosis.findings[0]?.id, "server_lost")
    assert.ok(valid(diagnosis), JSON.stringify(valid.errors, null, 1))
    assert.ok(!valid({ ...diagnosis, verdict: 1 }))
    assert.ok(!valid({ ...diagnosis, findings: [{ ...diagnosis.findings[0], side: "elsewhere" }] }))
  } finally {
    rmSync(folder, { recursive: true })
  }
})
