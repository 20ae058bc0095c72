//! Client and server of a control socket, as two processes use them.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throng_control::{
    CLIENTS_MAX, ControlClient, ControlError, ControlRequest, ControlSocket, ControlTarget,
    ProcessRole, REQUEST_BYTES_MAX, Verb, serve,
};

/// A time longer than any step of these tests, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(300);

/// A generator whose users leave at once when it drains, and that answers slowly.
#[derive(Default)]
struct Users(AtomicU64);

impl ControlTarget for Users {
    fn verbs(&self) -> &[Verb] {
        &[Verb::Start, Verb::Stop, Verb::Count, Verb::Drain]
    }

    fn answer(&self, request: &ControlRequest) -> Result<Value, String> {
        let n = request.n.unwrap_or(0);
        match request.verb {
            Verb::Start => _ = self.0.fetch_add(n, Ordering::Relaxed),
            Verb::Stop if n > self.0.load(Ordering::Relaxed) => {
                return Err("there are not so many".to_owned());
            }
            Verb::Stop => _ = self.0.fetch_sub(n, Ordering::Relaxed),
            Verb::Drain => {
                let users = self.0.swap(0, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(300 + users));
            }
            _ => {}
        }
        Ok(json!({"users": self.0.load(Ordering::Relaxed)}))
    }
}

fn open(path: &Path) -> ControlSocket {
    serve(Some(path), ProcessRole::Load, "scenario.yaml", Arc::<Users>::default()).unwrap()
}

fn with_socket(test: impl FnOnce(PathBuf)) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("throng.sock");
    let socket = open(&path);
    test(path.clone());
    drop(socket);
    assert!(!path.exists(), "the file goes with the socket");
}

/// Returns the reply of the socket at `path` to the raw bytes `sent`.
fn raw(path: &Path, sent: &[u8]) -> Value {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(sent).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn requests_are_answered_one_after_another() {
    with_socket(|path| {
        let mut client = ControlClient::connect(&path).unwrap();
        let reply = client.request(&ControlRequest::with_n(Verb::Start, 100)).unwrap();
        assert_eq!((reply.role, reply.data), (ProcessRole::Load, json!({"users": 100})));
        let refused = client.request(&ControlRequest::with_n(Verb::Stop, 101));
        assert!(
            matches!(refused, Err(ControlError::Refused(why)) if why == "there are not so many")
        );
        assert_eq!(client.request(&ControlRequest::new(Verb::Count)).unwrap().data["users"], 100);
    });
}

#[test]
fn the_wire_is_one_line_of_json_each_way() {
    with_socket(|path| {
        let reply = raw(&path, b"{\"verb\":\"start\",\"n\":7}\n");
        assert_eq!(reply, json!({"ok": true, "role": "load", "data": {"users": 7}}));
        let reply = raw(&path, b"{\"verb\":\"cuont\"}\n");
        assert_eq!(reply["ok"], false);
        let error = reply["error"].as_str().unwrap();
        assert!(error.contains("did you mean `count`?") && error.contains("drain"), "{error}");
        let reply = raw(&path, b"\xff\xfe garbage\n");
        assert!(reply["error"].as_str().unwrap().contains("not JSON"));
    });
}

#[test]
fn a_request_that_is_too_long_is_refused_with_the_limit() {
    with_socket(|path| {
        let reply = raw(&path, &vec![b'x'; REQUEST_BYTES_MAX + 1]);
        assert!(reply["error"].as_str().unwrap().contains("4096"), "{reply}");
    });
}

#[test]
fn one_client_too_many_is_refused_and_the_next_is_served_once_one_has_left() {
    with_socket(|path| {
        let mut clients: Vec<_> =
            (0..CLIENTS_MAX).map(|_| ControlClient::connect(&path).unwrap()).collect();
        for client in &mut clients {
            client.request(&ControlRequest::new(Verb::Count)).unwrap();
        }
        let error = ControlClient::connect(&path)
            .unwrap()
            .request(&ControlRequest::new(Verb::Count))
            .unwrap_err();
        // The refusal and the close of the connection race against the request.
        let told = matches!(&error, ControlError::Refused(why) if why.contains("16 clients"));
        assert!(told || matches!(error, ControlError::Gone(_)), "{error}");
        clients.pop();
        let deadline = Instant::now() + PATIENCE;
        while ControlClient::connect(&path)
            .unwrap()
            .request(&ControlRequest::new(Verb::Count))
            .is_err()
        {
            assert!(Instant::now() < deadline, "a place is free");
            thread::sleep(Duration::from_millis(5));
        }
    });
}

#[test]
fn a_process_that_does_not_answer_is_a_time_out_and_does_not_block_others() {
    with_socket(|path| {
        let mut slow = ControlClient::connect(&path).unwrap();
        slow.request(&ControlRequest::with_n(Verb::Start, 3_000)).unwrap();
        let mut slow = slow.with_timeout(Duration::from_millis(30));
        let error = slow.request(&ControlRequest::new(Verb::Drain)).unwrap_err();
        assert!(matches!(error, ControlError::TimedOut(..)), "{error}");
        ControlClient::connect(&path).unwrap().request(&ControlRequest::new(Verb::Count)).unwrap();
    });
}

#[test]
fn a_reply_under_way_arrives_though_the_socket_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("throng.sock");
    let socket = open(&path);
    let mut other = ControlClient::connect(&path).unwrap();
    other.request(&ControlRequest::with_n(Verb::Start, 1)).unwrap();
    let mut client = ControlClient::connect(&path).unwrap();
    let asked = thread::spawn(move || client.request(&ControlRequest::new(Verb::Drain)));
    while other.request(&ControlRequest::new(Verb::Count)).unwrap().data["users"] != 0 {
        thread::sleep(Duration::from_millis(5));
    }
    drop(socket);
    asked.join().unwrap().expect("the reply");
}

#[test]
fn dropping_does_not_wait_for_clients_that_ask_nothing() {
    // A drop that waited would take a second each time; a busy machine can only make some drops
    // slow.
    let took = (0..5).map(|_| {
        let dir = tempfile::tempdir().unwrap();
        let socket = open(&dir.path().join("throng.sock"));
        let mut idle = ControlClient::connect(socket.path()).unwrap();
        idle.request(&ControlRequest::new(Verb::Count)).unwrap();
        let begin = Instant::now();
        drop(socket);
        let took = begin.elapsed();
        let error = idle.request(&ControlRequest::new(Verb::Count)).unwrap_err();
        assert!(matches!(error, ControlError::Gone(_)), "{error}");
        took
    });
    assert!(took.min() < Some(Duration::from_millis(500)));
}

#[test]
fn a_path_in_use_is_refused_and_a_stale_one_is_taken_over() {
    with_socket(|path| {
        let error =
            serve(Some(&path), ProcessRole::Server, "", Arc::<Users>::default()).err().unwrap();
        assert!(error.to_string().contains("a running process"), "{error}");
        let stale = path.with_extension("stale");
        drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
        drop(open(&stale));
    });
}

#[test]
fn only_its_user_may_ask() {
    with_socket(|path| {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    });
}
