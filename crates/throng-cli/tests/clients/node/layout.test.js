// The layout of saved pages at the widths of phones and of large screens. The runs are made here,
// so that each has the texts that are hard to lay out. THRONG_SHOTS is a folder for screenshots.

import assert from "node:assert/strict"
import { execFile } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, afterEach, before, test } from "node:test"
import { promisify } from "node:util"
import { Complaints, accessible, launch, openFile } from "./browser.js"
import { NAMES, runFile } from "./runs.js"

const { THRONG, THRONG_SHOTS } = process.env
const WIDTHS = [360, 800, 1300, 1900]
/** The most lines of a row of a table and of the headline. */
const LINES = 10, HEADLINE_LINES = 7

let place, browser
const complaints = new Complaints()

before(async () => {
  place = await mkdtemp(join(tmpdir(), "throng-layout-"))
  for (const name of NAMES) {
    await writeFile(path(name, "jsonl"), runFile(name))
    await throng("report", path(name, "jsonl"), "-o", path(name, "html"))
  }
  await throng("compare", ...["healthy", "broadcast", "slow"].map(name => path(name, "jsonl")), "-o", path("compare", "html"))
  await writeFile(path("find", "jsonl"), await search())
  await throng("report", path("find", "jsonl"), "-o", path("find", "html"))
  browser = await launch()
})

after(async () => {
  await browser?.close()
  await rm(place, { recursive: true, force: true })
})

afterEach(() => complaints.none())

for (const name of [...NAMES, "compare", "find"]) {
  test(`nothing is squeezed, broken or cut: ${name}`, async () => {
    for (const width of WIDTHS) {
      const page = await open(name, { viewport: { width, height: 900 } })
      // What is behind a heading must fit, too.
      await page.evaluate(() => document.querySelectorAll("details").forEach(details => { details.open = true }))
      assert.deepEqual(await page.evaluate(faults, { lines: LINES, headlineLines: HEADLINE_LINES }), [], `${width} pixels wide`)
      if (THRONG_SHOTS) await page.screenshot({ path: join(THRONG_SHOTS, `layout-${name}-${width}.png`), fullPage: true })
      await page.context().close()
    }
  })
}

for (const [colorScheme, width] of [["dark", 360], ["light", 1300]]) {
  test(`readers of all kinds can use the page of a sick run: ${colorScheme}`, async () => {
    for (const name of ["sick", "compare"]) {
      const page = await open(name, { colorScheme, viewport: { width, height: 900 } })
      await accessible(page)
      await page.context().close()
    }
  })
}

test("a phone shows the verdicts of a comparison without scrolling", async () => {
  const page = await open("compare", { viewport: { width: 360, height: 800 } })
  const hidden = await page.getByRole("columnheader", { name: /^(verdict|change|95 % interval)$/ }).evaluateAll(heads => heads
    .filter(head => head.getBoundingClientRect().right > head.closest(".scroll").getBoundingClientRect().right + 0.5)
    .map(head => head.textContent))
  assert.deepEqual(hidden, [])
  await page.context().close()
})

test("the costs of a server that is not throng's are in the tile and in the table", async () => {
  const page = await open("broadcast")
  const tile = page.locator(".figure", { has: page.getByRole("heading", { name: "CPUs used" }) })
  assert.match(await tile.locator("p").innerText(), /^0\.12 \+ 0\.17$/)
  const row = page.locator("section.table", { hasText: "Costs" }).locator("tr", { hasText: "server" })
  assert.match(await row.innerText(), /µs.*0\.17$/s)
  await page.context().close()
})

test("the largest latency is the same in the tile, in the chart and in the table", async () => {
  const page = await open("healthy")
  const detail = await page.locator(".figure", { hasText: "p99 of messages" }).locator("small").innerText()
  const most = / max (.+)$/.exec(detail)[1]
  await page.locator("#latency").scrollIntoViewIfNeeded()
  await page.locator("#latency tbody tr", { hasText: "max" }).locator("td", { hasText: most }).last().waitFor()
  const row = page.locator("section.table", { hasText: "Operations" }).locator("tr", { hasText: "messages" })
  assert.equal(await row.locator("td").last().innerText(), most)
  await page.context().close()
})

