//! The loop that runs a session over a blocking socket.

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
    inflate_ratio_max: usize::MAX,
    handshake_timeout_ms: 10_000,
    message_timeout_ms: 60_000,
    close_timeout_ms: 5_000,
};

/// The next step after an event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    Continue,
    /// Send the pending bytes and close. Then wait up to a second for the peer to close, so that no
    /// bytes in flight are lost.
    Close,
    /// Wait for the peer to close.
    AwaitClose,
}

/// Reads and writes until `on_event` ends the loop or the peer closes. Sends `out` first.
pub(super) fn drive<S: Session<Scratch = Scratch>>(
    stream: &mut TcpStream,
    session: &mut S,
    mut out: Vec<u8>,
    mut on_event: impl FnMut(&mut S, S::Event<'_>, &mut Vec<u8>) -> NextStep,
) -> std::io::Result<()> {
    let origin = Instant::now();
    let now = || throng_base::Instant::from_nanos(1 + origin.elapsed().as_nanos() as u64);
    let mut scratch = Scratch::new(LIMITS, 1);
    let mut buffer = vec![0; 64 << 10];
    stream.set_nodelay(true)?;
    let mut received = 0;
    loop {
        let mut input = Input::new(&mut buffer[..received]);
        let mut then = NextStep::Continue;
        while let Some(event) = session.next(now(), &mut input, &mut scratch, &mut out) {
            then = on_event(session, event, &mut out);
            if then != NextStep::Continue {
                break;
            }
        }
        let written = stream.write_all(&out);
        out.clear();
        if then != NextStep::Continue {
            // A peer that has closed need not receive the last bytes.
            return finish(stream, then, &mut buffer);
        }
        written?;
        received = 0;
        let left = session.deadline().since(now()).clamp(Duration::from_millis(1), SILENCE_MAX);
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => received = count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if left == SILENCE_MAX {
                    return Err(error);
                }
                session.handle_timeout(now(), &mut out);
            }
            Err(error) => return Err(error),
        }
    }
}

fn finish(stream: &mut TcpStream, then: NextStep, buffer: &mut [u8]) -> std::io::Result<()> {
    let patience = if then == NextStep::Close {
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
            // A process that ends with unread bytes resets its connections: that is a close, too.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// The longest silence. No case is silent for so long.
const SILENCE_MAX: Duration = Duration::from_secs(120);
