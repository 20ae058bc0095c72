//! The control socket: a request to a process, and its reply to a client.

use serde_json::json;
use throng_control::{ControlReply, ControlRequest, Verb};

/// A request that is understood is written so that it is understood again, by processes that know its verb;
/// a reply is what it says.
pub fn check(bytes: &[u8]) {
    let line = String::from_utf8_lossy(bytes);
    match ControlRequest::parse(&line, &Verb::ALL) {
        Ok(request) => {
            let written = serde_json::to_string(&request).unwrap();
            assert_eq!(ControlRequest::parse(&written, &Verb::ALL), Ok(request));
            assert_eq!(ControlRequest::parse(&written, &[request.verb]), Ok(request));
            assert!(ControlRequest::parse(&written, &[]).is_err());
        }
        // It goes onto a line of its own.
        Err(why) => assert!(!json!({ "error": why }).to_string().contains('\n')),
    }
    match ControlReply::parse(bytes) {
        Ok(Ok(reply)) => {
            let ControlReply { role, data } = &reply;
            let written = json!({"ok": true, "role": role, "data": data}).to_string();
            assert_eq!(ControlReply::parse(written.as_bytes()).unwrap().unwrap().role, reply.role);
        }
        Ok(Err(refused)) => {
            let written = json!({"ok": false, "error": refused}).to_string();
            assert_eq!(ControlReply::parse(written.as_bytes()), Ok(Err(refused)));
        }
        Err(why) => assert!(!why.is_empty()),
    }
}
