//! The chat page, the report of a run and the pages of a comparison and of a search in headless
//! Chromium. The screenshots stay in `target/clients`.

use crate::tools::{Tool, node_test};

#[test]
fn the_chat_page_works_in_a_browser() {
    let page = Tool::file("page/dist/index.html", "the chat page is not built");
    let chromium = Tool::command("chromium", &["--version"]);
    node_test("page.test.js", &Tool::packages().and(page).and(chromium));
}

#[test]
fn the_report_of_a_run_works_in_a_browser() {
    let page = Tool::file("ui/dist/index.html", "the report's page is not built");
    let chromium = Tool::command("chromium", &["--version"]);
    node_test("report.test.js", &Tool::packages().and(page).and(chromium));
}

#[test]
fn the_live_page_of_a_run_works_in_a_browser() {
    let page = Tool::file("ui/dist/index.html", "the page of a run is not built");
    let chromium = Tool::command("chromium", &["--version"]);
    node_test("dashboard.test.js", &Tool::packages().and(page).and(chromium));
}

#[test]
fn the_page_of_a_comparison_works_in_a_browser() {
    let page = Tool::file("ui/dist/index.html", "the comparison's page is not built");
    let chromium = Tool::command("chromium", &["--version"]);
    node_test("compare.test.js", &Tool::packages().and(page).and(chromium));
}

#[test]
fn the_page_of_a_search_works_in_a_browser() {
    let page = Tool::file("ui/dist/index.html", "the search's page is not built");
    let chromium = Tool::command("chromium", &["--version"]);
    node_test("search.test.js", &Tool::packages().and(page).and(chromium));
}

#[test]
fn the_layout_of_saved_pages_suits_phones_and_large_screens() {
    let page = Tool::file("ui/dist/index.html", "the report's page is not built");
    let chromium = Tool::command("chromium", &["--version"]);
    node_test("layout.test.js", &Tool::packages().and(page).and(chromium));
}