test("the row that thresholds judge has a name of its own", async () => {
  const page = await open("slow")
  const operations = page.locator("section.table", { hasText: "Operations" })
  const count = async name => Number(await operations.locator("tr", { has: page.getByRole("rowheader", { name, exact: true }) }).locator("td").first().innerText())
  assert.equal(await count("with unanswered"), await count("messages") + await count("unanswered"))
  await page.context().close()
})

test("only commands can be copied, and folded tables open", async () => {
  for (const name of NAMES) {
    const page = await open(name)
    for (const button of await page.getByRole("button", { name: /^copy / }).all()) {
      assert.match(await button.getAttribute("aria-label"), /^copy (sysctl|ulimit|throng|perf|strace|ss|ip|nft|tc|ps|top|taskset) /)
    }
    const facts = page.getByText("net.ipv4.tcp_max_syn_backlog")
    assert.ok(!await facts.isVisible())
    await page.getByText("Machine and kernel").click()
    assert.ok(await facts.isVisible())
    await page.context().close()
  }
})

test("messages that no user asked for have a chart of their own", async () => {
  for (const [name, charts] of [["healthy", 0], ["broadcast", 1]]) {
    const page = await open(name)
    assert.equal(await page.locator("#received").count(), charts, name)
    await page.context().close()
  }
})

/** Returns what is wrong with the layout of the page. Runs in the page. */
function faults({ lines, headlineLines }) {
  const faults = []
  const { clientWidth } = document.documentElement
  const wide = document.documentElement.scrollWidth - clientWidth
  if (wide > 0) faults.push(`the page is ${wide} pixels too wide`)
  const heightOf = element => element.getBoundingClientRect().height / parseFloat(getComputedStyle(element).lineHeight)
  const shortened = text => text.length > 50 ? `${text.slice(0, 50)}…` : text
  for (const row of document.querySelectorAll("tr")) {
    if (heightOf(row) > lines + 0.5) faults.push(`a row of ${heightOf(row).toFixed(1)} lines: ${shortened(row.innerText)}`)
  }
  const headline = document.querySelector("h1")
  if (heightOf(headline) > headlineLines) faults.push(`a headline of ${heightOf(headline).toFixed(1)} lines`)
  // A break inside a word: its letters are on several lines, though they fit on one.
  const room = document.querySelector("main").clientWidth - 40
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT)
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    for (const { 0: word, index } of node.data.matchAll(/[\p{L}\p{N}]+/gu)) {
      // More letters than a SHA-256 are no word.
      if (word.length > 64) continue
      const range = new Range()
      range.setStart(node, index)
      range.setEnd(node, index + word.length)
      const parts = [...range.getClientRects()].filter(({ width }) => width > 0)
      const natural = parts.reduce((sum, { width }) => sum + width, 0)
      if (new Set(parts.map(({ top }) => Math.round(top))).size > 1 && natural < room) {
        faults.push(`${word} is broken in ${shortened(node.parentElement.closest("td, th, p, li, h1, h2, section").innerText)}`)
      }
    }
  }
  return faults
}

/** Opens a saved page that has drawn what is in sight. */
async function open(name, options = {}) {
  const page = await openFile(browser, complaints, path(name, "html"), options)
  await page.waitForFunction(() => document.querySelector(".plot")?.dataset.points !== undefined)
  return page
}

/** Returns a search whose values are close to each other, and whose verdicts are long. */
async function search() {
  const file = new URL("find.jsonl", import.meta.url)
  const [head, ...runs] = (await readFile(file, "utf8")).trim().split("\n").map(line => JSON.parse(line))
  const all = runs.map((run, index) => run.value === undefined ? run : {
    ...run, value: 1600 + index,
    verdict: run.outcome === "met" ? run.verdict
      : `Missed: message.p99 ${index + 400} ms, asked < 100ms: one thread of node (pid 4711) was busy for ${80 + index} % of the time, `
        + "and its accept queue overflowed: connections had to come again after a second; do: add processes or event loops",
  })
  return [{ ...head, knob: "rate", unit: "/s" }, ...all].map(line => `${JSON.stringify(line)}\n`).join("")
}

function path(name, extension) {
  return join(place, `${name}.${extension}`)
}

/** Runs throng. Its code is that of the run in the file. */
async function throng(...args) {
  await promisify(execFile)(THRONG, args).catch(error => assert.ok([1, 3, 4].includes(error.code), error.stderr))
}
