//! Puts the chat page where the source can include it: the bundle, if npm has made it, else a page that says how to.

use std::path::Path;
use std::{env, fs};

/// One page that needs nothing else; `make page` writes it.
const BUNDLE: &str = "../../page/dist/index.html";
const SOURCE: &str = "../../page";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A watched path that does not exist would make every build a new one: the nearest that does is watched.
    if let Some(path) = [BUNDLE, SOURCE].into_iter().find(|path| Path::new(path).exists()) {
        println!("cargo:rerun-if-changed={path}");
    }
    let page = fs::read_to_string(BUNDLE).unwrap_or_else(|_| MISSING.to_owned());
    let out = env::var_os("OUT_DIR").expect("cargo says where to write");
    fs::write(Path::new(&out).join("page.html"), page).expect("cargo's folder can be written to");
}

const MISSING: &str = "\
<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<title>throng: no chat page</title>
<body style=\"max-width: 40rem; margin: 4rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif\">
<h1>The chat page is not in this build</h1>
<p>The channels are served all the same, at <code>/socket</code>. The page is bundled by npm, which <code>cargo build</code> does
not start: run <code>make page</code> with Node 20 or later, and build again.</p>
</html>
";
