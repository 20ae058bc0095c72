//! A client's frames. The first byte selects compression and context takeover; the rest is the data that the server
//! sends after the handshake.

use throng_proto::websocket::{
    ClientEvent, Scratch, ServerEvent, WebSocketClient, WebSocketServer,
};
use throng_proto::{Input, Session};

use super::transcript::{self, LIMITS, NOW, Then};
use super::websocket_server::handshake;

/// Checks that the events do not depend on how the bytes arrive.
pub fn check(bytes: &[u8]) {
    let Some((options, frames)) = bytes.split_first() else { return };
    let begin =
        |scratch: &mut Scratch, _: &mut Vec<u8>| open(options & 1 == 1, options & 2 == 2, scratch);
    let on_event = |_: &WebSocketClient, event: ClientEvent<'_>| {
        let then = match event {
            ClientEvent::Closed { .. } | ClientEvent::Failed(_) => Then::Stop,
            ClientEvent::Opened { .. } | ClientEvent::Refused(_) => {
                panic!("a handshake among frames")
            }
            _ => Then::Go,
        };
        (format!("{event:?}"), then)
    };
    transcript::check(frames, begin, on_event, |_, _| Then::Go);
}

/// Creates a client whose upgrade our server has accepted. Both take their contexts over, if
/// `takes_over`.
pub fn open(deflate: bool, takes_over: bool, scratch: &mut Scratch) -> WebSocketClient {
    let (mut request, mut response) = (Vec::new(), Vec::new());
    let mut client = WebSocketClient::new();
    client.begin(&handshake(deflate), &mut request);
    let mut server = WebSocketServer::new(NOW, &LIMITS);
    let upgrade = {
        let mut input = Input::new(&mut request);
        match server.next(NOW, &mut input, scratch, &mut response) {
            Some(ServerEvent::Request(request)) => server.check_upgrade(&request).unwrap(),
            event => panic!("{event:?}"),
        }
    };
    server.accept(&upgrade, None, &[], deflate, &mut response);
    if takes_over {
        let text = String::from_utf8(response).unwrap();
        let neither = "; server_no_context_takeover; client_no_context_takeover";
        response = text.replace(neither, "").into_bytes();
    }
    let mut input = Input::new(&mut response);
    let opened = client.next(NOW, &mut input, scratch, &mut Vec::new());
    let Some(ClientEvent::Opened { subprotocol: None, deflate: agreed }) = opened else {
        panic!("{opened:?}")
    };
    assert_eq!(agreed.is_some(), deflate);
    assert!(agreed.is_none_or(|agreed| agreed.server_takes_over == takes_over));
    client
}
