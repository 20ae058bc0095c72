// The page of a comparison in a real browser. THRONG_SHOTS is a folder for screenshots.

import assert from "node:assert/strict"
import { execFile } from "node:child_process"
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, afterEach, before, test } from "node:test"
import { promisify } from "node:util"
import { Complaints, LOOKS, accessible, drag, fits, launch, openFile } from "./browser.js"
import { Server } from "./server.js"

const { THRONG, THRONG_SHOTS } = process.env
/** Text that would run if a page took it for markup. */
const HOSTILE = '<img src=x onerror="document.title=1">'

const run = promisify(execFile)
let place, browser, comparison, report
const complaints = new Complaints()

before(async () => {
  place = await mkdtemp(join(tmpdir(), "throng-compare-"))
  const server = await Server.start()
  const record = async (name, period, text) => {
    const scenario = join(place, `${name}.yaml`)
    await writeFile(scenario, `target: ${server.ws}/socket/websocket
protocol: phoenix
load:
  - arrivals: {rate: 40/s, for: 2s}
  - hold: {for: 1s}
user:
  - connect
  - join: {topic: "rooms:lobby", payload: {}}
  - every: {period: ${period}, do: [push: {topic: "rooms:lobby", event: echo, payload: {text: '${text}'}}]}
`)
    const file = join(place, `${name}.jsonl`)
    // A generator that a busy machine makes late is no matter here.
    await run(THRONG, ["run", scenario, "--record", file, "--interval", "100ms"]).catch(error => assert.ok([1, 3].includes(error.code), error.stderr))
    return file
  }
  const before = await record("before", "200ms", "hello")
  const after = join(place, "after <b>hostile<b>.jsonl")
  await copyFile(await record("after", "100ms", HOSTILE), after)
  await server.stop()
  report = join(place, "compare.html")
  const flags = ["compare", before, after, "--regression", "connect.p99 > +100000%"]
  // Its code is that of its runs.
  const compared = await run(THRONG, [...flags, "--json", "-o", report]).catch(error => error)
  comparison = JSON.parse(compared.stdout)
  browser = await launch()
})

after(async () => {
  await browser?.close()
  await rm(place, { recursive: true, force: true })
})

afterEach(() => complaints.none())

test("the figures of the page are those of --json", async () => {
  const page = await open()
  const rows = page.locator("section.table", { has: page.getByRole("heading", { name: "B against A" }) }).locator("tbody tr")
  assert.equal(await rows.count(), comparison.figures.length)
  for (const [index, { label, shown, changes: [change] }] of comparison.figures.entries()) {
    const cells = await rows.nth(index).locator("th, td").allInnerTexts()
    const expected = [label, change.direction ?? "", change.shown, change.interval_shown, ...shown]
    assert.deepEqual(cells.map(cell => cell.trim()), expected)
  }
  const text = await page.locator("header").innerText()
  for (const { text: reason } of comparison.mismatches) assert.ok(text.includes(reason), `${reason} is not in ${text}`)
  assert.ok(text.includes(comparison.regressions[0].text), text)
  assert.ok(text.includes(comparison.method.note), text)
  await page.close()
})

test("text of files is text and no markup", async () => {
  const page = await open()
  assert.ok((await page.locator("header").innerText()).includes("after <b>hostile<b>.jsonl"))
  assert.ok((await page.locator("main").innerText()).includes(HOSTILE))
  assert.equal(await page.locator("img").count(), 0)
  assert.notEqual(await page.title(), "1")
  await page.close()
})

test("the lines of both runs are in all charts, and differ without colour", async () => {
  const page = await open()
  const charts = page.locator(".charts .chart")
  assert.ok(await charts.count() >= 6)
  for (const chart of await charts.all()) {
    const names = await chart.locator("tbody th").allInnerTexts()
    assert.deepEqual(names.map(name => name.trim()), ["A", "B"])
    const dashes = await chart.locator("tbody .swatch line").evaluateAll(lines => lines.map(line => line.getAttribute("stroke-dasharray")))
    assert.equal(new Set(dashes).size, 2, dashes.join(" and "))
  }
  await page.locator("#percentiles select").selectOption("connect")
  assert.match(page.url(), /latency=connect/)
  await page.close()
})

test("a drag zooms all charts, and a link keeps the view", async () => {
  const page = await open()
  const shown = () => page.locator(".bar .shown").innerText()
  assert.match(await shown(), /all of it/)
  await page.locator("#connects").scrollIntoViewIfNeeded()
  await drag(page, "#connects .u-over", 0.25, 0.75)
  await page.waitForFunction(() => document.querySelector(".bar .shown").textContent.includes(" to "))
  const copy = await open({}, new URL(page.url()).hash)
  assert.equal(await copy.locator(".bar .shown").innerText(), await shown())
  await copy.close()
  await page.keyboard.press("0")
  assert.match(await shown(), /all of it/)
  await page.close()
})

for (const [name, options] of Object.entries(LOOKS)) {
  test(`readers of all kinds can use it: ${name}`, async () => {
    const page = await open(options)
    // Another machine may find other differences. The page must suit all.
    await page.evaluate(() => {
      const words = ["bad", "better"].map(word => Object.assign(document.createElement("span"), { className: word, textContent: word }))
      document.querySelector(".tables td").append(...words)
    })
    await accessible(page)
    await fits(page)
    await page.screenshot({ path: join(THRONG_SHOTS, `compare-${name}.png`), fullPage: true })
    if (name === "light") {
      await page.emulateMedia({ media: "print" })
      await page.screenshot({ path: join(THRONG_SHOTS, "compare-print.png"), fullPage: true })
    }
    await page.close()
  })
}

function open(options = {}, hash = "") {
  return openFile(browser, complaints, report, options, hash)
}
