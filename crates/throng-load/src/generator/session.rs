//! What is spoken on a user's connection, and the timer of its heartbeats.

use throng_base::Instant;
use throng_proto::websocket::{ClientEvent, Scratch, Violation, WebSocketClient};
use throng_proto::{Input, Session};

/// The protocol of a user's connection. A new one for each connection.
#[derive(Debug)]
pub enum UserSession {
    /// Bytes as they come.
    Raw,
    /// Messages.
    WebSocket(WebSocket),
}

/// A WebSocket, and when its user says that it is there.
#[derive(Debug)]
pub struct WebSocket {
    client: WebSocketClient,
    /// When to tell [`UserEvent::HeartbeatDue`]; [`Instant::FAR`] for never, [`Instant::ZERO`] once the moment has come.
    heartbeat_at: Instant,
}

/// What a connection says.
#[derive(Debug)]
pub enum UserEvent<'a> {
    /// Bytes of a stream.
    Bytes(&'a [u8]),
    /// Something of a WebSocket.
    WebSocket(ClientEvent<'a>),
    /// What answers the upgrade is not what a WebSocket's server says; with the beginning of it.
    UpgradeBroken(Violation, Box<[u8]>),
    /// The moment has come that [`UserSession::set_heartbeat`] set. It is not set any more.
    HeartbeatDue,
}

impl UserSession {
    /// A WebSocket on which nothing was said.
    pub(super) fn web_socket() -> Self {
        Self::WebSocket(WebSocket { client: WebSocketClient::new(), heartbeat_at: Instant::FAR })
    }

    /// The WebSocket, if it is one.
    pub(super) fn client(&mut self) -> Option<&mut WebSocketClient> {
        match self {
            Self::Raw => None,
            Self::WebSocket(socket) => Some(&mut socket.client),
        }
    }

    /// When the next heartbeat is due, or the answer to the last one; in place of what was set before.
    pub(super) fn set_heartbeat(&mut self, at: Instant) {
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
            Self::WebSocket(WebSocket { heartbeat_at, .. }) if *heartbeat_at == Instant::ZERO => {
                *heartbeat_at = Instant::FAR;
                Some(UserEvent::HeartbeatDue)
            }
            Self::WebSocket(socket) if socket.client.is_in_handshake() => {
                // It is consumed by what finds out that it is wrong.
                let mut head = [0; HEAD_BYTES_MAX];
                let length = input.peek().len().min(HEAD_BYTES_MAX);
                head[..length].copy_from_slice(&input.peek()[..length]);
                let event = socket.client.next(now, input, scratch, out)?;
                Some(match event {
                    ClientEvent::Failed(violation) => {
                        UserEvent::UpgradeBroken(violation, head[..length].into())
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
            Self::Raw => Instant::FAR,
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

/// Bytes that are kept of an answer that is no upgrade.
const HEAD_BYTES_MAX: usize = 64;

const _: () = assert!(size_of::<UserSession>() <= 32, "a user's protocol is small");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_is_told_once_and_only_when_it_is_due() {
        let mut session = UserSession::web_socket();
        let (mut scratch, mut out) = (Scratch::default(), Vec::new());
        let at = |seconds| Instant::ZERO + std::time::Duration::from_secs(seconds);
        session.set_heartbeat(at(30));
        assert_eq!(session.deadline(), at(30));
        // A timer that was set for an earlier moment: nothing is due.
        session.handle_timeout(at(29), &mut out);
        assert!(session.next(at(29), &mut Input::new(&mut []), &mut scratch, &mut out).is_none());
        session.handle_timeout(at(30), &mut out);
        let event = session.next(at(30), &mut Input::new(&mut []), &mut scratch, &mut out);
        assert!(matches!(event, Some(UserEvent::HeartbeatDue)));
        assert!(session.next(at(30), &mut Input::new(&mut []), &mut scratch, &mut out).is_none());
        assert_eq!(session.deadline(), Instant::FAR);
    }
}
