//! A protocol of your own as a `Session`: messages with a length of two bytes before them. The
//! server answers each with its letters in reverse:
//! `cargo run --example session -- 127.0.0.1:5555`.

use std::convert::Infallible;

use throng::proto::{Input, Session};
use throng::{Connection, EventOf, Handler, Instant, Server};

/// The protocol's state in a connection: a message of which a part has arrived. An idle connection
/// owns no buffer: an empty `Vec` has none.
#[derive(Default)]
struct Lengths {
    partial: Vec<u8>,
}

impl Session for Lengths {
    /// A whole message, borrowed from the receive buffer or from the core's scratch.
    type Event<'a> = &'a [u8];
    /// The buffer that the connections of a core share.
    type Scratch = Vec<u8>;

    fn next<'a, 'i: 'a>(
        &mut self,
        _now: Instant,
        input: &mut Input<'i>,
        whole: &'a mut Vec<u8>,
        _out: &mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        while !input.is_empty() {
            let missing = match *self.partial {
                [] => 2,
                [_] => 1,
                [high, low, ..] => {
                    usize::from(u16::from_be_bytes([high, low])) + 2 - self.partial.len()
                }
            };
            let taken = missing.min(input.peek().len());
            self.partial.extend_from_slice(input.take(taken));
            if let [high, low, message @ ..] = &*self.partial
                && message.len() == usize::from(u16::from_be_bytes([*high, *low]))
            {
                whole.clear();
                whole.extend_from_slice(message);
                self.partial = Vec::new();
                return Some(whole);
            }
        }
        None
    }
}

struct Reverse;

impl Handler for Reverse {
    type Session = Lengths;
    type State = ();
    type Message = Infallible;

    fn event(&mut self, conn: &mut Connection<'_, Self>, message: EventOf<'_, Self>) {
        let length = u16::try_from(message.len()).expect("a length of two bytes");
        conn.send(&length.to_be_bytes());
        conn.send(&message.iter().rev().copied().collect::<Vec<u8>>());
    }
}

fn main() -> throng::Result {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:5555".into());
    Server::bind(address)
        .handler(|_core| Reverse)
        .on_listening(|address| println!("listening on {address}"))
        .run()
}
