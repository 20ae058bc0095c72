// `throng serve` as a separate process. It ends with its standard input, so no test can
// leave one behind.

import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync, readdirSync } from "node:fs"
import { createInterface } from "node:readline"
import { setTimeout } from "node:timers/promises"
import { PATIENCE_MS, within } from "./within.js"

const THRONG = process.env.THRONG
if (!THRONG) throw new Error("set THRONG to the path of the binary under test")

export class Server {
  #child

  /** Starts one on a free port of 127.0.0.1, or on `host` and `port`; `args` are more of its options. */
  static async start({ kind = "channels", host = "127.0.0.1", port = 0, args = [] } = {}) {
    const all = ["serve", kind, "--listen", `${host}:${port}`, "--json", "--exit-with-parent", ...args]
    const child = spawn(THRONG, all, {
      stdio: ["pipe", "pipe", "inherit"],
      // A test makes a handler panic; its backtrace would fill a page.
      env: { ...process.env, RUST_BACKTRACE: "0" },
    })
    const lines = createInterface(child.stdout)
    const [line] = await within(Promise.race([once(lines, "line"), once(child, "exit")]), "the server listens")
    if (typeof line !== "string") throw new Error(`the server ended with ${line}`)
    const hello = JSON.parse(line)
    lines.on("line", () => {})
    return new Server(child, hello.addr)
  }

  constructor(child, addr) {
    this.#child = child
    this.addr = addr
    this.port = Number(addr.split(":").at(-1))
    this.http = `http://${addr}`
    this.ws = `ws://${addr}`
  }

  /** Stops all its threads, and returns once they have stopped. */
  async freeze() {
    this.#child.kill("SIGSTOP")
    const tasks = `/proc/${this.#child.pid}/task`
    const stands = task => readFileSync(`${tasks}/${task}/stat`, "utf8").split(") ")[1].startsWith("T")
    const until = Date.now() + PATIENCE_MS
    while (!readdirSync(tasks).every(stands)) {
      if (Date.now() > until) throw new Error("never: the server stands")
      await setTimeout(5)
    }
  }

  thaw() {
    this.#child.kill("SIGCONT")
  }

  /** Ends the server, by default at once and without a close frame to its clients. */
  async stop(signal = "SIGKILL") {
    const child = this.#child
    if (child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, "exit")
    child.kill(signal)
    await within(exit, `the server ends after ${signal}`)
  }
}
