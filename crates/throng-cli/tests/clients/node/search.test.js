// The page of a search for a limit in a real browser. THRONG_SHOTS is a folder for screenshots.

import assert from "node:assert/strict"
import { execFile } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, afterEach, before, test } from "node:test"
import { promisify } from "node:util"
import { Complaints, LOOKS, accessible, drag, fits, launch, openFile } from "./browser.js"

const { THRONG, THRONG_SHOTS } = process.env
/** Text that would run if a page took it for markup. */
const HOSTILE = '<img src=x onerror="document.title=1">'
/** A search as `throng find` recorded it, of a server that held so many connections. The tests of
 * `throng find` make real ones; what this page shows must not depend on how fast a machine is. */
const file = new URL("find.jsonl", import.meta.url).pathname
const LIMIT = 37

const run = promisify(execFile)
let place, browser, search, report
const complaints = new Complaints()

before(async () => {
  place = await mkdtemp(join(tmpdir(), "throng-search-"))
  report = join(place, "knee.html")
  await run(THRONG, ["report", file, "-o", report])
  search = JSON.parse((await run(THRONG, ["report", file, "--format", "json"])).stdout)
  browser = await launch()
})

after(async () => {
  await browser?.close()
  await rm(place, { recursive: true, force: true })
})

afterEach(() => complaints.none())

test("the page says what the text says, and its table has the runs of the JSON", async () => {
  const page = await open()
  const text = (await run(THRONG, ["report", file])).stdout.split("\n")[0]
  assert.match(text, new RegExp(`users ${LIMIT} met .*; ${LIMIT + 1} did not`))
  assert.equal((await page.locator("h1").innerText()).toLowerCase(), `${text}.`.toLowerCase())
  const rows = page.locator("#runs tbody tr")
  assert.equal(await rows.count(), search.runs.length)
  const sorted = search.runs.map((run, index) => ({ ...run, number: index + 1 })).sort((one, other) => one.value - other.value)
  for (const [at, run] of sorted.entries()) {
    const cells = (await rows.nth(at).locator("th, td").allInnerTexts()).map(cell => cell.trim())
    assert.deepEqual([cells[0], cells[1]], [String(run.number), String(run.value)])
    assert.deepEqual(cells.slice(2, 6), [run.outcome, run.grade, ...run.judgements.map(judgement => judgement.measured)])
    assert.equal(cells.at(-1), run.run_file)
  }
  await page.close()
})

test("each condition has a chart with a mark for each run, and marks differ without colour", async () => {
  const page = await open()
  for (const at of [0, 1]) {
    const measured = search.runs.filter(run => run.judgements[at].value !== null).length
    assert.equal(await page.locator(`#condition-${at + 1} .plot`).getAttribute("data-points"), String(measured))
  }
  assert.ok(await page.locator("#reached-connected_most .plot").isVisible())
  const shapes = await page.locator(".marks svg").evaluateAll(marks => marks.map(mark => mark.innerHTML.replace(/(fill|stroke)="[^"]*"/g, "")))
  assert.equal(shapes.length, 2, "met and missed")
  assert.equal(new Set(shapes).size, shapes.length)
  await page.close()
})

test("keys go from run to run, and a drag zooms all charts", async () => {
  const page = await open()
  const said = page.locator("#condition-1 .legend")
  await page.keyboard.press(".")
  assert.match(await said.innerText(), /users \d+: 0, met/)
  assert.equal(await page.locator("#runs [aria-current]").count(), 1)
  await drag(page, "#condition-1 .u-over", 0.5, 0.9)
  await page.waitForFunction(() => location.hash.includes("t="))
  await page.keyboard.press("0")
  await page.waitForFunction(() => !location.hash.includes("t="))
  await page.close()
})

test("text of the file is text and no markup", async () => {
  const page = await open()
  assert.ok((await page.locator("main").innerText()).includes(HOSTILE))
  assert.equal(await page.locator("img").count(), 0)
  assert.notEqual(await page.title(), "1")
  await page.close()
})

test("a search that was cut off is shown with what it has", async () => {
  const text = await readFile(file, "utf8")
  const cut = join(place, "cut.jsonl")
  const lines = text.split("\n")
  await writeFile(cut, `${lines.slice(0, 4).join("\n")}\n${lines[4].slice(0, 40)}`)
  const short = join(place, "cut.html")
  await run(THRONG, ["report", cut, "-o", short]).catch(error => assert.equal(error.code, 4, error.stderr))
  const page = await open({}, short)
  assert.match(await page.locator("h1").innerText(), /not ended/)
  assert.ok((await page.locator("header").innerText()).includes("1 line of the file cannot be read"))
  assert.equal(await page.locator("#runs tbody tr").count(), 3)
  await page.close()
})

test("a search without a run, and doubtful runs, are drawn", async () => {
  const lines = (await readFile(file, "utf8")).trim().split("\n").map(line => JSON.parse(line))
  const written = async (name, lines) => {
    const path = join(place, `${name}.jsonl`)
    await writeFile(path, lines.map(line => `${JSON.stringify(line)}\n`).join(""))
    const report = join(place, `${name}.html`)
    await run(THRONG, ["report", path, "-o", report]).catch(error => assert.equal(error.code, 4, error.stderr))
    return report
  }
  const empty = await open({}, await written("empty", lines.slice(0, 1)))
  assert.equal(await empty.locator("canvas").count(), 0)
  await accessible(empty)
  await empty.close()
  const [header, first, ...rest] = lines
  const close = { ...first, usage: 1 + header.rules.hysteresis / 2 }
  const page = await open({}, await written("close", [header, close, ...rest.slice(0, 1), { ...first, outcome: "invalid", judgements: [], grade: null, run_file: "" }]))
  assert.match(await page.locator(".marks").innerText(), /doubtful 2/)
  await accessible(page)
  if (THRONG_SHOTS) await page.screenshot({ path: join(THRONG_SHOTS, "search-doubtful.png"), fullPage: true })
  await page.close()
})

for (const [name, options] of Object.entries(LOOKS)) {
  test(`readers of all kinds can use it: ${name}`, async () => {
    const page = await open(options)
    await accessible(page)
    await fits(page)
    if (THRONG_SHOTS) {
      await page.screenshot({ path: join(THRONG_SHOTS, `search-${name}.png`), fullPage: true })
      if (name === "dark") {
        await page.emulateMedia({ media: "print" })
        await page.evaluate(() => dispatchEvent(new Event("beforeprint")))
        assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light")
        await page.screenshot({ path: join(THRONG_SHOTS, "search-print.png"), fullPage: true })
      }
    }
    await page.close()
  })
}

function open(options = {}, path = report) {
  return openFile(browser, complaints, path, options)
}
