//! The cost of the WebSocket codec: `cargo bench -p throng-proto --bench websocket`. Prints the
//! best of many batches, one line each.

use std::hint::black_box;
use std::time::Instant as Clock;

use throng_base::Instant;
use throng_proto::websocket::{
    ClientEvent, ClientHandshake, DeflateOffer, Deflater, Opcode, Scratch, ServerEvent,
    WebSocketClient, WebSocketServer, encode_deflated, encode_frame,
};
use throng_proto::{Input, Session};

const HANDSHAKE: ClientHandshake<'_> = ClientHandshake {
    host: "127.0.0.1:4000",
    path_and_query: "/socket/websocket?vsn=2.0.0",
    headers: &[("user-agent", "throng"), ("origin", "http://127.0.0.1:4000")],
    subprotocols: &[],
    deflate: &[DeflateOffer::BROWSER],
    key: *b"the sample nonce",
};

fn main() {
    let mut scratch = Scratch::default();
    let mut request = Vec::new();
    WebSocketClient::new().begin(&HANDSHAKE, &mut request);
    let (mut server, mut client, mut response) = opened(&request, &mut scratch);
    let (mut out, mut deflater) = (Vec::with_capacity(16 << 10), Deflater::new());

    for length in [30, 90, 4_096] {
        let text = "hello, ".repeat(length / 7 + 1)[..length].to_owned();
        let mut frame = Vec::new();
        client.text(&text, [0x37, 0xfa, 0x21, 0x3d], None, &mut frame);
        let mut received = frame.clone();
        cost(
            &format!("server: read a masked text of {length} bytes (and copy it into place)"),
            || {
                received.copy_from_slice(&frame);
                let mut input = Input::new(&mut received);
                let event = server.next(Instant::ZERO, &mut input, &mut scratch, &mut out);
                matches!(event, Some(ServerEvent::Text(_)))
            },
        );
        let mut frame = Vec::new();
        encode_frame(Opcode::Text, text.as_bytes(), &mut frame);
        cost(&format!("client: read a text of {length} bytes"), || {
            let mut input = Input::new(&mut frame);
            let event = client.next(Instant::ZERO, &mut input, &mut scratch, &mut out);
            matches!(event, Some(ClientEvent::Text(_)))
        });
        cost(&format!("server: write a text of {length} bytes"), || {
            out.clear();
            server.text(black_box(&text), None, &mut out);
            !out.is_empty()
        });
        cost(&format!("client: write a masked text of {length} bytes"), || {
            out.clear();
            client.text(black_box(&text), [1, 2, 3, 4], None, &mut out);
            !out.is_empty()
        });
    }
    cost("server: read a request, check it and accept it", || {
        out.clear();
        let mut received = request.clone();
        accept(&mut received, &mut scratch, &mut out).is_open()
    });
    cost("client: write the request and read the response", || {
        out.clear();
        let mut client = WebSocketClient::new();
        client.begin(&HANDSHAKE, &mut out);
        let mut input = Input::new(&mut response);
        let event = client.next(Instant::ZERO, &mut input, &mut scratch, &mut out);
        matches!(event, Some(ClientEvent::Opened { .. }))
    });
    let push = concat!(
        r#"[null,null,"rooms:lobby","new_msg","#,
        r#"{"body":"hello, everyone in this room","user":"4711"}]"#
    );
    cost("server: compress a push of 90 bytes", || {
        out.clear();
        encode_deflated(Opcode::Text, black_box(push.as_bytes()), &mut deflater, &mut out);
        !out.is_empty()
    });
    println!("            {} bytes become {}", push.len(), out.len() - 2);
    let pushes = push.repeat(46);
    cost("server: compress 46 pushes, 4 KiB", || {
        out.clear();
        encode_deflated(Opcode::Text, black_box(pushes.as_bytes()), &mut deflater, &mut out);
        !out.is_empty()
    });
    println!("            {} bytes become {}", pushes.len(), out.len() - 4);
    let mut compressed = Vec::new();
    encode_deflated(Opcode::Text, push.as_bytes(), &mut deflater, &mut compressed);
    cost("client: read a compressed push of 90 bytes", || {
        let mut input = Input::new(&mut compressed);
        let event = client.next(Instant::ZERO, &mut input, &mut scratch, &mut out);
        matches!(event, Some(ClientEvent::Text(_)))
    });
}

/// Returns both sessions after a handshake, and the server's response.
fn opened(request: &[u8], scratch: &mut Scratch) -> (WebSocketServer, WebSocketClient, Vec<u8>) {
    let (mut client, mut out) = (WebSocketClient::new(), Vec::new());
    client.begin(&HANDSHAKE, &mut out);
    out.clear();
    let server = accept(&mut request.to_vec(), scratch, &mut out);
    let response = out.clone();
    let opened = client.next(Instant::ZERO, &mut Input::new(&mut out), scratch, &mut Vec::new());
    assert!(matches!(opened, Some(ClientEvent::Opened { .. })));
    (server, client, response)
}

fn accept(request: &mut [u8], scratch: &mut Scratch, out: &mut Vec<u8>) -> WebSocketServer {
    let mut server = WebSocketServer::new(Instant::ZERO, scratch.limits());
    let mut input = Input::new(request);
    if let Some(ServerEvent::Request(request)) =
        server.next(Instant::ZERO, &mut input, scratch, out)
        && let Ok(upgrade) = server.check_upgrade(&request)
    {
        server.accept(&upgrade, None, &[], true, out);
    }
    server
}

fn cost(name: &str, mut call: impl FnMut() -> bool) {
    const CALLS: u32 = 10_000;
    let batch = |_| {
        let started = Clock::now();
        for _ in 0..CALLS {
            assert!(black_box(call()));
        }
        started.elapsed()
    };
    let best = (0..30).map(batch).min().unwrap_or_default();
    println!("{:>8.1} ns  {name}", best.as_nanos() as f64 / f64::from(CALLS));
}
