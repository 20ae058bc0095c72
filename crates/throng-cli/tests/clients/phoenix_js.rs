//! npm's `phoenix`, Phoenix's own client, in Node: over WebSockets and by long polling.

use crate::tools::{Tool, node_test};

#[test]
fn channels_are_as_its_client_expects() {
    node_test("channels.test.js", &Tool::packages());
}

#[test]
fn its_client_gets_through_outages() {
    node_test("outage.test.js", &Tool::packages());
}

/// The generator's own client is tested with the same table, beside its code.
#[test]
fn channels_end_as_in_every_release_of_the_client() {
    node_test("ends.test.js", &Tool::packages());
}

#[test]
fn frames_are_phoenixs_to_the_letter() {
    node_test("wire.test.js", &Tool::packages());
}
