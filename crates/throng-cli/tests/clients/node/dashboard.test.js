// The live page of a real run in a real browser. THRONG_SHOTS is a folder for screenshots.

import assert from "node:assert/strict"
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { after, afterEach, before, test } from "node:test"
import { promisify } from "node:util"
import { Complaints, accessible, drag, launch, widthOf } from "./browser.js"
import { Server } from "./server.js"
import { PATIENCE_MS, within } from "./within.js"

const { THRONG, THRONG_SHOTS } = process.env

let place, browser, server
const running = new Set()
const complaints = new Complaints()

before(async () => {
  place = await mkdtemp(join(tmpdir(), "throng-dashboard-"))
  server = await Server.start()
  browser = await launch()
})

after(async () => {
  running.forEach(child => child.kill("SIGKILL"))
  await browser?.close()
  await server?.stop()
  await rm(place, { recursive: true, force: true })
})

afterEach(() => complaints.none())

test("the page of a run grows, steers it, and ends as the saved report", async () => {
  const run = await start("steered")
  const page = await open(run.url)
  await grows(page)
  await page.locator(".live .state", { hasText: "live" }).waitFor()
  assert.match(await page.locator("h1").innerText(), /^So far: /)

  const shown = () => page.locator(".bar .shown").innerText()
  await drag(page, "#connects .u-over", 0.25, 0.75)
  await page.waitForFunction(() => document.querySelector(".bar .shown").textContent.includes(" to "))
  const range = await shown()
  const progress = await page.locator(".live .progress").innerText()
  await page.waitForFunction(text => document.querySelector(".live .progress").textContent !== text, progress)
  assert.equal(await shown(), range, "a zoomed page stays where it is")
  await page.keyboard.press("0")
  await page.waitForFunction(() => document.querySelector(".bar .shown").textContent.includes("all of it"))

  // The legend shows the values at the cursor.
  const rate = async () => {
    const x = await widthOf(page, "#connects .u-over") - 2
    await page.locator("#connects .u-over").hover({ position: { x, y: 20 } })
    return await page.locator("#connects tr", { hasText: "established" }).locator("td").first().innerText()
  }
  await page.getByRole("button", { name: "pause", exact: true }).click()
  await page.locator(".live .state", { hasText: "paused" }).waitFor()
  await until(async () => await rate() === "0/s", "no connects while it is paused")
  await page.getByRole("button", { name: "resume", exact: true }).click()
  await until(async () => await rate() !== "0/s", "connects after it")
  await page.getByLabel("users to start or stop").fill("7")
  await page.getByRole("button", { name: "+ users" }).click()
  await page.locator(".said", { hasText: /start: done, \d+ users/ }).waitFor()
  await accessible(page)
  await page.screenshot({ path: join(THRONG_SHOTS, "dashboard-live.png"), fullPage: true })

  await page.getByRole("button", { name: "stop…" }).click()
  await page.getByRole("button", { name: "go on" }).click()
  assert.equal(await page.locator(".live .state").innerText(), "live")
  await page.getByRole("button", { name: "stop…" }).click()
  await page.getByRole("button", { name: "end the run" }).click()
  await within(run.exit, "the run ends")
  await page.locator(".live .progress", { hasText: "The run took" }).waitFor()
  for (const button of await page.locator(".controls button:visible").all()) assert.ok(await button.isDisabled())
  await accessible(page)

  const summary = JSON.parse(await readFile(run.json, "utf8"))
  const figure = async name => {
    const heading = page.getByRole("heading", { name, exact: true })
    return await page.locator(".figure", { has: heading }).locator("p").innerText()
  }
  assert.equal(await figure("connected"), String(summary.users.connected_most))
  assert.equal(await figure("errors"), String(Object.values(summary.errors).reduce((sum, n) => sum + n, 0)))
  assert.match(await page.locator("section.table", { hasText: "Operations" }).innerText(), new RegExp(`\\b${summary.connect.latency_us.count}\\b`))
  const report = join(place, "steered.html")
  await promisify(execFile)(THRONG, ["report", run.file, "-o", report]).catch(error => assert.equal(error.code, 4, error.stderr))
  const saved = await open(`file://${report}`)
  for (const part of [".head", ".figures", ".tables"]) {
    assert.equal(await page.locator(part).innerText(), await saved.locator(part).innerText(), part)
  }
  const charts = page => page.locator(".chart").evaluateAll(charts => charts.map(chart => `${chart.id}: ${chart.querySelectorAll("tr").length}`))
  assert.deepEqual(await charts(page), await charts(saved))
  await page.close()
  await saved.close()
})

