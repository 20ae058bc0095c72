// A headless Chromium for pages, and what no page of a test may do: show an error on its console,
// throw, or fetch anything.

import assert from "node:assert/strict"
import axe from "axe-core"
import { chromium } from "playwright-core"
import { PATIENCE_MS } from "./within.js"

const { CHROMIUM = "/usr/bin/chromium" } = process.env

/** Starts the browser. */
export function launch(...more) {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", ...more],
    timeout: 2 * PATIENCE_MS,
  })
}

/** What pages did that no page may do. */
export class Complaints {
  texts = []

  /** Watches a page. */
  watch(page) {
    page.on("console", message => { if (message.type() === "error") this.texts.push(message.text()) })
    page.on("pageerror", error => this.texts.push(error.message))
  }

  /** Fails if there is another than these, and forgets them. */
  only(expected) {
    assert.deepEqual(this.texts.splice(0).filter(text => !expected.test(text)), [])
  }

  /** Fails if there is any, and forgets them. */
  none() {
    assert.deepEqual(this.texts.splice(0), [])
  }
}

/** Opens a saved page from disk, without a network. */
export async function openFile(browser, complaints, file, options = {}, hash = "") {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options })
  await context.setOffline(true)
  const page = await context.newPage()
  complaints.watch(page)
  page.on("request", request => {
    const url = request.url()
    if (!url.startsWith("file:") && !url.startsWith("data:")) complaints.texts.push(`it fetches ${url}`)
  })
  await page.goto(`file://${file}${hash}`)
  await page.locator("footer").waitFor()
  return page
}

/** Returns the width of an element as soon as it has one. A live page may draw a chart anew. */
export async function widthOf(page, selector) {
  const width = await page.waitForFunction(of => document.querySelector(of)?.getBoundingClientRect().width, selector)
  return width.jsonValue()
}

/** Drags over a chart, from one share of its width to another, once it stands still. */
export async function drag(page, selector, from, to) {
  const width = await widthOf(page, selector)
  const at = share => ({ x: width * share, y: 20 })
  const over = page.locator(selector)
  await over.dragTo(over, { sourcePosition: at(from), targetPosition: at(to) })
}

/** Fails if a reader of some kind cannot use the page. */
export async function accessible(page) {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }))
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map(node => node.html.slice(0, 100)).join(" | ")}`)
  assert.deepEqual(told, [])
}

/** Fails if the page is wider than its window, or a legend is cut. */
export async function fits(page) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
  assert.ok(wide <= 0, `it is ${wide} pixels too wide`)
  const cut = await page.evaluate(() => [...document.querySelectorAll(".legend")]
    .filter(legend => legend.scrollWidth > legend.clientWidth).map(legend => legend.parentElement.id))
  assert.deepEqual(cut, [], "these legends are cut")
}

/** The looks of a page that every reader may have. */
export const LOOKS = {
  light: { colorScheme: "light" }, dark: { colorScheme: "dark" },
  phone: { colorScheme: "light", viewport: { width: 390, height: 844 } },
}
