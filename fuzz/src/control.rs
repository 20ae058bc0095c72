//! The control socket: a request to a process, and its reply to a client.

use serde_json::json;
use throng_control::{ControlReply, ControlRequest, Verb};

/// Checks that a valid request survives a round trip, for processes that support its verb, and that
/// a reply survives one.
pub fn check(bytes: &[u8]) {
    let line = String::from_utf8_lossy(bytes);
    match ControlRequest::parse(&line, &Verb::ALL) {
        Ok(request) => {
            let written = serde_json::to_string(&request).unwrap();
            assert_eq!(ControlRequest::parse(&written, &Verb::ALL), Ok(request));
            assert_eq!(ControlRequest::parse(&written, &[request.verb]), Ok(request));
            assert!(ControlRequest::parse(&written, &[]).is_err());
        }
        // The error is written as one line.
        Err(why) => assert!(!json!({ "error": why }).to_string().contains('\n')),
    }
    match ControlReply::parse(bytes) {
        Ok(Ok(reply)) => {
            let ControlReply { role, data } = &reply;
            let written = json!({"ok": true, "role": role, "data": data}).to_string();
            assert_eq!(ControlReply::parse(written.as_bytes()).unwrap().unwrap().role, reply.role);
        }
        Ok(Err(error)) => {
            let written = json!({"ok": false, "error": error}).to_string();
            assert_eq!(ControlReply::parse(written.as_bytes()), Ok(Err(error)));
        }
        Err(why) => assert!(!why.is_empty()),
    }
}
