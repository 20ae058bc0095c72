//! Messages that arrive after the handshake: key updates and tickets (RFC 8446 section 4.6).

use crate::TlsError;
use crate::keys::{ConnState, Flag};
use crate::record::KEY_UPDATE;

/// Message that the connection must act on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PostMessage<'a> {
    /// The peer sends with its next key from now on.
    KeyUpdate {
        /// It asks for ours, too.
        asks: bool,
    },
    /// A ticket, without the header of its message.
    Ticket(&'a [u8]),
}

/// Reads the content of a handshake record. An incomplete message stays in `rest`, which holds what
/// earlier records brought of it.
pub(crate) fn read(
    state: &ConnState,
    rest: &mut Vec<u8>,
    content: &[u8],
    mut act: impl FnMut(PostMessage<'_>) -> Result<(), TlsError>,
) -> Result<(), TlsError> {
    if content.is_empty() {
        return Err(TlsError::EmptyRecord);
    }
    if !state.suite.is_13() {
        return Err(match (content[0], state.is(Flag::IsClient)) {
            (HELLO_REQUEST, true) | (CLIENT_HELLO, false) => TlsError::Renegotiation,
            _ => TlsError::Unexpected("a handshake message after the handshake"),
        });
    }
    let joined;
    let mut left = if rest.is_empty() {
        content
    } else {
        rest.extend_from_slice(content);
        joined = std::mem::take(rest);
        &joined[..]
    };
    while let Some((header, after)) = left.split_first_chunk::<4>() {
        let [typ, a, b, c] = *header;
        let bytes = u32::from_be_bytes([0, a, b, c]) as usize;
        check_header(typ, bytes, state.is(Flag::IsClient))?;
        let Some((body, after)) = after.split_at_checked(bytes) else { break };
        let message = message(typ, body)?;
        // "Implementations MUST verify that all messages immediately preceding a key change align
        // with a record boundary" (section 5.1)
        if matches!(message, PostMessage::KeyUpdate { .. }) && !after.is_empty() {
            return Err(TlsError::Unexpected("a message behind a KeyUpdate in its record"));
        }
        act(message)?;
        left = after;
    }
    *rest = left.to_vec();
    Ok(())
}

/// Checks a message before it is complete: no peer makes us keep what is refused later.
fn check_header(typ: u8, bytes: usize, is_client: bool) -> Result<(), TlsError> {
    match typ {
        KEY_UPDATE if bytes == 1 => Ok(()),
        KEY_UPDATE => Err(TlsError::Malformed("a KeyUpdate")),
        NEW_SESSION_TICKET if is_client && bytes <= TICKET_BYTES_MAX => Ok(()),
        NEW_SESSION_TICKET if is_client => Err(TlsError::MessageTooLong(TICKET_BYTES_MAX)),
        _ => Err(TlsError::Unexpected("a handshake message after the handshake")),
    }
}

fn message(typ: u8, body: &[u8]) -> Result<PostMessage<'_>, TlsError> {
    match (typ, body) {
        (KEY_UPDATE, [0]) => Ok(PostMessage::KeyUpdate { asks: false }),
        (KEY_UPDATE, [1]) => Ok(PostMessage::KeyUpdate { asks: true }),
        // "If an implementation receives any other value, it MUST terminate the connection with an
        // "illegal_parameter" alert." (section 4.6.3)
        (KEY_UPDATE, _) => Err(TlsError::BadKeyUpdate),
        (_, body) => Ok(PostMessage::Ticket(body)),
    }
}

const HELLO_REQUEST: u8 = 0;
const CLIENT_HELLO: u8 = 1;
const NEW_SESSION_TICKET: u8 = 4;

/// Longest ticket: it may have 64 KiB by its format; those that servers send have less than 4.
const TICKET_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::pair;
    use crate::suite::Suite;

    /// Returns the messages in these records, read by a client or a server.
    fn check(suite: Suite, is_client: bool, records: &[&[u8]]) -> Result<Vec<String>, TlsError> {
        let [mut client, mut server] = pair(suite);
        let state = if is_client { client.state() } else { server.state() };
        let (mut rest, mut found) = (Vec::new(), Vec::new());
        for content in records {
            read(state, &mut rest, content, |message| {
                found.push(format!("{message:?}"));
                Ok(())
            })?;
        }
        Ok(found)
    }

    const TICKET: &[u8] = &[4, 0, 0, 2, 8, 9];
    const UPDATE: &[u8] = &[24, 0, 0, 1, 1];

    #[test]
    fn messages_are_read_whole_together_and_in_pieces() {
        let suite = Suite::Tls13Aes128;
        let both = ["Ticket([8, 9])", "KeyUpdate { asks: true }"];
        let joined = [TICKET, UPDATE].concat();
        assert_eq!(check(suite, true, &[TICKET, UPDATE]).unwrap(), both);
        assert_eq!(check(suite, true, &[&joined]).unwrap(), both);
        let bytes: Vec<&[u8]> = joined.chunks(1).collect();
        assert_eq!(check(suite, true, &bytes).unwrap(), both);
    }

    #[test]
    fn what_may_not_arrive_is_refused() {
        let suite = Suite::Tls13Aes128;
        let after_update = [UPDATE, TICKET].concat();
        let table: &[(Suite, bool, &[u8], TlsError)] = &[
            (suite, true, &[], TlsError::EmptyRecord),
            (
                suite,
                true,
                &after_update,
                TlsError::Unexpected("a message behind a KeyUpdate in its record"),
            ),
            (suite, true, &[24, 0, 0, 1, 2], TlsError::BadKeyUpdate),
            (suite, true, &[24, 0, 0, 0], TlsError::Malformed("a KeyUpdate")),
            (suite, true, &[24, 1, 0, 1], TlsError::Malformed("a KeyUpdate")),
            (suite, true, &[4, 1, 0, 1], TlsError::MessageTooLong(TICKET_BYTES_MAX)),
            (suite, false, TICKET, TlsError::Unexpected("a handshake message after the handshake")),
            (
                suite,
                true,
                &[13, 0, 0, 0],
                TlsError::Unexpected("a handshake message after the handshake"),
            ),
            (Suite::Tls12Aes128, true, &[0, 0, 0, 0], TlsError::Renegotiation),
            (Suite::Tls12Aes128, false, &[1, 0, 0, 0], TlsError::Renegotiation),
        ];
        for (suite, is_client, content, error) in table {
            assert_eq!(check(*suite, *is_client, &[content]).as_ref(), Err(error));
        }
    }
}
