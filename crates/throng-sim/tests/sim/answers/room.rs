//! WebSocket server that sends the answers of a test at the times of the test.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{ListenSpec, Listeners, SocketOptions, Sockets};
use throng_engine::{AfterClose, App, CloseReason, Conn, CoreContext};
use throng_measure::Histogram;
use throng_proto::websocket::{
    Opcode, Scratch, ServerEvent, WebSocketLimits, WebSocketServer, encode_fragment,
};
use throng_sim::{SimDriver, SimFd};

/// Reply of the server to a text.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) after: Duration,
    pub(crate) to: To,
    pub(crate) text: String,
}

/// Receivers of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    Sender,
    Everyone,
}

/// Function from a text, and the number of texts before it, to the replies.
pub(crate) type Script = Box<dyn FnMut(&str, usize) -> Vec<Reply>>;

pub(crate) struct Room {
    script: Script,
    heard: usize,
    listener: Option<SimFd>,
    members: Vec<Key>,
    /// Stall of the whole server at each message of this number.
    stall: Option<(usize, Duration)>,
    stalled_until: Instant,
    /// Replies that begin so are fragments of a message that never ends.
    fragments: Option<&'static str>,
    /// Members that have got the first fragment.
    begun: Vec<Key>,
    /// Times from each message to the replies to it.
    pub(crate) service: Rc<RefCell<Histogram>>,
    /// Replies to send, by their time and a number that keeps the order.
    queue: BTreeMap<(Instant, usize), (Option<Key>, String)>,
}

impl Room {
    pub(crate) fn new(script: impl FnMut(&str, usize) -> Vec<Reply> + 'static) -> Self {
        Self {
            script: Box::new(script),
            heard: 0,
            listener: None,
            members: Vec::new(),
            stall: None,
            stalled_until: Instant::ZERO,
            fragments: None,
            begun: Vec::new(),
            service: Rc::default(),
            queue: BTreeMap::new(),
        }
    }

    /// Lets the server do nothing for `time` at every message whose number `every` divides.
    pub(crate) fn stalling(self, every: usize, time: Duration) -> Self {
        Self { stall: Some((every, time)), ..self }
    }

    /// Sends replies that begin so as fragments of a message that never ends.
    pub(crate) fn with_fragments(self, begin: &'static str) -> Self {
        Self { fragments: Some(begin), ..self }
    }

    fn schedule_replies(&mut self, now: Instant, from: Key, text: &str) {
        if let Some((every, time)) = self.stall
            && self.heard.is_multiple_of(every)
        {
            self.stalled_until = now.max(self.stalled_until) + time;
        }
        for reply in (self.script)(text, self.heard) {
            let to = (reply.to == To::Sender).then_some(from);
            let at = now.max(self.stalled_until) + reply.after;
            self.service.borrow_mut().record_us(at.micros_since(now));
            self.queue.insert((at, self.queue.len() + 1_000 * self.heard), (to, reply.text));
        }
        self.heard += 1;
    }
}

impl App<SimDriver<()>> for Room {
    type Session = WebSocketServer;
    type State = ();

    fn scratch(&self) -> Scratch {
        Scratch::new(WebSocketLimits::default(), 1)
    }

    fn started(&mut self, cx: &mut CoreContext<SimDriver<()>, Self>) {
        let options = SocketOptions::default();
        let spec = ListenSpec { addr: room_addr(), backlog: 1_000, reuseport: false, options };
        let listener = cx.driver().listen(&spec).unwrap();
        cx.driver().watch(&listener, 0).unwrap();
        self.listener = Some(listener);
    }

    fn acceptable(&mut self, cx: &mut CoreContext<SimDriver<()>, Self>, _number: u32) {
        while let Ok(fd) = cx.driver().accept(self.listener.as_ref().unwrap()) {
            let session = WebSocketServer::new(cx.now(), &WebSocketLimits::default());
            assert!(cx.adopt(fd, session, ()).is_ok());
        }
    }

    fn due(&self) -> Instant {
        self.queue.first_key_value().map_or(Instant::FAR, |((at, _), _)| *at)
    }

    fn run_due(&mut self, cx: &mut CoreContext<SimDriver<()>, Self>) {
        while self.due() <= cx.driver().now()
            && let Some((_, (to, text))) = self.queue.pop_first()
        {
            let is_fragment = self.fragments.is_some_and(|begin| text.starts_with(begin));
            for key in self.members.iter().filter(|key| to.is_none_or(|to| to == **key)) {
                let is_first = is_fragment && !self.begun.contains(key);
                self.begun.extend(is_first.then_some(*key));
                cx.with(*key, |conn| {
                    let (session, out) = conn.session();
                    match is_fragment {
                        true => {
                            let opcode = is_first.then_some(Opcode::Text);
                            encode_fragment(opcode, false, text.as_bytes(), out);
                        }
                        false => session.text(&text, None, out),
                    }
                });
            }
        }
    }

    fn opened(&mut self, _conn: &mut Conn<'_, SimDriver<()>, Self>) {}

    fn event(&mut self, conn: &mut Conn<'_, SimDriver<()>, Self>, event: ServerEvent<'_>) {
        match event {
            ServerEvent::Request(request) => {
                let (session, out) = conn.session();
                let upgrade = session.check_upgrade(&request).unwrap();
                session.accept(&upgrade, None, &[], false, out);
                self.members.push(conn.key());
            }
            ServerEvent::Text(text) => {
                let (now, key) = (conn.now(), conn.key());
                self.schedule_replies(now, key, text);
            }
            ServerEvent::Closed { .. } | ServerEvent::Failed(_) => {
                let key = conn.key();
                self.members.retain(|member| *member != key);
                conn.close();
            }
            _ => {}
        }
    }

    fn closed(&mut self, conn: &mut Conn<'_, SimDriver<()>, Self>, _: CloseReason) -> AfterClose {
        let index = conn.key().index();
        self.members.retain(|member| member.index() != index);
        AfterClose::Free
    }
}

pub(crate) fn room_addr() -> SocketAddr {
    "127.0.0.1:7900".parse().unwrap()
}
