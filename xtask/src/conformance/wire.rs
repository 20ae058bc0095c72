//! A session over a blocking socket.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use throng_proto::websocket::{Scratch, WebSocketLimits};
use throng_proto::{Input, Session};

/// Autobahn's largest message is 16 MiB.
pub(super) const LIMITS: WebSocketLimits = WebSocketLimits {
    head_bytes_max: 8 << 10,
    body_bytes_max: 0,
    frame_bytes_max: 16 << 20,
    message_bytes_max: 16 << 20,
    handshake_timeout_ms: 10_000,
    message_timeout_ms: 60_000,
    close_timeout_ms: 5_000,
};

/// What to do after an event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Continue,
    /// Send what is to be sent and close; wait for the peer to do so for a second, to lose nothing that is on its way.
    Close,
    /// Wait for the peer to close.
    AwaitClose,
}

/// Reads and writes until `told` ends it or the peer closes. `out` is sent first.
pub(super) fn drive<S: Session<Scratch = Scratch>>(
    stream: &mut TcpStream,
    session: &mut S,
    mut out: Vec<u8>,
    mut told: impl FnMut(&mut S, S::Event<'_>, &mut Vec<u8>) -> Then,
) -> std::io::Result<()> {
    let origin = Instant::now();
    let now = || throng_base::Instant::from_nanos(1 + origin.elapsed().as_nanos() as u64);
    let mut scratch = Scratch::new(LIMITS, 1);
    let mut buffer = vec![0; 64 << 10];
    stream.set_nodelay(true)?;
    let mut received = 0;
    loop {
        let mut input = Input::new(&mut buffer[..received]);
        let mut then = Then::Continue;
        while let Some(event) = session.next(now(), &mut input, &mut scratch, &mut out) {
            then = told(session, event, &mut out);
            if then != Then::Continue {
                break;
            }
        }
        let written = stream.write_all(&out);
        out.clear();
        if then != Then::Continue {
            // Who has closed already, or has ended, need not hear the last word.
            return finish(stream, then, &mut buffer);
        }
        written?;
        received = 0;
        let left = session.deadline().since(now()).clamp(Duration::from_millis(1), PATIENCE);
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => received = count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if left == PATIENCE {
                    return Err(error);
                }
                session.handle_timeout(now(), &mut out);
            }
            Err(error) => return Err(error),
        }
    }
}

fn finish(stream: &mut TcpStream, then: Then, buffer: &mut [u8]) -> std::io::Result<()> {
    let patience = if then == Then::Close {
        let _ = stream.shutdown(std::net::Shutdown::Write);
        Duration::from_secs(1)
    } else {
        Duration::from_secs(5)
    };
    stream.set_read_timeout(Some(patience))?;
    loop {
        match stream.read(buffer) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            // A process that ends with bytes unread resets its connections: an end as well.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// No case is silent for so long.
const PATIENCE: Duration = Duration::from_secs(120);
