//! The discovery of processes. This is the only test of its process, because a process has one
//! place in the folder.

use std::sync::Arc;

use serde_json::Value;
use throng_control::{ControlRequest, ControlTarget, Process, ProcessRole, Verb, processes, serve};

struct Mute;

impl ControlTarget for Mute {
    fn verbs(&self) -> &[Verb] {
        &[]
    }

    fn answer(&self, request: &ControlRequest) -> Result<Value, String> {
        Err(format!("{} was let through", request.verb))
    }
}

fn ours() -> Vec<Process> {
    let mine = |process: &Process| process.pid == std::process::id();
    processes().into_iter().filter(mine).collect()
}

#[test]
fn a_process_is_found_wherever_its_socket_is_until_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = dir.path().join("elsewhere.sock");
    for path in [None, Some(elsewhere.as_path())] {
        let socket = serve(path, ProcessRole::Server, "127.0.0.1:5555", Arc::new(Mute)).unwrap();
        let found = ours();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].role, found[0].title.as_str()),
            (ProcessRole::Server, "127.0.0.1:5555")
        );
        drop(socket);
        assert_eq!(ours(), []);
    }
}