test("no token, no data", async () => {
  const run = await start("secret")
  const { origin, searchParams } = new URL(run.url)
  const token = searchParams.get("token")
  const other = token.replaceAll(/./g, digit => digit === "0" ? "1" : "0")
  for (const path of ["/", "/run", "/rows?run=1&from="]) {
    for (const query of ["", `token=${other}`, `token=${token.slice(1)}`]) {
      const answer = await fetch(`${origin}${path}${path.includes("?") ? "&" : "?"}${query}`)
      assert.equal(answer.status, 403)
      assert.ok(!(await answer.text()).includes("secret"))
    }
  }
  // The page with a wrong token cannot be had, and a page from elsewhere may not ask with the right one.
  const page = await browser.newPage()
  assert.equal((await page.goto(`${origin}/?token=${other}`)).status(), 403)
  await page.goto("data:text/html,elsewhere")
  assert.equal(await page.evaluate(url => fetch(url).then(() => "answered", () => "refused"), `${origin}/run?token=${token}`), "refused")
  await page.close()
  run.child.kill("SIGINT")
  await within(run.exit, "the run ends")
})

test("a lost connection is told, and found again", async () => {
  const run = await start("lost")
  const page = await open(run.url, async page => {
    let refused = 0
    await page.route("**/rows?*", route => refused++ < 2 ? route.abort() : route.continue())
  })
  await page.getByRole("alert").filter({ hasText: "The connection was lost" }).waitFor()
  await page.getByRole("alert").waitFor({ state: "hidden" })
  await grows(page)
  run.child.kill("SIGKILL")
  await page.getByRole("alert").filter({ hasText: "The connection was lost" }).waitFor()
  assert.ok(await page.locator(".chart").count() > 0, "what was there stays")
  await page.close()
  // The browser itself reports requests that fail.
  complaints.only(/Failed to load resource|ERR_/)
})

/** Starts a run that has a page, and goes on for longer than any test. */
async function start(name) {
  const scenario = join(place, `${name}.yaml`)
  const [file, json] = [join(place, `${name}.jsonl`), join(place, `${name}.json`)]
  await writeFile(scenario, `target: ${server.ws}/socket/websocket
protocol: phoenix
load:
  - arrivals: {rate: 20/s, for: 10m}
user:
  - connect
  - join: {topic: "rooms:lobby", payload: {}}
  - every: {period: 300ms, for: 3s, do: [push: {topic: "rooms:lobby", event: echo, payload: {}}]}
thresholds:
  - connect.p99 < 100s
`)
  const args = ["run", scenario, "--ui", "--no-calibrate", "--interval", "500ms", "--record", file, "--json", json, "--exit-with-parent"]
  const child = spawn(THRONG, args, { stdio: ["pipe", "pipe", "inherit"] })
  running.add(child)
  const exit = once(child, "exit").then(([code]) => { running.delete(child); return code })
  const lines = createInterface(child.stdout)
  const url = await within(Promise.race([firstUrl(lines), exit]), "the run prints its link")
  assert.equal(typeof url, "string", `the run ended with ${url}`)
  lines.on("line", () => {})
  return { child, exit, url, file, json }
}

function firstUrl(lines) {
  return new Promise(found => lines.on("line", line => {
    const [url] = /http:\S+/.exec(line) ?? []
    if (url) found(url)
  }))
}

async function open(url, prepare = async () => {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
  page.setDefaultTimeout(PATIENCE_MS)
  complaints.watch(page)
  await prepare(page)
  await page.goto(url)
  await page.locator("footer").waitFor()
  return page
}

/** Waits until the page has more than it has now. */
async function grows(page) {
  const end = () => document.querySelector(".bar .shown").textContent
  const before = await page.evaluate(end)
  await page.waitForFunction(before => document.querySelector(".bar .shown").textContent !== before, before)
}

async function until(condition, what) {
  const wait = async () => {
    while (!await condition()) await new Promise(next => setTimeout(next, 20))
  }
  await within(wait(), what)
}
