//! What other load generators send, and what the scenarios send that are imported from their files.

use crate::tools::{Tool, node_test};

#[test]
fn an_imported_file_sends_what_its_tool_sends() {
    node_test("imports.test.js", &Tool::packages());
}
