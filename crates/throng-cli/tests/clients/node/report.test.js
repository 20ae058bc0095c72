// The saved report of a run in a real browser. THRONG_SHOTS is a folder for screenshots.

import assert from "node:assert/strict"
import { execFile } from "node:child_process"
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, afterEach, before, test } from "node:test"
import { promisify } from "node:util"
import { Complaints, LOOKS, accessible, drag, fits, launch, openFile } from "./browser.js"
import { sixHours } from "./long_run.js"
import { outline } from "./outline.js"
import { Server } from "./server.js"

const { THRONG, THRONG_SHOTS } = process.env
/** Text that would run if a page took it for markup. */
const HOSTILE = '<img src=x onerror="document.title=1">'
/** A name that turns the text beside it, and one character that no font shows. */
const TURNED = "rev\u202eersed\u200b"

const run = promisify(execFile)
const ROOT = new URL("../../../../../", import.meta.url).pathname
let place, browser, summary, report, runFile
const complaints = new Complaints()

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
  '${HOSTILE} ${TURNED}':
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
  const file = runFile = join(place, "run.jsonl")
  // The run misses a threshold, so it does not exit with 0; on a busy machine it may be invalid.
  await run(THRONG, ["run", scenario, "--record", file]).catch(error => assert.ok([1, 3].includes(error.code), error.stderr))
  await server.stop()
  summary = JSON.parse((await run(THRONG, ["report", file, "--json"]).catch(error => error)).stdout)
  report = join(place, "report.html")
  await run(THRONG, ["report", file, "-o", report]).catch(error => assert.ok([1, 3].includes(error.code), error.stderr))
  browser = await launch()
})

after(async () => {
  await browser?.close()
  await rm(place, { recursive: true, force: true })
})

afterEach(() => complaints.none())

