//! The chat page in headless Chromium. The screenshots stay in `target/clients`.

use crate::tools::{Tool, node_test};

#[test]
fn the_chat_page_works_in_a_browser() {
    let page = Tool::file("page/dist/index.html", "the chat page is not built");
    let chromium = Tool::command("chromium", &["--version"]);
    node_test("page.test.js", &Tool::packages().and(page).and(chromium));
}
