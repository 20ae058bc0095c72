//! `throng schema` and the schema of the diagnosis, checked by ajv, a validator in Node.

use crate::tools::{Tool, node_test};

#[test]
fn editors_and_programs_find_what_the_schemas_say() {
    node_test("schema.test.js", &Tool::packages());
}
