//! The control socket: a request to a process, and its reply to a client.

use serde_json::json;
use throng_control::{Reply, Request, Verb};

/// A request that is understood is written so that it is understood again, by processes that know its verb;
/// a reply is what it says.
pub fn check(bytes: &[u8]) {
    let line = String::from_utf8_lossy(bytes);
    match Request::parse(&line, &Verb::ALL) {
        Ok(request) => {
            let written = serde_json::to_string(&request).unwrap();
            assert_eq!(Request::parse(&written, &Verb::ALL), Ok(request));
            assert_eq!(Request::parse(&written, &[request.verb]), Ok(request));
            assert!(Request::parse(&written, &[]).is_err());
        }
        // It goes onto a line of its own.
        Err(why) => assert!(!json!({ "error": why }).to_string().contains('\n')),
    }
    match Reply::parse(bytes) {
        Ok(Ok(reply)) => {
            let Reply { role, data } = &reply;
            let written = json!({"ok": true, "role": role, "data": data}).to_string();
            assert_eq!(Reply::parse(written.as_bytes()).unwrap().unwrap().role, reply.role);
        }
        Ok(Err(refused)) => {
            let written = json!({"ok": false, "error": refused}).to_string();
            assert_eq!(Reply::parse(written.as_bytes()), Ok(Err(refused)));
        }
        Err(why) => assert!(!why.is_empty()),
    }
}
