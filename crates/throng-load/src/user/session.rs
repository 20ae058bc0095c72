//! The protocol state of a user's connection, and its heartbeat timer.

use throng_base::Instant;
use throng_proto::http::{HttpClient, HttpEvent, Response};
use throng_proto::websocket::{ClientEvent, Scratch, Violation, WebSocketClient};
use throng_proto::{Input, Session};

/// Protocol state of a user's connection. Each connection gets a new one.
#[derive(Debug)]
pub enum UserSession {
    /// A plain TCP stream.
    Raw,
    /// A WebSocket.
    WebSocket(WebSocket),
    /// HTTP requests.
    Http(HttpClient),
}

/// A WebSocket with the heartbeat of its user.
#[derive(Debug)]
pub struct WebSocket {
    client: WebSocketClient,
    /// Moment of the next [`UserEvent::HeartbeatDue`]; [`Instant::FAR`] for never,
    /// [`Instant::ZERO`] once it is due.
    heartbeat_at: Instant,
}

/// Events that a connection delivers.
#[derive(Debug)]
pub enum UserEvent<'a> {
    /// Bytes of a TCP stream.
    Bytes(&'a [u8]),
    /// An event of a WebSocket.
    WebSocket(ClientEvent<'a>),
    /// An event of an HTTP connection.
    Http(HttpEvent<'a>),
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
        Self::WebSocket(WebSocket { client: WebSocketClient::new(), heartbeat_at: Instant::FAR })
    }

    /// Creates a session of HTTP requests.
    pub(crate) fn http_client() -> Self {
        Self::Http(HttpClient::new())
    }

    /// Returns the HTTP client, if this is one.
    pub(crate) fn http(&mut self) -> Option<&mut HttpClient> {
        match self {
            Self::Http(client) => Some(client),
            Self::Raw | Self::WebSocket(_) => None,
        }
    }

    /// Returns the WebSocket client, or `None` on another connection.
    pub(crate) fn client(&mut self) -> Option<&mut WebSocketClient> {
        match self {
            Self::Raw | Self::Http(_) => None,
            Self::WebSocket(socket) => Some(&mut socket.client),
        }
    }

    /// Sets the moment of the next [`UserEvent::HeartbeatDue`]. Replaces an earlier one.
    pub(crate) fn set_heartbeat(&mut self, at: Instant) {
        if let Self::WebSocket(socket) = self {
            socket.heartbeat_at = at;
        }
    }
}

impl Session for UserSession {
    type Event<'a> = UserEvent<'a>;
    type Scratch = Scratch;

    fn next<'a, 'i: 'a>(
        &mut self,
        now: Instant,
        input: &mut Input<'i>,
        scratch: &'a mut Scratch,
        out: &mut Vec<u8>,
    ) -> Option<UserEvent<'a>> {
        match self {
            Self::Raw if input.is_empty() => None,
            Self::Raw => Some(UserEvent::Bytes(input.take_all())),
            Self::Http(client) => client.next(now, input, scratch, out).map(UserEvent::Http),
            Self::WebSocket(WebSocket { heartbeat_at, .. }) if *heartbeat_at == Instant::ZERO => {
                *heartbeat_at = Instant::FAR;
                Some(UserEvent::HeartbeatDue)
            }
            Self::WebSocket(socket) if socket.client.is_in_handshake() => {
                // The client consumes the head when it finds the violation, so it is copied first.
                let (head, length) = first_bytes(socket.client.response_so_far(), input.peek());
                let event = socket.client.next(now, input, scratch, out)?;
                Some(match event {
                    ClientEvent::Failed(violation) => {
                        UserEvent::UpgradeViolated(violation, head[..length].into())
                    }
                    ClientEvent::Refused(answer) => {
                        UserEvent::UpgradeRefused(answer, input.take_all())
                    }
                    event => UserEvent::WebSocket(event),
                })
            }
            Self::WebSocket(socket) => {
                socket.client.next(now, input, scratch, out).map(UserEvent::WebSocket)
            }
        }
    }

    fn deadline(&self) -> Instant {
        match self {
            Self::Raw | Self::Http(_) => Instant::FAR,
            Self::WebSocket(socket) => socket.heartbeat_at.min(socket.client.deadline()),
        }
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Vec<u8>) {
        let Self::WebSocket(socket) = self else { return };
        if socket.heartbeat_at <= now {
            socket.heartbeat_at = Instant::ZERO;
        }
        if socket.client.deadline() <= now {
            socket.client.handle_timeout(now, out);
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

const _: () = assert!(size_of::<UserSession>() <= 32, "a user's protocol is small");

#[cfg(test)]
mod tests {
    use throng_proto::websocket::ClientHandshake;

    use super::*;

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
                    UserEvent::UpgradeViolated(found, head) => Some((found, head)),
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
        assert!(matches!(event, Some(UserEvent::HeartbeatDue)));
        assert!(session.next(at(30), &mut Input::new(&mut []), &mut scratch, &mut out).is_none());
        assert_eq!(session.deadline(), Instant::FAR);
    }
}
