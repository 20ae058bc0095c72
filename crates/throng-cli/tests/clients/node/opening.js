// Measures how long a report takes to open: `node opening.js report.html`. From the request until
// everything in the window is painted and the tables are there: medians of five, beside those of an
// empty page, and beside a fixed piece of work on the same machine.

import { resolve } from "node:path"
import { launch } from "./browser.js"

const ROUNDS = 5
const EMPTY = "data:text/html,<footer>empty</footer>"

const browser = await launch()
const [empty, report, work] = [[], [], []]
const file = `file://${resolve(process.argv[2] ?? "report.html")}`
// The first round warms up.
for (let round = 0; round <= ROUNDS; round++) {
  const times = [await opening(EMPTY), await opening(file), await fixedWork()]
  if (round > 0) [empty, report, work].forEach((list, index) => list.push(times[index]))
}
await browser.close()
const median = list => list.sort((a, b) => a - b)[list.length >> 1]
console.log(`opens in ${median(report).toFixed(0)} ms (${report.map(ms => ms.toFixed(0)).join(", ")})`)
console.log(`an empty page: ${median(empty).toFixed(0)} ms; fixed work: ${median(work).toFixed(0)} ms, `
  + `so the report takes ${(median(report) / median(work)).toFixed(1)} times as long`)

async function opening(url) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
  const begun = performance.now()
  await page.goto(url)
  await page.locator("footer").waitFor()
  await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))))
  const took = performance.now() - begun
  await page.close()
  return took
}

/** Square roots for a while: how fast the machine is, and how busy with other things. */
async function fixedWork() {
  const page = await browser.newPage()
  const took = await page.evaluate(() => {
    const begun = performance.now()
    let sum = 0
    for (let n = 0; n < 3e7; n++) sum += Math.sqrt(n)
    return sum > 0 ? performance.now() - begun : 0
  })
  await page.close()
  return took
}
