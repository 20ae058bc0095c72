//! tungstenite, an independent implementation, as the peer.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::rc::Rc;

use throng_proto::websocket::WebSocketClient;
use tungstenite::{HandshakeError, Message, WebSocket, accept, client};

use crate::support::{AcceptingServer, DescribeEvents, HANDSHAKE, Harness, server};

/// A pipe in memory: tungstenite has this end, the test the other.
#[derive(Clone, Default)]
struct Pipe {
    to_peer: Rc<RefCell<VecDeque<u8>>>,
    from_peer: Rc<RefCell<Vec<u8>>>,
}

impl Pipe {
    /// Delivers to each side the bytes that the other has sent, in pieces that match no frame.
    fn exchange<S: DescribeEvents>(&self, harness: &mut Harness<S>) {
        for piece in self.from_peer.take().chunks(1_447) {
            harness.receive(piece);
        }
        self.to_peer.borrow_mut().extend(harness.sent());
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.to_peer.borrow_mut().read(buffer)? {
            0 => Err(ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.from_peer.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const LENGTHS: [usize; 7] = [0, 1, 125, 126, 65_535, 65_536, 150_000];

/// Sends messages in both directions and compares them with the received ones.
fn converse<S: DescribeEvents>(
    pipe: &Pipe,
    harness: &mut Harness<S>,
    peer: &mut WebSocket<Pipe>,
    send: impl Fn(&mut Harness<S>, &str, &[u8]),
) {
    harness.events.clear();
    for length in LENGTHS {
        let text: String = "aé😀z".chars().cycle().take(length / 4).collect();
        let bytes: Vec<u8> = (0..length).map(|index| (index * 31) as u8).collect();
        peer.send(Message::text(text.clone())).unwrap();
        peer.send(Message::binary(bytes.clone())).unwrap();
        pipe.exchange(harness);
        let received = std::mem::take(&mut harness.events);
        assert_eq!(received.len(), 2, "{length} bytes: {received:?}");
        send(harness, &text, &bytes);
        pipe.exchange(harness);
        assert_eq!(peer.read().unwrap(), Message::text(text.clone()));
        assert_eq!(peer.read().unwrap(), Message::binary(bytes.clone()));
        // Our server decodes the same events from the same messages.
        let mut expected = server_that_received(&text, &bytes);
        assert_eq!(received, std::mem::take(&mut expected.events), "{length} bytes");
    }
    peer.send(Message::Ping("are you there?".into())).unwrap();
    pipe.exchange(harness);
    assert_eq!(peer.read().unwrap(), Message::Pong("are you there?".into()));
}

fn server_that_received(text: &str, bytes: &[u8]) -> Harness<AcceptingServer> {
    let mut harness = crate::support::open_server(false);
    harness.receive(&crate::support::masked(0x81, text.as_bytes()));
    harness.receive(&crate::support::masked(0x82, bytes));
    harness
}

#[test]
fn a_foreign_client_talks_to_our_server() {
    let pipe = Pipe::default();
    let mut harness = server(true);
    let Err(HandshakeError::Interrupted(waiting)) = client("ws://localhost/chat", pipe.clone())
    else {
        panic!("there is no response yet");
    };
    pipe.exchange(&mut harness);
    let (mut peer, response) = waiting.handshake().unwrap();
    assert_eq!(response.headers()["server"], "t");
    converse(&pipe, &mut harness, &mut peer, |harness, text, bytes| {
        harness.session.server.text(text, None, &mut harness.out);
        harness.session.server.binary(bytes, None, &mut harness.out);
    });
    peer.close(None).unwrap();
    pipe.exchange(&mut harness);
    assert_eq!(harness.events.last().unwrap(), "closed None");
    assert!(matches!(peer.read(), Ok(Message::Close(None))), "our close frame reaches the peer");
}

#[test]
fn our_client_talks_to_a_foreign_server() {
    let pipe = Pipe::default();
    let mut harness = Harness::new(WebSocketClient::new());
    harness.session.begin(&HANDSHAKE, &mut harness.out);
    pipe.exchange(&mut harness);
    let mut peer = accept(pipe.clone()).unwrap();
    pipe.exchange(&mut harness);
    assert_eq!(harness.events, ["opened None"]);
    converse(&pipe, &mut harness, &mut peer, |harness, text, bytes| {
        harness.session.text(text, [1, 2, 3, 4], None, &mut harness.out);
        harness.session.binary(bytes, [5, 6, 7, 8], None, &mut harness.out);
    });
    harness.session.close(4_000, "enough", [9; 4], &mut harness.out);
    pipe.exchange(&mut harness);
    let Message::Close(Some(frame)) = peer.read().unwrap() else { panic!("it was a close") };
    assert_eq!((u16::from(frame.code), &*frame.reason), (4_000, "enough"));
    let _ = peer.flush();
    pipe.exchange(&mut harness);
    assert_eq!(harness.events.last().unwrap(), "closed Some(4000) enough");
}
