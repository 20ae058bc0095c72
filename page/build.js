// Bundles the page into one self-contained file: dist/index.html. The policy in its head names its
// own style and script by their hashes and permits requests only to its own server, so that a
// mistake here cannot load anything.

import { createHash } from "node:crypto"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { buildSync } from "esbuild"

const here = path => new URL(path, import.meta.url)
const style = bundle("src/style.css")
const script = bundle("src/main.js")
const parts = {
  policy: [
    "default-src 'none'",
    `style-src '${hash(style)}'`,
    `script-src '${hash(script)}'`,
    "img-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; "),
  licence: readFileSync(here("node_modules/phoenix/LICENSE.md"), "utf8").trim(),
  style,
  script,
}

const page = readFileSync(here("src/index.html"), "utf8")
mkdirSync(here("dist"), { recursive: true })
writeFileSync(here("dist/index.html"), page.replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]))

function bundle(entry) {
  const { outputFiles } = buildSync({
    absWorkingDir: fileURLToPath(here(".")),
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    target: ["es2022", "safari15"],
  })
  return outputFiles[0].text.trim()
}

function hash(text) {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`
}
