//! Requests on their way to a long-poll session, and answers on their way back.

use throng_proto::http::Request;

use super::inbox::Text;
use crate::ConnectionId;

/// A request in flight to a session.
pub(crate) struct SessionRequest {
    /// The connection that waits for the answer, and the number of its request.
    pub(crate) from: Requester,
    pub(crate) command: SessionCommand,
}

/// A connection that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Requester {
    pub(crate) connection: ConnectionId,
    pub(crate) request: u32,
}

/// The kind of a request, with its data.
pub(crate) enum SessionCommand {
    Poll,
    Post { content_type: Option<String>, body: Vec<u8> },
}

/// An answer in flight to the client.
pub(crate) struct SessionAnswer {
    pub(crate) request: u32,
    /// The session that gets the messages back if the client is gone.
    pub(crate) session: ConnectionId,
    pub(crate) body: AnswerBody,
}

/// The content of an answer. The core of the client's connection encodes it.
pub(crate) struct AnswerBody {
    /// The status. 400 is sent as HTTP's own, as in Phoenix; any other is in the JSON body.
    pub(crate) status: u16,
    pub(crate) token: Option<String>,
    pub(crate) messages: Vec<Text>,
}

/// A poll that can be repeated.
pub(crate) struct StoredPoll {
    pub(crate) target: String,
    pub(crate) headers: String,
    /// The session that it names.
    pub(crate) session: ConnectionId,
}

impl StoredPoll {
    pub(crate) fn new(request: &Request<'_>, session: ConnectionId) -> Self {
        let mut headers = String::new();
        for (name, value) in request.headers.iter() {
            headers.extend([name, ": ", value, "\r\n"]);
        }
        Self { target: request.target.to_owned(), headers, session }
    }
}
