//! Servers that answer at once: an echo over TCP and over WebSockets, and `ok` to every request of
//! HTTP and of Phoenix Channels.

use std::net::SocketAddr;

use throng_driver::{ListenSpec, Listeners, SocketOptions};
use throng_engine::{AfterClose, App, CloseReason, Conn, CoreContext};
use throng_proto::Raw;
use throng_proto::phoenix::{self, PhoenixPayload, Vsn, names};
use throng_proto::websocket::{ServerEvent, WebSocketLimits, WebSocketServer};
use throng_sim::{SimDriver, SimFd};

type D = SimDriver<()>;

/// Accept queue: small, so that a frozen server soon has a full one.
const BACKLOG: u32 = 3;

pub(crate) fn server_addr() -> SocketAddr {
    "127.0.0.1:4000".parse().unwrap()
}

fn listen(driver: &mut D) -> SimFd {
    let (addr, options) = (server_addr(), SocketOptions::default());
    let spec = ListenSpec { addr, backlog: BACKLOG, reuseport: false, options };
    let listener = driver.listen(&spec).unwrap();
    driver.watch(&listener, 0).unwrap();
    listener
}

/// App that sends back the bytes that it receives.
#[derive(Default)]
pub(crate) struct Echo {
    listener: Option<SimFd>,
    /// Received bytes.
    pub(crate) bytes: u64,
}

impl App<D> for Echo {
    type Session = Raw;
    type State = ();

    fn started(&mut self, cx: &mut CoreContext<D, Self>) {
        self.listener = Some(listen(cx.driver()));
    }

    fn acceptable(&mut self, cx: &mut CoreContext<D, Self>, _number: u32) {
        while let Ok(fd) = cx.driver().accept(self.listener.as_ref().unwrap()) {
            assert!(cx.adopt(fd, Raw, ()).is_ok());
        }
    }

    fn opened(&mut self, _conn: &mut Conn<'_, D, Self>) {}

    fn event(&mut self, conn: &mut Conn<'_, D, Self>, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        conn.send(bytes);
    }

    fn closed(&mut self, _: &mut Conn<'_, D, Self>, _: CloseReason) -> AfterClose {
        AfterClose::Free
    }
}

/// App that sends back each message, or answers it with `ok` for Phoenix Channels.
#[derive(Default)]
pub(crate) struct Answerer {
    listener: Option<SimFd>,
    /// Received messages, without heartbeats.
    pub(crate) messages: u64,
}

impl App<D> for Answerer {
    type Session = WebSocketServer;
    /// The protocol is Phoenix Channels.
    type State = bool;

    fn started(&mut self, cx: &mut CoreContext<D, Self>) {
        self.listener = Some(listen(cx.driver()));
    }

    fn acceptable(&mut self, cx: &mut CoreContext<D, Self>, _number: u32) {
        while let Ok(fd) = cx.driver().accept(self.listener.as_ref().unwrap()) {
            let session = WebSocketServer::new(cx.now(), &WebSocketLimits::default());
            assert!(cx.adopt(fd, session, false).is_ok());
        }
    }

    fn opened(&mut self, _conn: &mut Conn<'_, D, Self>) {}

    fn event(&mut self, conn: &mut Conn<'_, D, Self>, event: ServerEvent<'_>) {
        match event {
            ServerEvent::Request(request) => {
                *conn.state() = request.query().is_some_and(|query| query.contains("vsn="));
                let (session, out) = conn.session();
                match session.check_upgrade(&request) {
                    Ok(upgrade) => session.accept(&upgrade, None, &[], false, out),
                    Err(_) => _ = session.respond(200, &[], b"ok", out),
                }
            }
            ServerEvent::Text(text) if *conn.state() => self.answer(conn, text),
            ServerEvent::Text(text) => {
                self.messages += 1;
                let (session, out) = conn.session();
                session.text(text, None, out);
            }
            ServerEvent::Closed { .. } => conn.close(),
            ServerEvent::Failed(violation) => panic!("{violation}"),
            ServerEvent::Binary(_) | ServerEvent::Ping(_) | ServerEvent::Pong(_) => {}
        }
    }

    fn closed(&mut self, _: &mut Conn<'_, D, Self>, _: CloseReason) -> AfterClose {
        AfterClose::Free
    }
}

impl Answerer {
    fn answer(&mut self, conn: &mut Conn<'_, D, Self>, text: &str) {
        let message = phoenix::decode_text(Vsn::V2, text).expect("the generator sends messages");
        let (topic, reference) = (&*message.topic, message.r#ref.as_deref());
        let join_ref = message.join_ref.as_deref();
        self.messages += u64::from(&*message.event != names::HEARTBEAT);
        let mut out = Vec::new();
        phoenix::reply(Vsn::V2, join_ref, reference, topic, "ok", PhoenixPayload::EMPTY, &mut out)
            .unwrap();
        let (session, sent) = conn.session();
        session.text(std::str::from_utf8(&out).unwrap(), None, sent);
    }
}
