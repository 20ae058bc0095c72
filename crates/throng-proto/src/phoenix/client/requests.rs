//! The requests of a client.

use crate::phoenix::text::Head;
use crate::phoenix::{FrameEncodeError, FrameKind, PhoenixPayload, Vsn, binary, names};

/// Appends `phx_join`. Its ref becomes the join_ref of the channel. `payload` is JSON text.
pub fn join(vsn: Vsn, r#ref: &str, topic: &str, payload: &str, out: &mut Vec<u8>) {
    Head { join_ref: Some(r#ref), r#ref: Some(r#ref), topic, event: names::JOIN }
        .write(vsn, payload, out);
}

/// Appends a push to a channel.
pub fn push(
    vsn: Vsn,
    join_ref: Option<&str>,
    r#ref: &str,
    topic: &str,
    event: &str,
    payload: PhoenixPayload<'_>,
    out: &mut Vec<u8>,
) -> Result<FrameKind, FrameEncodeError> {
    match (vsn, payload) {
        (_, PhoenixPayload::Json(json)) => {
            Ok(Head { join_ref, r#ref: Some(r#ref), topic, event }.write(vsn, json, out))
        }
        (Vsn::V2, PhoenixPayload::Binary(data)) => {
            let names = [
                ("join_ref", join_ref.unwrap_or("")),
                ("ref", r#ref),
                ("topic", topic),
                ("event", event),
            ];
            binary::encode(binary::PUSH, names, data, out)
        }
        (Vsn::V1, PhoenixPayload::Binary(_)) => Err(FrameEncodeError::BinaryInV1),
    }
}

/// Appends `phx_leave`.
pub fn leave(vsn: Vsn, join_ref: Option<&str>, r#ref: &str, topic: &str, out: &mut Vec<u8>) {
    Head { join_ref, r#ref: Some(r#ref), topic, event: names::LEAVE }.write(vsn, "{}", out);
}

/// Appends a heartbeat.
pub fn heartbeat(vsn: Vsn, r#ref: &str, out: &mut Vec<u8>) {
    Head { join_ref: None, r#ref: Some(r#ref), topic: names::PHOENIX, event: names::HEARTBEAT }
        .write(vsn, "{}", out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_those_of_phoenix_js() {
        let mut out = Vec::new();
        join(Vsn::V2, "1", "rooms:lobby", r#"{"user":"7"}"#, &mut out);
        assert_eq!(out, br#"["1","1","rooms:lobby","phx_join",{"user":"7"}]"#);
        out.clear();
        leave(Vsn::V2, Some("1"), "4", "rooms:lobby", &mut out);
        assert_eq!(out, br#"["1","4","rooms:lobby","phx_leave",{}]"#);
        out.clear();
        heartbeat(Vsn::V2, "5", &mut out);
        assert_eq!(out, br#"[null,"5","phoenix","heartbeat",{}]"#);
        out.clear();
        heartbeat(Vsn::V1, "5", &mut out);
        assert_eq!(out, br#"{"topic":"phoenix","event":"heartbeat","payload":{},"ref":"5"}"#);
        out.clear();
        join(Vsn::V1, "1", "t", "{}", &mut out);
        assert_eq!(
            out,
            br#"{"topic":"t","event":"phx_join","payload":{},"ref":"1","join_ref":"1"}"#
        );
    }

    /// The test vector of the reference, §6.4.
    #[test]
    fn a_binary_push_is_that_of_the_reference() {
        let mut out = Vec::new();
        let data = PhoenixPayload::Binary(&[0x65, 0x66, 0x67]);
        assert_eq!(
            push(Vsn::V2, Some("12"), "123", "topic", "event", data, &mut out),
            Ok(FrameKind::Binary)
        );
        assert_eq!(out, b"\x00\x02\x03\x05\x0512123topicevent\x65\x66\x67");
        assert_eq!(
            push(Vsn::V1, None, "1", "t", "e", data, &mut out),
            Err(FrameEncodeError::BinaryInV1)
        );
    }
}
