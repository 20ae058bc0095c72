//! V2 binary frames: from a client to a server, and back.

use throng_proto::phoenix::client::{self, PhoenixClientEvent};
use throng_proto::phoenix::{Vsn, broadcast, decode_binary, push, reply};

/// Checks that a decoded frame encodes to the same bytes.
pub fn check(bytes: &[u8]) {
    let mut out = Vec::new();
    if let Ok(message) = decode_binary(bytes) {
        let (join_ref, r#ref) =
            (message.join_ref.as_deref(), message.r#ref.as_deref().unwrap_or(""));
        let (topic, event) = (&message.topic, &message.event);
        client::push(Vsn::V2, join_ref, r#ref, topic, event, message.payload, &mut out).unwrap();
        assert_eq!(out, bytes);
    }
    out.clear();
    match client::decode_binary(bytes) {
        Ok(PhoenixClientEvent::Message(message)) if bytes[0] == 0 => {
            let join_ref = message.join_ref.as_deref();
            push(Vsn::V2, join_ref, &message.topic, &message.event, message.payload, &mut out)
                .unwrap();
        }
        Ok(PhoenixClientEvent::Message(message)) => {
            broadcast(Vsn::V2, &message.topic, &message.event, message.payload, &mut out).unwrap();
        }
        Ok(PhoenixClientEvent::Reply(response)) => {
            let (join_ref, r#ref) = (response.join_ref.as_deref(), response.r#ref.as_deref());
            reply(
                Vsn::V2,
                join_ref,
                r#ref,
                &response.topic,
                &response.status,
                response.response,
                &mut out,
            )
            .unwrap();
        }
        // Its refs are not shown.
        Ok(PhoenixClientEvent::ChannelEnd(_)) | Err(_) => return,
    }
    assert_eq!(out, bytes);
}