test("the figures of the page are those of the summary", async () => {
  const page = await open()
  // A long verdict goes on below the headline.
  const text = (await page.locator("main").innerText()).replace(/\s+/g, " ")
  assert.ok(text.includes(summary.diagnosis.headline || summary.diagnosis.verdict.split("; do: ")[0]), text)
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

test("characters that turn text, or are not shown, are shown as escapes", async () => {
  const page = await open()
  const main = await page.locator("main").innerText()
  assert.ok(main.includes("rev\\u{202e}ersed\\u{200b}"), main)
  assert.doesNotMatch(main, /[\u200b-\u200f\u202a-\u202e\u2066-\u2069]/)
  await page.close()
})

test("a drag zooms all charts, a link keeps the view, keys move it", async () => {
  const page = await open()
  const shown = () => page.locator(".bar .shown").innerText()
  assert.match(await shown(), /all of it/)
  const ranges = () => page.evaluate(() => [...document.querySelectorAll(".charts .plot")].map(plot => plot.dataset.range))
  await scrollThrough(page)
  const before = new Set(await ranges())
  assert.equal(before.size, 1, "all charts show the same time")
  await drag(page, "#connects .u-over", 0.25, 0.75)
  await page.waitForFunction(() => document.querySelector(".bar .shown").textContent.includes(" to "))
  await scrollThrough(page)
  const zoomed = await ranges()
  assert.ok(zoomed.length >= 6)
  assert.equal(new Set(zoomed).size, 1, `all charts show the same time: ${zoomed}`)
  assert.ok(!before.has(zoomed[0]))

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

for (const [name, options] of Object.entries(LOOKS)) {
  test(`readers of all kinds can use it: ${name}`, async () => {
    const page = await open(options)
    // This run has one grade, and another machine may give it another one. The page must suit all.
    await page.evaluate(() => {
      const grades = ["valid", "degraded", "invalid"].map(grade => Object.assign(document.createElement("span"), { className: `grade ${grade}`, textContent: grade }))
      document.querySelector("h1").append(...grades)
    })
    await accessible(page)
    await fits(page)
    await scrollThrough(page)
    await page.screenshot({ path: join(THRONG_SHOTS, `report-${name}.png`), fullPage: true })
    // Another run has other figures, and no page is wider for them.
    const wideByFigures = await page.evaluate(() => {
      const figures = [...document.querySelectorAll(".figure p")], shown = figures.map(it => it.textContent)
      figures.forEach(it => { it.textContent = "0.0314 + 0.00751" })
      const wide = document.documentElement.scrollWidth - innerWidth
      figures.forEach((it, index) => { it.textContent = shown[index] })
      return wide
    })
    assert.ok(wideByFigures <= 0, `it is ${wideByFigures} pixels too wide with longer figures`)
    if (name === "light") {
      // As wide as A4 without its margins.
      await page.setViewportSize({ width: 703, height: 1000 })
      await page.emulateMedia({ media: "print" })
      await page.evaluate(() => dispatchEvent(new Event("beforeprint")))
      await page.screenshot({ path: join(THRONG_SHOTS, "report-print.png"), fullPage: true })
    }
    await page.close()
  })
}

test("keys and buttons move the view, the cursor and the theme", async () => {
  const page = await open()
  const shown = () => page.locator(".bar .shown").innerText()
  await page.getByRole("button", { name: "zoom in" }).click()
  assert.match(await shown(), / to /)
  const range = await shown()
  await page.keyboard.press("w")
  assert.notEqual(await shown(), range)
  await page.keyboard.press(".")
  await page.waitForFunction(() => document.querySelector(".bar .at").textContent.startsWith("at "))
  const latency = await page.locator("#latency select").inputValue()
  await page.keyboard.press("l")
  await page.waitForFunction(before => document.querySelector("#latency select").value !== before, latency)
  await page.keyboard.press("t")
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark")
  await page.keyboard.press("Escape")
  assert.match(await shown(), /all of it/)
  await page.close()
})

test("each core has a row, and deliveries are told by their share", async () => {
  const page = await open()
  const cores = page.locator("#cores")
  assert.match(await cores.innerText(), /server's busiest/)
  assert.match(await cores.innerText(), /generator's busiest/)
  const broadcast = await page.locator("#broadcast").innerText()
  for (const word of ["first", "half", "99 %", "last", "missing"]) assert.ok(broadcast.includes(word), broadcast)
  await page.close()
})

test("six hours at a line a second are a small page that draws what can be seen", async () => {
  const file = join(place, "six.jsonl")
  const rows = await sixHours(runFile, file)
  const long = join(place, "six.html")
  await run(THRONG, ["report", file, "-o", long]).catch(error => assert.ok([1, 3].includes(error.code), `${error.code}: ${error.stderr}`))
  const { size } = await stat(long)
  assert.ok(size < 5_000_000, `it has ${size} bytes`)
  const page = await open({}, "", long)
  assert.match(await page.locator(".bar .shown").innerText(), /^6:00:00/)
  const charts = () => page.evaluate(() => [...document.querySelectorAll(".charts .plot")].map(plot => ({
    top: plot.getBoundingClientRect().top, width: plot.clientWidth, points: Number(plot.dataset.points ?? 0) })))
  const opened = await charts()
  assert.ok(opened.some(chart => chart.points > 0))
  for (const chart of opened) if (chart.top > 900 + 400) assert.equal(chart.points, 0, `drawn at ${chart.top}`)
  await scrollThrough(page)
  for (const chart of await charts()) {
    assert.ok(chart.points > 100 && chart.points <= chart.width, `${chart.points} of ${rows} rows in ${chart.width} pixels`)
  }
  await page.evaluate(() => { location.hash = "#t=7200-7230" })
  await page.waitForFunction(() => document.querySelector(".bar .shown").textContent.includes(" to "))
  await scrollThrough(page)
  for (const chart of await charts()) assert.ok(chart.points >= 30 && chart.points < 40, `${chart.points} rows of 30 seconds`)
  await page.close()
})

test("the README's pictures show what the page still has", async () => {
  const folder = join(ROOT, "docs/pictures")
  const pictures = JSON.parse(await readFile(join(folder, "pictures.json"), "utf8"))
  const [readme, template] = [await readFile(join(ROOT, "README.md"), "utf8"), await readFile(join(ROOT, "ui/dist/index.html"), "utf8")]
  assert.ok(pictures.length >= 4)
  const page = await open()
  const here = await everything(page)
  for (const { file, shows } of pictures) {
    const again = "make the pictures anew: make pictures"
    assert.ok(readme.includes(`docs/pictures/${file}`), `the README does not show ${file}`)
    const { size } = await stat(join(folder, file))
    assert.ok(size < 200_000, `${file} has ${size} bytes`)
    assert.ok(shows.length >= 3, `${file} shows hardly anything`)
    for (const { id, title, part } of shows) {
      if (part) assert.ok(here.some(one => one.part === part), `${file} shows ${part}, which the page no longer has; ${again}`)
      // This run need not have all charts; the page's code names each.
      else {
        assert.ok(template.includes(title), `${file} shows "${title}", which the page no longer has; ${again}`)
        const same = here.find(one => id && one.id === id)
        assert.ok(!same || same.title === title, `${file} shows "${title}", now "${same?.title}"; ${again}`)
      }
    }
  }
  await page.close()
})

test("the page is one file, small without its data", async () => {
  const html = await readFile(report, "utf8")
  const data = /<script id="run"[^>]*>([^<]*)<\/script>/.exec(html)[1]
  assert.ok(html.length - data.length < 200_000, `${html.length - data.length}`)
})

/** Scrolls from the top to the end, so that every chart comes into sight and is drawn. */
async function scrollThrough(page) {
  await page.evaluate(async () => {
    const frames = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))
    for (let y = 0; y < document.body.scrollHeight; y += innerHeight / 2) {
      scrollTo(0, y)
      await frames()
    }
    scrollTo(0, 0)
    await frames()
  })
}

/** Returns the outline of the whole page. */
async function everything(page) {
  const { width } = page.viewportSize()
  await page.setViewportSize({ width, height: await page.evaluate(() => document.documentElement.scrollHeight) })
  return outline(page)
}

/** Opens a report from disk, without a network. */
function open(options = {}, hash = "", file = report) {
  return openFile(browser, complaints, file, options, hash)
}
