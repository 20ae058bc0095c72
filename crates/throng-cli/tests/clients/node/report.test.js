// The saved report of a run in a real browser. THRONG_SHOTS is a folder for screenshots.

import assert from "node:assert/strict"
import { execFile } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, afterEach, before, test } from "node:test"
import { promisify } from "node:util"
import axe from "axe-core"
import { chromium } from "playwright-core"
import { Server } from "./server.js"
import { PATIENCE_MS } from "./within.js"

const { CHROMIUM = "/usr/bin/chromium", THRONG, THRONG_SHOTS } = process.env
/** Text that would run if a page took it for markup. */
const HOSTILE = '<img src=x onerror="document.title=1">'

const run = promisify(execFile)
let place, browser, summary, report
/** What no page may do. */
const complaints = []

before(async () => {
  place = await mkdtemp(join(tmpdir(), "throng-report-"))
  const server = await Server.start()
  const scenario = join(place, "hostile <b>scenario<b>.yaml")
  await writeFile(scenario, `target: ${server.ws}/socket/websocket
protocol: phoenix
load:
  - arrivals: {rate: 40/s, for: 3s}
  - hold: {for: 1s}
users:
  '${HOSTILE}':
    weight: 3
    on_error: stop
    user:
      - connect
      - join: {topic: "rooms:lobby", payload: {}}
      - every: {period: 200ms, do: [push: {topic: "rooms:lobby", event: echo, payload: {}}]}
  lost:
    on_error: stop
    user:
      - connect
      - join: {topic: '${HOSTILE}', payload: {}}
probe:
  - every: 1s
    broadcast: {topic: "rooms:lobby", event: new_msg, payload: {body: hello}}
thresholds:
  - connect.p99 < 100s
  - errors < 1
`)
  const file = join(place, "run.jsonl")
  // The run misses a threshold, so it does not exit with 0.
  await run(THRONG, ["run", scenario, "--record", file]).catch(error => assert.equal(error.code, 1, error.stderr))
  await server.stop()
  summary = JSON.parse((await run(THRONG, ["report", file, "--json"]).catch(error => error)).stdout)
  report = join(place, "report.html")
  await run(THRONG, ["report", file, "-o", report]).catch(error => assert.equal(error.code, 1, error.stderr))
  browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"],
    timeout: 2 * PATIENCE_MS,
  })
})

after(async () => {
  await browser?.close()
  await rm(place, { recursive: true, force: true })
})

afterEach(() => assert.deepEqual(complaints.splice(0), []))

test("the figures of the page are those of the summary", async () => {
  const page = await open()
  const text = await page.locator("main").innerText()
  assert.ok(text.includes(summary.diagnosis.verdict.split("; do: ")[0]), text)
  const figure = async name => {
    const heading = page.getByRole("heading", { name, exact: true })
    return await page.locator(".figure", { has: heading }).locator("p").innerText()
  }
  assert.equal(await figure("connected"), String(summary.users.connected_most))
  const errors = Object.values(summary.errors).reduce((sum, n) => sum + n, 0)
  assert.equal(await figure("errors"), String(errors))
  const operations = page.locator("section.table", { hasText: "Operations" })
  const row = name => operations.locator("tr", { has: page.locator("th", { hasText: name }) }).first().innerText()
  assert.match(await row("connects"), new RegExp(`\\b${summary.connect.latency_us.count}\\b`))
  for (const probe of summary.broadcast.probes) {
    const cells = page.locator("section", { hasText: "Probes" }).locator("tbody tr").nth(probe.number - 1)
    assert.match(await cells.innerText(), new RegExp(`\\b${probe.delivered}\\b`))
  }
  for (const { threshold, met } of summary.thresholds) {
    const cells = page.locator("section", { hasText: "Thresholds" }).locator("tr", { hasText: threshold })
    assert.match(await cells.innerText(), met ? /met/ : /missed/)
  }
  await page.close()
})

test("text of a run is text and no markup", async () => {
  const page = await open()
  assert.ok((await page.locator("pre").innerText()).includes(HOSTILE))
  assert.ok((await page.locator("section", { hasText: "Classes of users" }).innerText()).includes(HOSTILE))
  assert.equal(await page.locator("img, main b >> text=scenario").count(), 0)
  assert.notEqual(await page.title(), "1")
  await page.close()
})

