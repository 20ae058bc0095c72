// What a tool sends, and what the scenario sends that was imported from its file: the same bytes in
// the same order. Artillery runs here; what k6 sends is recorded, and with `RECORD=1` and k6 in the
// path it is recorded anew.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { after, before, test } from "node:test";
import { Recorder } from "./recorder.js";

const FILES = new URL("../imports/", import.meta.url).pathname;
const RECORDED = join(FILES, "k6.json");
const recorder = new Recorder();
const place = mkdtempSync(join(tmpdir(), "imports-"));
const recorded = JSON.parse(readFileSync(RECORDED, "utf8"));
let port;

before(async () => {
  port = await recorder.listen();
  cpSync(FILES, place, { recursive: true });
});

after(() => {
  recorder.close();
  rmSync(place, { recursive: true });
  if (process.env.RECORD) writeFileSync(RECORDED, `${JSON.stringify(recorded, null, 1)}\n`);
});

for (const name of readdirSync(FILES).filter((name) => [".yml", ".js"].includes(extname(name)))) {
  test(name, async () => {
    const file = join(place, name);
    writeFileSync(file, readFileSync(file, "utf8").replaceAll("127.0.0.1:80", server()));
    const theirs = await (name.endsWith(".js") ? ofK6(name, file) : ofArtillery(file));
    await run(process.env.THRONG, ["import", file, "-o", `${file}.yaml`]);
    const options = ["--no-calibrate", "--no-record", "--cores", "1"];
    await run(process.env.THRONG, ["run", `${file}.yaml`, ...options]);
    assert.deepEqual(taken(), theirs);
    assert.notDeepEqual(theirs, []);
  });
}

async function ofArtillery(file) {
  await run("node", ["artillery.js", file]);
  return taken();
}

async function ofK6(name, file) {
  if (process.env.RECORD) {
    await run("k6", ["run", "--quiet", "--no-usage-report", file]);
    recorded[name] = taken();
  }
  return recorded[name];
}

const server = () => `127.0.0.1:${port}`;

/** Returns what has arrived, a line each, without the headers that differ by nature. */
function taken() {
  return recorder.take().map(({ request, headers, body, ...message }) => {
    if (!request) return JSON.stringify(message);
    const kept = headers.filter(([name]) => !BY_NATURE.includes(name));
    const named = kept.map(([name, value]) => `${name}: ${value.replace(server(), "server")}`);
    const typed = named.filter((field) => field !== UNTYPED);
    return JSON.stringify([request, typed.sort().join(", "), body]);
  });
}

async function run(command, args) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
  const patience = setTimeout(() => child.kill(), 60_000);
  const code = await new Promise((done) => child.on("close", done));
  clearTimeout(patience);
  assert.equal(code, 0, `${command} ${args.join(" ")}\n${said}`);
}

// What throng says of a body whose type the file does not name; the import reports it.
const UNTYPED = "content-type: text/plain; charset=utf-8";

// The name of the tool, what it decodes, how long it keeps a connection, and a random key. What a
// client offers to compress is compared by the tests of the import.
const BY_NATURE = [
  "user-agent",
  "accept",
  "accept-encoding",
  "connection",
  "sec-websocket-key",
  "sec-websocket-extensions",
];
