//! Copies the page that draws a run to where the source includes it: the bundle if npm has made it,
//! or else a page that says how to make it.

use std::path::Path;
use std::{env, fs};

/// The page in one file, without other resources. `make page` writes it.
const BUNDLE: &str = "../../ui/dist/index.html";
const SOURCE: &str = "../../ui";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Watching a path that does not exist would rebuild the crate each time. So the nearest
    // existing path is watched.
    if let Some(path) = [BUNDLE, SOURCE].into_iter().find(|path| Path::new(path).exists()) {
        println!("cargo:rerun-if-changed={path}");
    }
    let page = fs::read_to_string(BUNDLE).unwrap_or_else(|_| MISSING.to_owned());
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("ui.html"), page).expect("OUT_DIR is writable");
}

const MISSING: &str = "\
<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<title>throng: no page</title>
<body style=\"max-width: 40rem; margin: 4rem auto; padding: 0 1rem; \
font: 16px/1.5 system-ui, sans-serif\">
<h1>The page is not in this build</h1>
<p>npm bundles it, and <code>cargo build</code> does not run npm: run <code>make page</code> with
Node 20 or later, and build again. <code>throng report</code> prints the run as text.</p>
<!-- the data of the run -->
</html>
";
