//! tungstenite, an implementation that knows nothing of this one, as the other end.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::rc::Rc;

use throng_proto::websocket::WebSocketClient;
use tungstenite::{HandshakeError, Message, WebSocket, accept, client};

use crate::support::{Accepting, HANDSHAKE, Talk, Told, server};

/// A pipe in memory, of which we hold the other end.
#[derive(Clone, Default)]
struct Pipe {
    to_peer: Rc<RefCell<VecDeque<u8>>>,
    from_peer: Rc<RefCell<Vec<u8>>>,
}

impl Pipe {
    /// Gives each side what the other has sent, in pieces that fit nothing.
    fn exchange<S: Told>(&self, talk: &mut Talk<S>) {
        for piece in self.from_peer.take().chunks(1_447) {
            talk.receive(piece);
        }
        self.to_peer.borrow_mut().extend(talk.sent());
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

/// The peer sends to us and we to it; what arrives is what was sent.
fn converse<S: Told>(
    pipe: &Pipe,
    talk: &mut Talk<S>,
    peer: &mut WebSocket<Pipe>,
    say: impl Fn(&mut Talk<S>, &str, &[u8]),
) {
    talk.said.clear();
    for length in LENGTHS {
        let text: String = "aé😀z".chars().cycle().take(length / 4).collect();
        let bytes: Vec<u8> = (0..length).map(|index| (index * 31) as u8).collect();
        peer.send(Message::text(text.clone())).unwrap();
        peer.send(Message::binary(bytes.clone())).unwrap();
        pipe.exchange(talk);
        let heard = std::mem::take(&mut talk.said);
        assert_eq!(heard.len(), 2, "{length} bytes: {heard:?}");
        say(talk, &text, &bytes);
        pipe.exchange(talk);
        assert_eq!(peer.read().unwrap(), Message::text(text.clone()));
        assert_eq!(peer.read().unwrap(), Message::binary(bytes.clone()));
        // Said by either of them, it reads the same here.
        let mut expected = server_that_heard(&text, &bytes);
        assert_eq!(heard, std::mem::take(&mut expected.said), "{length} bytes");
    }
    peer.send(Message::Ping("are you there?".into())).unwrap();
    pipe.exchange(talk);
    assert_eq!(peer.read().unwrap(), Message::Pong("are you there?".into()));
}

fn server_that_heard(text: &str, bytes: &[u8]) -> Talk<Accepting> {
    let mut talk = crate::support::open_server(false);
    talk.receive(&crate::support::masked(0x81, text.as_bytes()));
    talk.receive(&crate::support::masked(0x82, bytes));
    talk
}

#[test]
fn a_foreign_client_talks_to_our_server() {
    let pipe = Pipe::default();
    let mut talk = server(true);
    let Err(HandshakeError::Interrupted(waiting)) = client("ws://localhost/chat", pipe.clone())
    else {
        panic!("there is no answer yet");
    };
    pipe.exchange(&mut talk);
    let (mut peer, answer) = waiting.handshake().unwrap();
    assert_eq!(answer.headers()["server"], "t");
    converse(&pipe, &mut talk, &mut peer, |talk, text, bytes| {
        talk.session.server.text(text, None, &mut talk.out);
        talk.session.server.binary(bytes, None, &mut talk.out);
    });
    peer.close(None).unwrap();
    pipe.exchange(&mut talk);
    assert_eq!(talk.said.last().unwrap(), "closed None");
    assert!(matches!(peer.read(), Ok(Message::Close(None))), "our answer reaches it");
}

#[test]
fn our_client_talks_to_a_foreign_server() {
    let pipe = Pipe::default();
    let mut talk = Talk::new(WebSocketClient::new());
    talk.session.begin(&HANDSHAKE, &mut talk.out);
    pipe.exchange(&mut talk);
    let mut peer = accept(pipe.clone()).unwrap();
    pipe.exchange(&mut talk);
    assert_eq!(talk.said, ["opened None"]);
    converse(&pipe, &mut talk, &mut peer, |talk, text, bytes| {
        talk.session.text(text, [1, 2, 3, 4], None, &mut talk.out);
        talk.session.binary(bytes, [5, 6, 7, 8], None, &mut talk.out);
    });
    talk.session.close(4_000, "enough", [9; 4], &mut talk.out);
    pipe.exchange(&mut talk);
    let Message::Close(Some(frame)) = peer.read().unwrap() else { panic!("it was a close") };
    assert_eq!((u16::from(frame.code), &*frame.reason), (4_000, "enough"));
    let _ = peer.flush();
    pipe.exchange(&mut talk);
    assert_eq!(talk.said.last().unwrap(), "closed Some(4000) enough");
}
