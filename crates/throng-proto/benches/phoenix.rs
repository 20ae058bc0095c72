//! The cost of the Phoenix codec: `cargo bench -p throng-proto --bench phoenix`. Prints the best of
//! many batches, one line each.

use std::hint::black_box;
use std::time::Instant;

use throng_proto::phoenix::{self, PhoenixPayload, Vsn, client};

fn main() {
    let text = concat!(
        r#"["12","345","rooms:lobby","new_msg","#,
        r#"{"body":"hello, everyone in this room","user":"4711"}]"#
    );
    let v1 = concat!(
        r#"{"topic":"rooms:lobby","event":"new_msg","#,
        r#""payload":{"body":"hello, everyone in this room","user":"4711"},"ref":"345"}"#
    );
    let broadcast = concat!(
        r#"[null,null,"rooms:lobby","new_msg","#,
        r#"{"body":"hello, everyone in this room","user":"4711"}]"#
    );
    let reply = r#"["12","345","rooms:lobby","phx_reply",{"status":"ok","response":{}}]"#;
    let large = format!(
        r#"[null,null,"rooms:lobby","new_msg",{{"body":"{}"}}]"#,
        "hello, you ".repeat(372)
    );
    let binary = b"\x00\x02\x03\x0b\x0712345rooms:lobbynew_msgdata of a binary push";
    let payload = PhoenixPayload::Json(r#"{"body":"hello, everyone in this room","user":"4711"}"#);

    cost("server: decode a V2 push of 90 bytes", || {
        phoenix::decode_text(Vsn::V2, black_box(text)).is_ok()
    });
    cost("server: decode a V1 push of 117 bytes", || {
        phoenix::decode_text(Vsn::V1, black_box(v1)).is_ok()
    });
    cost("server: decode a V2 push of 4 KiB", || {
        phoenix::decode_text(Vsn::V2, black_box(&large)).is_ok()
    });
    cost("server: decode a binary push", || phoenix::decode_binary(black_box(binary)).is_ok());
    cost("client: decode a V2 broadcast of 90 bytes", || {
        client::decode_text(Vsn::V2, black_box(broadcast)).is_ok()
    });
    cost("client: decode a V2 broadcast of 4 KiB", || {
        client::decode_text(Vsn::V2, black_box(&large)).is_ok()
    });
    cost("client: decode a V2 reply", || client::decode_text(Vsn::V2, black_box(reply)).is_ok());
    let mut out = Vec::with_capacity(256);
    cost("server: encode a V2 reply", || {
        out.clear();
        phoenix::reply(
            Vsn::V2,
            Some("12"),
            Some("345"),
            "rooms:lobby",
            "ok",
            PhoenixPayload::EMPTY,
            black_box(&mut out),
        )
        .is_ok()
    });
    let mut out = Vec::with_capacity(256);
    cost("client: encode a V2 push of 90 bytes", || {
        out.clear();
        client::push(
            Vsn::V2,
            Some("12"),
            "345",
            "rooms:lobby",
            "new_msg",
            payload,
            black_box(&mut out),
        )
        .is_ok()
    });
}

fn cost(name: &str, mut call: impl FnMut() -> bool) {
    const CALLS: u32 = 10_000;
    let batch = |_| {
        let started = Instant::now();
        for _ in 0..CALLS {
            assert!(black_box(call()));
        }
        started.elapsed()
    };
    let best = (0..50).map(batch).min().unwrap_or_default();
    println!("{:>7.1} ns  {name}", best.as_nanos() as f64 / f64::from(CALLS));
}
