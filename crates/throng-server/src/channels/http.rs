//! HTTP requests: the upgrade to a WebSocket, long-polls, pages.

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use throng_engine::SendPart;
use throng_proto::http::Request;
use throng_proto::phoenix::Vsn;
use throng_proto::websocket::{Refusal, ResponseOutcome, offered_subprotocols};
use throng_pubsub::Subscription;

use super::client::{ChannelHandler, Client, SOCKET_ID};
use super::client_state::{Extra, Mode};
use super::config::{Config, ConnectGrant, ConnectRequest, Transport};
use super::longpoll;
use crate::ConnectRefusal;

/// Answers one request.
pub(crate) fn request(handler: &mut ChannelHandler, conn: &mut Client<'_>, request: &Request<'_>) {
    let config = &handler.core.config;
    let transport = request.path().strip_prefix(&*config.path).unwrap_or_default();
    match transport {
        "/websocket" => upgrade(handler, conn, request),
        "/longpoll" => longpoll::request(handler, conn, request),
        _ => match config.pages.iter().find(|page| page.path == request.path()) {
            Some(page) if matches!(request.method, "GET" | "HEAD") => {
                answer(conn, 200, &[("content-type", page.content_type)], page.body);
            }
            Some(_) => answer(conn, 405, &[("allow", "GET, HEAD")], b""),
            None => answer(conn, 404, &[], b""),
        },
    }
}

/// Upgrades the connection to a WebSocket, or refuses. The order of the checks is Phoenix's.
fn upgrade(handler: &mut ChannelHandler, conn: &mut Client<'_>, request: &Request<'_>) {
    let config = &handler.core.config;
    if request.method != "GET" {
        return answer(conn, 400, &[], b"");
    }
    let admission = match admit(config, request, Transport::WebSocket) {
        Ok(admission) => admission,
        Err(rejected) => {
            handler.core.counters.connects_refused += 1;
            return answer(conn, rejected.status, &[], rejected.body.as_bytes());
        }
    };
    let (session, out) = conn.session();
    match session.check_upgrade(request) {
        Ok(upgrade) => session.accept(&upgrade, admission.subprotocol, &[], config.deflate, out),
        Err(Refusal { .. }) => return answer(conn, 400, &[], b""),
    }
    conn.set_timeout(config.timeout);
    conn.state().mode = Mode::Socket(admission.vsn);
    let ConnectGrant { id, assigns } = admission.grant;
    if id.is_some() || assigns.is_some() {
        conn.state().extra = Some(Box::new(Extra { id, assigns, ..Extra::default() }));
        subscribe_to_id(conn);
    }
}

/// The version, subprotocol and grant of a client that may connect.
pub(crate) struct Admission<'a> {
    pub(crate) vsn: Vsn,
    subprotocol: Option<&'a str>,
    pub(crate) grant: ConnectGrant,
}

/// Checks whether a client may connect, over either transport.
pub(crate) fn admit<'a>(
    config: &'a Config,
    request: &Request<'_>,
    transport: Transport,
) -> Result<Admission<'a>, ConnectRefusal> {
    if !is_origin_allowed(config, request) {
        return Err(ConnectRefusal::default());
    }
    let (auth_token, subprotocol) = match transport {
        Transport::WebSocket => (token_of(config, request)?, subprotocol(config, request)?),
        Transport::LongPoll => (request.header("x-phoenix-authtoken").map(str::to_owned), None),
    };
    let auth_token = auth_token.filter(|_| config.auth_token);
    let connect = ConnectRequest { request, auth_token, transport };
    let vsn =
        Vsn::from_query(connect.param("vsn").as_deref()).map_err(|_| ConnectRefusal::default())?;
    let grant = (config.connect)(&connect)?;
    Ok(Admission { vsn, subprotocol, grant })
}

/// Reports whether the page that sent the request, if a page did, may connect.
pub(crate) fn is_origin_allowed(config: &Config, request: &Request<'_>) -> bool {
    config.check_origin.allows_request(config.https, config.host.as_deref(), request)
}

/// Subscribes to the broadcasts to the socket's id.
pub(crate) fn subscribe_to_id(conn: &mut Client<'_>) {
    let Some(id) = conn.state().extra.as_ref().and_then(|extra| extra.id.clone()) else { return };
    let subscription = Subscription { intercepts: true, tag: SOCKET_ID, ..Subscription::default() };
    // The membership ends with the connection.
    let _ = conn.subscribe(&id, subscription);
}

/// Returns the token among the subprotocols, if the configuration allows one.
fn token_of(config: &Config, request: &Request<'_>) -> Result<Option<String>, ConnectRefusal> {
    if !config.auth_token {
        return Ok(None);
    }
    let Some(encoded) =
        offered_subprotocols(request).find_map(|offered| offered.strip_prefix(TOKEN_PREFIX))
    else {
        return Ok(None);
    };
    // phoenix.js writes the alphabet of RFC 4648 section 4, although the name says section 5.
    let bytes =
        [base64::alphabet::STANDARD, base64::alphabet::URL_SAFE].iter().find_map(|alphabet| {
            let lenient = GeneralPurposeConfig::new()
                .with_decode_padding_mode(DecodePaddingMode::Indifferent);
            GeneralPurpose::new(alphabet, lenient).decode(encoded).ok()
        });
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .map(Some)
        .ok_or_else(ConnectRefusal::default)
}

/// Returns the first of the server's subprotocols that the client offers.
fn subprotocol<'a>(
    config: &'a Config,
    request: &Request<'_>,
) -> Result<Option<&'a str>, ConnectRefusal> {
    let ours = || {
        config
            .auth_token
            .then_some("phoenix")
            .into_iter()
            .chain(config.subprotocols.iter().map(|name| &**name))
    };
    if ours().next().is_none() || offered_subprotocols(request).next().is_none() {
        return Ok(None);
    }
    let agreed = ours().find(|&ours| offered_subprotocols(request).any(|offered| offered == ours));
    agreed.map(Some).ok_or_else(ConnectRefusal::default)
}

/// Answers a request. The connection stays open if the client allows it and the server does not
/// drain.
pub(crate) fn answer(conn: &mut Client<'_>, status: u16, headers: &[(&str, &str)], body: &[u8]) {
    answer_in_parts(conn, status, headers, &[SendPart::Own(body)]);
}

/// Answers a request with a body of several parts.
pub(crate) fn answer_in_parts(
    conn: &mut Client<'_>,
    status: u16,
    headers: &[(&str, &str)],
    body: &[SendPart<'_>],
) {
    let is_draining = conn.is_draining();
    let (session, out) = conn.session();
    if is_draining {
        // Connections that would live on between two long-polls do not.
        session.close_after_response();
    }
    let length = body.iter().map(SendPart::len).sum();
    let ResponseOutcome { sends_body: wants_body, keep_alive: stays_open } =
        session.respond_head(status, headers, length, out);
    match body {
        _ if !wants_body => {}
        [SendPart::Own(only)] => out.extend_from_slice(only),
        parts => conn.send_parts(parts),
    }
    if !stays_open {
        conn.close();
    }
}

/// The prefix that phoenix.js writes before the token.
const TOKEN_PREFIX: &str = "base64url.bearer.phx.";
