//! A user's WebSocket: the client of `throng-proto`, and the timer of a heartbeat.

use throng_base::Instant;
use throng_proto::Input;
use throng_proto::http::Response;
use throng_proto::websocket::{ClientEvent, Scratch, Violation, WebSocketClient};

use crate::user::UserSession;

pub(crate) type Session = WebSocket;

/// A WebSocket with the heartbeat of its user.
#[derive(Debug)]
pub struct WebSocket {
    client: WebSocketClient,
    /// Moment of the next [`WebSocketEvent::HeartbeatDue`]; [`Instant::FAR`] for never,
    /// [`Instant::ZERO`] once it is due.
    heartbeat_at: Instant,
}

/// Event of a user's WebSocket.
#[derive(Debug)]
pub enum WebSocketEvent<'a> {
    /// An event of the client.
    Client(ClientEvent<'a>),
    /// The answer to the upgrade violates the protocol. Holds the first bytes of the answer.
    UpgradeViolated(Violation, Box<[u8]>),
    /// The answer to the upgrade is not a consent. Holds the part of its body that came with it.
    UpgradeRefused(Response<'a>, &'a [u8]),
    /// The moment that `UserSession::set_heartbeat` has set is past. It must be set again for the
    /// next one.
    HeartbeatDue,
}

impl UserSession {
    /// Creates a WebSocket session before its upgrade.
    pub(crate) fn web_socket() -> Self {
        Self::Ws(WebSocket { client: WebSocketClient::new(), heartbeat_at: Instant::FAR })
    }

    /// Returns the WebSocket client, or `None` on another connection.
    pub(crate) fn client(&mut self) -> Option<&mut WebSocketClient> {
        match self {
            Self::Ws(socket) => Some(&mut socket.client),
            _ => None,
        }
    }

    /// Sets the moment of the next [`WebSocketEvent::HeartbeatDue`]. Replaces an earlier one.
    pub(crate) fn set_heartbeat(&mut self, at: Instant) {
        if let Self::Ws(socket) = self {
            socket.heartbeat_at = at;
        }
    }
}

impl throng_proto::Session for WebSocket {
    type Event<'a> = WebSocketEvent<'a>;
    type Scratch = Scratch;

    fn next<'a, 'i: 'a>(
        &mut self,
        now: Instant,
        input: &mut Input<'i>,
        scratch: &'a mut Scratch,
        out: &mut Vec<u8>,
    ) -> Option<WebSocketEvent<'a>> {
        if self.heartbeat_at == Instant::ZERO {
            self.heartbeat_at = Instant::FAR;
            return Some(WebSocketEvent::HeartbeatDue);
        }
        if !self.client.is_in_handshake() {
            return self.client.next(now, input, scratch, out).map(WebSocketEvent::Client);
        }
        // The client consumes the head when it finds the violation, so it is copied first.
        let (head, length) = first_bytes(self.client.response_so_far(), input.peek());
        Some(match self.client.next(now, input, scratch, out)? {
            ClientEvent::Failed(violation) => {
                WebSocketEvent::UpgradeViolated(violation, head[..length].into())
            }
            ClientEvent::Refused(answer) => {
                WebSocketEvent::UpgradeRefused(answer, input.take_all())
            }
            event => WebSocketEvent::Client(event),
        })
    }

    fn deadline(&self) -> Instant {
        self.heartbeat_at.min(self.client.deadline())
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Vec<u8>) {
        if self.heartbeat_at <= now {
            self.heartbeat_at = Instant::ZERO;
        }
        if self.client.deadline() <= now {
            self.client.handle_timeout(now, out);
        }
    }
}

/// Returns the first bytes of an answer of which `before` arrived before `now`, and their number.
fn first_bytes(before: &[u8], now: &[u8]) -> ([u8; HEAD_BYTES_MAX], usize) {
    let mut first = [0; HEAD_BYTES_MAX];
    let length = (before.len() + now.len()).min(HEAD_BYTES_MAX);
    let bytes = before.iter().chain(now);
    first.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    (first, length)
}

/// First bytes of a failed upgrade's answer that are kept for the report.
const HEAD_BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use throng_proto::Session as _;
    use throng_proto::websocket::ClientHandshake;

    use super::*;
    use crate::user::UserEvent;

    #[test]
    fn a_failed_upgrade_shows_the_first_bytes_of_its_answer_however_they_arrive() {
        let endless = format!("HTTP/1.1 200 OK\r\nx1: {}", "y".repeat(9_000));
        for (answer, pieces, violation) in [
            (endless.as_str(), 1_000, Violation::ResponseHeadTooLong),
            (endless.as_str(), 17, Violation::ResponseHeadTooLong),
            ("SSH-2.0-OpenSSH_9.6\r\n", 3, Violation::ResponseInvalid),
        ] {
            let mut session = UserSession::web_socket();
            let (mut scratch, mut out) = (Scratch::default(), Vec::new());
            let handshake = ClientHandshake {
                host: "h",
                path_and_query: "/",
                headers: &[],
                subprotocols: &[],
                deflate: &[],
                key: [0; 16],
            };
            session.client().unwrap().begin(&handshake, &mut out);
            let shown = answer.as_bytes().chunks(pieces).find_map(|piece| {
                let mut piece = piece.to_vec();
                let mut input = Input::new(&mut piece);
                match session.next(Instant::ZERO, &mut input, &mut scratch, &mut out)? {
                    UserEvent::Ws(WebSocketEvent::UpgradeViolated(found, head)) => {
                        Some((found, head))
                    }
                    event => panic!("{event:?}"),
                }
            });
            let (found, head) = shown.unwrap();
            assert_eq!(found, violation);
            assert!(head.starts_with(&answer.as_bytes()[..3]), "{head:?}");
            assert!(answer.as_bytes().starts_with(&head), "{head:?}");
        }
    }

    #[test]
    fn a_heartbeat_is_reported_once_and_only_when_it_is_due() {
        let mut session = UserSession::web_socket();
        let (mut scratch, mut out) = (Scratch::default(), Vec::new());
        let at = |seconds| Instant::ZERO + std::time::Duration::from_secs(seconds);
        session.set_heartbeat(at(30));
        assert_eq!(session.deadline(), at(30));
        // This timer was set for an earlier moment: nothing is due.
        session.handle_timeout(at(29), &mut out);
        assert!(session.next(at(29), &mut Input::new(&mut []), &mut scratch, &mut out).is_none());
        session.handle_timeout(at(30), &mut out);
        let event = session.next(at(30), &mut Input::new(&mut []), &mut scratch, &mut out);
        assert!(matches!(event, Some(UserEvent::Ws(WebSocketEvent::HeartbeatDue))));
        assert!(session.next(at(30), &mut Input::new(&mut []), &mut scratch, &mut out).is_none());
        assert_eq!(session.deadline(), Instant::FAR);
    }
}
