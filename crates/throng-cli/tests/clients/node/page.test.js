// The chat page at `/` in a real browser. THRONG_SHOTS is a folder for screenshots.

import assert from "node:assert/strict"
import { join } from "node:path"
import { after, afterEach, before, test } from "node:test"
import { launch } from "./browser.js"
import { Client, TRANSPORTS } from "./client.js"
import { Server } from "./server.js"
import { PATIENCE_MS, within } from "./within.js"

/** A foreign name that resolves to this machine (DNS rebinding). */
const REBOUND = "rebound.example"
const { THRONG_SHOTS } = process.env

let server
let browser
/** The actions that no tab may perform. */
const complaints = []

before(async () => {
  server = await Server.start()
  browser = await launch("--disable-quic", `--host-resolver-rules=MAP ${REBOUND} 127.0.0.1`)
})

after(async () => {
  await browser?.close()
  await server?.stop()
})

afterEach(() => assert.deepEqual(complaints, []))

test("two tabs talk, one is killed, and presence follows", async () => {
  const [ada, bob] = [await enter("Ada"), await enter("Bob")]
  await shown(ada, "#people", "Bob")
  await shown(bob, "#people", "Ada")
  await shown(bob, "#count", "2")

  await say(ada, "Is anybody there? <b>Grüße</b> 😀")
  await say(bob, "One is.")
  for (const tab of [ada, bob]) {
    await shown(tab, "#log", "Is anybody there? <b>Grüße</b> 😀")
    await shown(tab, "#log", "One is.")
  }
  await shown(ada, "#took", "answered in")
  await shot(ada, "chat")

  await kill(bob)
  await shown(ada, "#log", "Bob left")
  await shown(ada, "#count", "1")
  assert.equal(await ada.locator("#people li").count(), 1)
  await ada.close()
})

test("a tab moves to the other transport and back, and hears other clients on both", async () => {
  const tab = await enter("Cleo")
  const other = new Client(server, TRANSPORTS.WebSocket)
  const room = await other.join("rooms:lobby")
  for (const [choice, state] of [["Long poll", "connected by long poll"], ["WebSocket", "connected by WebSocket"]]) {
    await tab.getByText(choice, { exact: true }).click()
    await shown(tab, "#state", state)
    await say(tab, `I am on ${choice}.`)
    await shown(tab, "#log", `I am on ${choice}.`)
    room.push("new:msg", { body: `heard on ${choice}` })
    await shown(tab, "#log", `heard on ${choice}`)
  }
  await other.close()
  await tab.close()
})

test("a tab finds its way back to a server that was restarted", async () => {
  const tab = await enter("Dora")
  await server.stop("SIGKILL")
  await shown(tab, "#state", "connection lost")
  server = await Server.start({ port: server.port })
  await shown(tab, "#state", "connected by WebSocket")
  await say(tab, "Back again.")
  await shown(tab, "#log", "Back again.")
  await shown(tab, "#people", "Dora")
  await tab.close()
})

test("a tab shows the end of a flood and keeps only so much of it", async () => {
  const tab = await enter("Eve")
  const other = new Client(server, TRANSPORTS.WebSocket)
  const room = await other.join("rooms:lobby")
  for (let at = 1; at <= 3000; at += 1) room.push("new_msg", { user: "flood", body: `drop ${at}.` })
  await shown(tab, "#log", "drop 3000.")
  assert.equal(await tab.locator("#log li").count(), 500)
  await tab.waitForFunction(() => {
    const log = document.getElementById("log")
    return log.scrollHeight - log.scrollTop - log.clientHeight < 40
  })
  await other.close()
  await tab.close()
})

test("a page connects under an address, under localhost, and under a name that the server was told", async () => {
  const ipv6 = await Server.start({ host: "[::1]" })
  const named = await Server.start({ args: ["--host", REBOUND] })
  for (const url of [
    server.http, `http://localhost:${server.port}`, ipv6.http, `http://${REBOUND}:${named.port}`,
  ]) {
    const tab = await open(url, "Finn")
    await shown(tab, "#state", "connected by WebSocket")
    await tab.getByText("Long poll", { exact: true }).click()
    await shown(tab, "#state", "connected by long poll")
    await tab.close()
  }
  await ipv6.stop()
  await named.stop()
})

test("a page under a rebound name is shown and can neither listen nor talk", async () => {
  const tab = await open(`http://${REBOUND}:${server.port}`, "Gus")
  await shown(tab, "#state", "connection lost")
  const asked = await tab.evaluate(async () => {
    const begun = await fetch("/socket/longpoll?vsn=2.0.0").then(answer => answer.json())
    const body = JSON.stringify([null, "1", "rooms:lobby", "phx_join", {}])
    const posted = await fetch(`/socket/longpoll?vsn=2.0.0&token=${begun.token}`, { method: "POST", body })
    return (await posted.json()).status
  })
  assert.equal(asked, 403)
  assert.ok(!(await tab.locator("#state").textContent()).includes("connected by"))
  await tab.close()
})

test("on a telephone in the dark nothing is wider than the screen", async () => {
  const look = { viewport: { width: 360, height: 700 }, colorScheme: "dark" }
  const tab = await enter("Somebody-with-a-very-long-name-indeed", look)
  await say(tab, `A word that does not end: ${"o".repeat(300)}`)
  await shown(tab, "#log", "A word that")
  await shot(tab, "phone")
  const wide = await tab.evaluate("document.documentElement.scrollWidth")
  assert.ok(wide <= 360, `${wide} pixels`)
  await tab.close()
})

/** Opens a tab in its own session and joins. */
async function enter(name, options) {
  const tab = await open(server.http, name, options)
  await shown(tab, "#state", "connected by WebSocket")
  await shown(tab, "#people", name)
  return tab
}

/** Opens a tab in its own session and requests to join. */
async function open(url, name, options) {
  const own = new URL(url).host
  const context = await browser.newContext(options)
  context.setDefaultTimeout(PATIENCE_MS)
  const tab = await context.newPage()
  tab.on("request", request => {
    const { host, protocol } = new URL(request.url())
    if (protocol !== "data:" && host !== own) complaints.push(`it asked ${request.url()}`)
  })
  tab.on("pageerror", error => complaints.push(`it threw ${error}`))
  tab.on("console", message => {
    if (message.text().includes("Content Security Policy")) complaints.push(message.text())
  })
  await tab.goto(`${url}/`)
  await tab.getByLabel("Your name").fill(name)
  await tab.getByRole("button", { name: "Join" }).click()
  return tab
}

async function say(tab, body) {
  await tab.getByLabel("Message", { exact: true }).fill(body)
  await tab.getByRole("button", { name: "Send" }).click()
}

async function shown(tab, selector, text) {
  await tab.locator(selector).filter({ hasText: text }).waitFor()
}

/** Kills the process of the tab, like a crash. */
async function kill(tab) {
  const crashed = within(new Promise(done => tab.on("crash", done)), "the tab is dead")
  const session = await tab.context().newCDPSession(tab)
  // The killed process cannot respond.
  session.send("Page.crash").catch(() => {})
  await crashed
}

async function shot(tab, name) {
  if (THRONG_SHOTS) await tab.screenshot({ path: join(THRONG_SHOTS, `page-${name}.png`) })
}
