// Builds the page into one self-contained file: dist/index.html. The policy in its head names its
// own script by its hash and permits requests only to its own server, so that a mistake in the page
// cannot load anything.

import { createHash } from "node:crypto"
import { defineConfig, type Plugin } from "vite"

export default defineConfig({
  build: {
    target: ["es2022", "safari16"],
    assetsInlineLimit: 1 << 20,
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
  },
  plugins: [oneFile()],
})

/** Puts the script and the style into the page. */
function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_, bundle) {
      const page = bundle["index.html"]
      if (page?.type !== "asset") throw new Error("there is no page")
      let html = String(page.source)
      let script = ""
      let style = ""
      for (const [name, file] of Object.entries(bundle)) {
        if (file.type === "chunk") script += file.code
        else if (name.endsWith(".css")) style += file.source
        else continue
        delete bundle[name]
      }
      // An end tag in a string of the script would end the script.
      script = `"use strict";${script.replaceAll("</script", "<\\/script").trim()}`
      html = html.replace(/\s*<script type="module".*?<\/script>/s, "")
      html = html.replace(/\s*<link rel="stylesheet".*?>/s, "")
      const policy = [
        "default-src 'none'",
        `script-src 'sha256-${createHash("sha256").update(script).digest("base64")}'`,
        // The charts set the sizes of their elements.
        "style-src 'unsafe-inline'",
        "img-src data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
      ].join("; ")
      html = html.replace("{{policy}}", policy)
      html = html.replace("</head>", () => `<style>${style}</style>\n</head>`)
      html = html.replace("</body>", () => `<script type="module">${script}</script>\n</body>`)
      page.source = html
    },
  }
}
