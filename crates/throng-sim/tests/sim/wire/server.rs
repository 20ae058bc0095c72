//! Servers that write down what they get.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use throng_base::Instant;
use throng_driver::{ListenSpec, Listeners, SocketOptions};
use throng_engine::{AfterClose, App, CloseReason, Conn, CoreContext};
use throng_proto::Raw;
use throng_proto::websocket::{Scratch, ServerEvent, WebSocketLimits, WebSocketServer};
use throng_sim::{SimDriver, SimFd};

type D = SimDriver<()>;

/// What a server got, in the order of its connections.
#[derive(Clone, Default)]
pub(crate) struct Journal {
    pub(crate) connections: Vec<RecordedConnection>,
    shared: Rc<RefCell<Vec<RecordedConnection>>>,
}

/// What a server got of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedConnection {
    opened: Instant,
    /// All bytes, or the path of the upgrade and the texts.
    pub(crate) bytes: Vec<u8>,
    /// The moment of each piece.
    at: Vec<Instant>,
}

impl Journal {
    /// Returns what was written down.
    pub(crate) fn taken(&self) -> Self {
        Self { connections: self.shared.take(), ..Self::default() }
    }

    fn open(&self, now: Instant) -> usize {
        let connection = RecordedConnection { opened: now, bytes: Vec::new(), at: Vec::new() };
        self.shared.borrow_mut().push(connection);
        self.shared.borrow().len() - 1
    }

    fn note(&self, connection: usize, now: Instant, bytes: &[u8]) {
        let connection = &mut self.shared.borrow_mut()[connection];
        connection.bytes.extend_from_slice(bytes);
        connection.at.push(now);
    }
}

fn listen(driver: &mut D) -> SimFd {
    let (addr, options) = (server_addr(), SocketOptions::default());
    let spec = ListenSpec { addr, backlog: 10_000, reuseport: false, options };
    let listener = driver.listen(&spec).unwrap();
    driver.watch(&listener, 0).unwrap();
    listener
}

/// Server over TCP. It answers `Pong` to `Ping`, `pong` to `ping ...`, and `ok` to all else.
pub(crate) struct TcpServer {
    journal: Journal,
    listener: Option<SimFd>,
}

impl TcpServer {
    pub(crate) fn new(journal: &Journal) -> Self {
        Self { journal: journal.clone(), listener: None }
    }
}

impl App<D> for TcpServer {
    type Session = Raw;
    /// Index in the journal.
    type State = usize;

    fn started(&mut self, cx: &mut CoreContext<D, Self>) {
        self.listener = Some(listen(cx.driver()));
    }

    fn acceptable(&mut self, cx: &mut CoreContext<D, Self>, _number: u32) {
        while let Ok(fd) = cx.driver().accept(self.listener.as_ref().unwrap()) {
            let index = self.journal.open(cx.now());
            assert!(cx.adopt(fd, Raw, index).is_ok());
        }
    }

    fn opened(&mut self, _conn: &mut Conn<'_, D, Self>) {}

    fn event(&mut self, conn: &mut Conn<'_, D, Self>, bytes: &[u8]) {
        let index = *conn.state();
        self.journal.note(index, conn.now(), bytes);
        conn.send(if bytes.starts_with(b"Ping") {
            b"Pong"
        } else if bytes.windows(4).any(|four| four == b"ping") {
            b"pong"
        } else {
            b"ok"
        });
    }

    fn closed(&mut self, _: &mut Conn<'_, D, Self>, _: CloseReason) -> AfterClose {
        AfterClose::Free
    }
}

/// Server of WebSockets, which answers each text with the same.
pub(crate) struct WebSocketRecorder {
    journal: Journal,
    listener: Option<SimFd>,
}

impl WebSocketRecorder {
    pub(crate) fn new(journal: &Journal) -> Self {
        Self { journal: journal.clone(), listener: None }
    }
}

impl App<D> for WebSocketRecorder {
    type Session = WebSocketServer;
    /// Index in the journal.
    type State = usize;

    fn scratch(&self) -> Scratch {
        Scratch::new(WebSocketLimits::default(), 1)
    }

    fn started(&mut self, cx: &mut CoreContext<D, Self>) {
        self.listener = Some(listen(cx.driver()));
    }

    fn acceptable(&mut self, cx: &mut CoreContext<D, Self>, _number: u32) {
        while let Ok(fd) = cx.driver().accept(self.listener.as_ref().unwrap()) {
            let session = WebSocketServer::new(cx.now(), &WebSocketLimits::default());
            let index = self.journal.open(cx.now());
            assert!(cx.adopt(fd, session, index).is_ok());
        }
    }

    fn opened(&mut self, _conn: &mut Conn<'_, D, Self>) {}

    fn event(&mut self, conn: &mut Conn<'_, D, Self>, event: ServerEvent<'_>) {
        let (index, now) = (*conn.state(), conn.now());
        match event {
            ServerEvent::Request(request) => {
                self.journal.note(index, now, format!("{request:?}").as_bytes());
                let (session, out) = conn.session();
                let upgrade = session.check_upgrade(&request).unwrap();
                session.accept(&upgrade, None, &[], false, out);
            }
            ServerEvent::Text(text) => {
                self.journal.note(index, now, text.as_bytes());
                let (session, out) = conn.session();
                session.text(text, None, out);
            }
            ServerEvent::Closed { .. } | ServerEvent::Failed(_) => conn.close(),
            _ => {}
        }
    }

    fn closed(&mut self, _: &mut Conn<'_, D, Self>, _: CloseReason) -> AfterClose {
        AfterClose::Free
    }
}

pub(crate) fn server_addr() -> SocketAddr {
    "127.0.0.1:4000".parse().unwrap()
}
