//! A server's frames. The first byte selects compression; the rest is the data that the client
//! sends after its handshake.

use throng_proto::websocket::{
    ClientHandshake, DeflateOffer, Scratch, ServerEvent, WebSocketClient, WebSocketServer,
};
use throng_proto::{Input, Session};

use super::transcript::{self, LIMITS, NOW, Then};

/// Checks that the events do not depend on how the bytes arrive, and that messages round-trip.
pub fn check(bytes: &[u8]) {
    let Some((options, frames)) = bytes.split_first() else { return };
    let deflate = options & 1 == 1;
    let begin = |scratch: &mut Scratch, _: &mut Vec<u8>| open(deflate, scratch);
    let on_event = |server: &WebSocketServer, event: ServerEvent<'_>| {
        let then = match event {
            ServerEvent::Closed { .. } | ServerEvent::Failed(_) => Then::Stop,
            ServerEvent::Request(_) => panic!("a request among frames"),
            ServerEvent::Text(_) | ServerEvent::Binary(_) => {
                check_round_trip(server.is_deflated(), event);
                Then::Go
            }
            ServerEvent::Ping(payload) | ServerEvent::Pong(payload) => {
                assert!(payload.len() <= 125);
                Then::Go
            }
        };
        (format!("{event:?}"), then)
    };
    transcript::check(frames, begin, on_event, |_, _| Then::Go);
}

/// Creates a server that has accepted the upgrade of our client.
pub fn open(deflate: bool, scratch: &mut Scratch) -> WebSocketServer {
    let (mut request, mut response) = (Vec::new(), Vec::new());
    WebSocketClient::new().begin(&handshake(deflate), &mut request);
    let mut server = WebSocketServer::new(NOW, &LIMITS);
    let upgrade = {
        let mut input = Input::new(&mut request);
        match server.next(NOW, &mut input, scratch, &mut response) {
            Some(ServerEvent::Request(request)) => server.check_upgrade(&request).unwrap(),
            event => panic!("{event:?}"),
        }
    };
    server.accept(&upgrade, None, &[], deflate, &mut response);
    server
}

pub fn handshake(deflate: bool) -> ClientHandshake<'static> {
    ClientHandshake {
        host: "fuzz",
        path_and_query: "/",
        headers: &[],
        subprotocols: &[],
        deflate: if deflate { &[DeflateOffer::BROWSER] } else { &[] },
        key: [7; 16],
    }
}

/// Checks that a new server decodes the message that a client encodes, masked, and compressed if
/// permitted.
fn check_round_trip(deflate: bool, event: ServerEvent<'_>) {
    let mut scratch = Scratch::new(LIMITS, 1);
    let (mut client, mut frames) =
        (super::websocket_client::open(deflate, false, &mut scratch), Vec::new());
    let mut deflater = throng_proto::websocket::Deflater::new();
    match event {
        ServerEvent::Text(text) => {
            client.text(text, [1, 2, 3, 250], Some(&mut deflater), &mut frames)
        }
        ServerEvent::Binary(bytes) => {
            client.binary(bytes, [9, 0, 3, 1], Some(&mut deflater), &mut frames)
        }
        _ => return,
    }
    // One encoded frame may be longer than two of the input.
    scratch = Scratch::new(
        throng_proto::websocket::WebSocketLimits { frame_bytes_max: 4_096, ..LIMITS },
        1,
    );
    let mut server = open(deflate, &mut scratch);
    let mut input = Input::new(&mut frames);
    assert_eq!(server.next(NOW, &mut input, &mut scratch, &mut Vec::new()), Some(event));
}
