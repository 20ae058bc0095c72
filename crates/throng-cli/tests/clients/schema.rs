//! `throng schema`, checked by ajv, a validator of JSON Schema in Node.

use crate::tools::{Tool, node_test};

#[test]
fn editors_find_examples_good_and_mistakes_bad() {
    node_test("schema.test.js", &Tool::packages());
}