test("a drag zooms all charts, a link keeps the view, keys move it", async () => {
  const page = await open()
  const shown = () => page.locator(".bar .shown").innerText()
  assert.match(await shown(), /all of it/)
  const ticks = () => page.evaluate(() => [...document.querySelectorAll(".chart canvas")].map(canvas => canvas.toDataURL()))
  const before = await ticks()
  const over = await page.locator("#connects .u-over").boundingBox()
  await page.mouse.move(over.x + over.width * 0.25, over.y + 20)
  await page.mouse.down()
  await page.mouse.move(over.x + over.width * 0.75, over.y + 20, { steps: 5 })
  await page.mouse.up()
  assert.match(await shown(), / to /)
  const zoomed = await ticks()
  const charts = await page.locator(".charts .chart").count()
  assert.ok(charts >= 6)
  for (let chart = 0; chart < charts; chart++) assert.notEqual(zoomed[chart], before[chart], `chart ${chart} did not move`)

  const copy = await open({}, new URL(page.url()).hash)
  assert.equal(await copy.locator(".bar .shown").innerText(), await shown())
  await copy.close()

  const range = await shown()
  await page.keyboard.press("ArrowRight")
  assert.notEqual(await shown(), range)
  await page.keyboard.press("0")
  assert.match(await shown(), /all of it/)
  await page.close()
})

test("the latency chart shows each operation, and the cursor reads all charts", async () => {
  const page = await open()
  for (const operation of ["push", "connect", "join", "broadcast"]) {
    await page.locator("#latency select").selectOption(operation)
    assert.match(page.url(), new RegExp(`latency=${operation}`))
  }
  const values = () => page.locator("#users td, #connects td, #messages td").allInnerTexts()
  const atEnd = await values()
  const over = await page.locator("#connects .u-over").boundingBox()
  await page.mouse.move(over.x + over.width / 2, over.y + 30)
  await page.waitForFunction(text => [...document.querySelectorAll("#users td, #connects td, #messages td")].map(cell => cell.textContent).join() !== text, atEnd.join())
  await page.close()
})

for (const [name, options] of Object.entries({
  light: { colorScheme: "light" }, dark: { colorScheme: "dark" },
  phone: { colorScheme: "light", viewport: { width: 390, height: 844 } },
})) {
  test(`readers of all kinds can use it: ${name}`, async () => {
    const page = await open(options)
    await page.evaluate(axe.source)
    // This run has one grade, and another machine may give it another one. The page must suit all.
    await page.evaluate(() => {
      const grades = ["valid", "degraded", "invalid"].map(grade => Object.assign(document.createElement("span"), { className: `grade ${grade}`, textContent: grade }))
      document.querySelector("h1").append(...grades)
    })
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }))
    const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map(node => node.html.slice(0, 100)).join(" | ")}`)
    assert.deepEqual(told, [])
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    assert.ok(wide <= 0, `it is ${wide} pixels too wide`)
    await page.screenshot({ path: join(THRONG_SHOTS, `report-${name}.png`), fullPage: true })
    if (name === "light") {
      await page.emulateMedia({ media: "print" })
      await page.screenshot({ path: join(THRONG_SHOTS, "report-print.png"), fullPage: true })
    }
    await page.close()
  })
}

test("the page is one file, small without its data", async () => {
  const html = await readFile(report, "utf8")
  const data = /<script id="run"[^>]*>([^<]*)<\/script>/.exec(html)[1]
  assert.ok(html.length - data.length < 200_000, `${html.length - data.length}`)
})

/** Opens the report from disk, without a network. */
async function open(options = {}, hash = "") {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options })
  await context.setOffline(true)
  const page = await context.newPage()
  page.on("console", message => { if (message.type() === "error") complaints.push(message.text()) })
  page.on("pageerror", error => complaints.push(error.message))
  page.on("request", request => { if (!request.url().startsWith("file:") && !request.url().startsWith("data:")) complaints.push(`it fetches ${request.url()}`) })
  await page.goto(`file://${report}${hash}`)
  await page.locator("footer").waitFor()
  return page
}
