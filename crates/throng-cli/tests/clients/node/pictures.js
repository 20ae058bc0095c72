// Makes the pictures of the README from real runs: `make pictures`. It takes a minute. What each
// picture shows goes to pictures.json beside it; a test fails when the page no longer has that.

import { execFile } from "node:child_process"
import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { launch } from "./browser.js"
import { outline } from "./outline.js"
import { Server } from "./server.js"

const { THRONG } = process.env
const FOLDER = new URL("../../../../../docs/pictures/", import.meta.url).pathname
const BYTES_MAX = 200_000

/** The run of the README: a server that holds fewer users than come. */
const FULL = {
  kind: "ok", args: ["--connections-max", "3000"],
  scenario: addr => `# Five thousand users come to a server that holds fewer.
target: tcp://${addr}
load:
  - ramp: {to: 5k, over: 15s}
  - hold: {for: 10s}
user:
  - connect
  - every: {period: 1s, do: [send: hello, expect: ok]}
thresholds:
  - message.p99 < 100ms
`,
}
/** A chat over Phoenix Channels whose broadcasts reach all users. */
const CHAT = {
  kind: "channels", args: [],
  scenario: addr => `# A lobby that fills: each user pushes, and hears a broadcast every second.
target: ws://${addr}/socket/websocket
protocol: phoenix
load:
  - arrivals: {rate: {from: 20/s, to: 250/s}, for: 15s}
  - hold: {for: 10s}
user:
  - connect: {heartbeat: 5s}
  - join: {topic: "rooms:lobby", payload: {user: "\${user.id}"}}
  - every: {period: 1s, for: 20s, do: [push: {topic: "rooms:lobby", event: echo, payload: {}}]}
  - stay
probe:
  - every: 1s
    broadcast: {topic: "rooms:lobby", event: new_msg, payload: {body: hello}}
thresholds:
  - join.p99 < 100ms
  - broadcast.p99 < 1s
`,
}

const PICTURES = [
  { file: "verdict.png", run: FULL, colorScheme: "light", height: 860 },
  { file: "latency.png", run: CHAT, colorScheme: "dark", height: 860, from: "#latency", hash: "#latency=push" },
  { file: "finding.png", run: FULL, colorScheme: "light", height: 700, from: "section.table" },
  { file: "phone.png", run: CHAT, colorScheme: "light", width: 390, height: 844 },
]

const place = await mkdtemp(join(tmpdir(), "throng-pictures-"))
const browser = await launch("--hide-scrollbars")
try {
  await mkdir(FOLDER, { recursive: true })
  const reports = new Map()
  for (const run of [FULL, CHAT]) reports.set(run, await record(run, join(place, run.kind)))
  const pictures = []
  for (const picture of PICTURES) pictures.push(await take(picture, reports.get(picture.run)))
  await writeFile(join(FOLDER, "pictures.json"), `${JSON.stringify(pictures, null, 2)}\n`)
} finally {
  await browser.close()
  await rm(place, { recursive: true, force: true })
}

/** Runs a load on a server of its own, and writes its report. */
async function record({ kind, args, scenario }, name) {
  const server = await Server.start({ kind, args })
  await writeFile(`${name}.yaml`, scenario(server.addr))
  // A missed threshold is no failure here.
  const throng = (...args) => promisify(execFile)(THRONG, args, { cwd: place }).catch(error => {
    if (error.code !== 1) throw error
  })
  try {
    await throng("run", `${kind}.yaml`, "--record", `${name}.jsonl`)
  } finally {
    await server.stop()
  }
  await throng("report", `${name}.jsonl`, "-o", `${name}.html`)
  return `${name}.html`
}

/** Takes a picture, and returns what it shows. */
async function take({ file, colorScheme, width = 1280, height, from, hash = "" }, report) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme })
  await page.goto(`file://${report}${hash}`)
  await page.locator("footer").waitFor()
  if (from) await page.locator(from).first().evaluate(element => scrollTo(0, element.getBoundingClientRect().top + scrollY - 44))
  // What came into sight is drawn two frames later at most.
  await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 100)))))
  const path = join(FOLDER, file)
  await page.screenshot({ path })
  const { size } = await stat(path)
  if (size > BYTES_MAX) throw new Error(`${file} has ${size} bytes, more than ${BYTES_MAX}`)
  console.log(`${path}: ${size} bytes`)
  const shows = await outline(page)
  await page.close()
  return { file, shows }
}
