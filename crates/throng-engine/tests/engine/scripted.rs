//! App that runs a test's reactions and records all callbacks.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use throng_base::{Instant, Key};
use throng_driver::{ConnectSpec, ListenSpec, Listeners, SocketOptions, Sockets, SourceAddress};
use throng_engine::{AfterClose, App, CloseReason, Conn, Core, CoreContext, CoreLimits};
use throng_proto::{Raw, Session};
use throng_sim::{FaultyDriver, Sim, SimCores, SimCoresOptions, SimDriver, SimFd};

/// Driver of all tests. Its system calls fail with the faults that the world has when the core is
/// created.
pub(crate) type TestDriver = FaultyDriver<SimDriver<u64>>;

/// Protocol whose events are bytes.
pub(crate) trait ByteSession:
    for<'a> Session<Event<'a> = &'a [u8]> + Default + 'static
{
}

impl<S: for<'a> Session<Event<'a> = &'a [u8]> + Default + 'static> ByteSession for S {}

/// Callback about a connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Callback {
    Opened,
    Event(Vec<u8>),
    Finished,
    Drained,
    Deadline,
    Notified,
    Closed(CloseReason),
}

/// Recorded callback about a connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogEntry {
    pub(crate) at: Instant,
    /// State of the connection or user, which identifies it.
    pub(crate) id: u32,
    pub(crate) key: Key,
    pub(crate) callback: Callback,
}

pub(crate) type Reaction<S, const READS: bool> =
    Box<dyn FnMut(&mut Conn<'_, TestDriver, Scripted<S, READS>>, &Callback)>;
pub(crate) type CoreReaction<S, const READS: bool> =
    Box<dyn FnMut(&mut CoreContext<TestDriver, Scripted<S, READS>>, CoreCallback)>;

/// Callback about the core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CoreCallback {
    Message(u64),
    Woken,
    Due,
    TurnEnded,
}

/// App whose connections are numbers, and which calls a test's reactions.
pub(crate) struct Scripted<S: ByteSession, const READS: bool> {
    pub(crate) log: Vec<LogEntry>,
    pub(crate) core_log: Vec<(Instant, CoreCallback)>,
    pub(crate) after: AfterClose,
    pub(crate) due: Instant,
    times_arrivals: bool,
    /// Number of sockets that could not be adopted.
    pub(crate) refused: u32,
    react: Reaction<S, READS>,
    core_react: CoreReaction<S, READS>,
    listen: Option<SocketAddr>,
    listener: Option<SimFd>,
    next_id: u32,
}

impl<S: ByteSession, const READS: bool> Scripted<S, READS> {
    /// Creates an app without a listener.
    pub(crate) fn new(
        react: impl FnMut(&mut Conn<'_, TestDriver, Self>, &Callback) + 'static,
    ) -> Self {
        Self {
            log: Vec::new(),
            core_log: Vec::new(),
            after: AfterClose::Free,
            due: Instant::FAR,
            times_arrivals: false,
            refused: 0,
            react: Box::new(react),
            core_react: Box::new(|_, _| ()),
            listen: None,
            listener: None,
            next_id: 0,
        }
    }

    /// Adds a listener at the server's address.
    pub(crate) fn with_listener(mut self) -> Self {
        self.listen = Some(server_addr());
        self
    }

    /// Adds a reaction to callbacks about the core.
    pub(crate) fn on_core(
        mut self,
        react: impl FnMut(&mut CoreContext<TestDriver, Self>, CoreCallback) + 'static,
    ) -> Self {
        self.core_react = Box::new(react);
        self
    }

    /// Requests the arrival of all bytes.
    pub(crate) fn timing_arrivals(mut self) -> Self {
        self.times_arrivals = true;
        self
    }

    /// Keeps entries whose socket has closed.
    pub(crate) fn keep_entries(mut self) -> Self {
        self.after = AfterClose::Keep;
        self
    }

    /// Returns the callbacks about one connection.
    pub(crate) fn callbacks_of(&self, id: u32) -> Vec<Callback> {
        self.log.iter().filter(|entry| entry.id == id).map(|entry| entry.callback.clone()).collect()
    }

    /// Returns all callbacks about connections, in order.
    pub(crate) fn callbacks(&self) -> Vec<Callback> {
        self.log.iter().map(|entry| entry.callback.clone()).collect()
    }

    /// Returns the bytes of all events of one connection.
    pub(crate) fn bytes_of(&self, id: u32) -> Vec<u8> {
        let events = self.log.iter().filter(|entry| entry.id == id);
        events
            .filter_map(|entry| match &entry.callback {
                Callback::Event(bytes) => Some(bytes.clone()),
                _ => None,
            })
            .flatten()
            .collect()
    }

    pub(crate) fn count(&self, what: impl Fn(&Callback) -> bool) -> usize {
        self.log.iter().filter(|entry| what(&entry.callback)).count()
    }

    fn record(&mut self, conn: &mut Conn<'_, TestDriver, Self>, callback: Callback) {
        let entry = LogEntry { at: conn.clock(), id: *conn.state(), key: conn.key(), callback };
        let callback = entry.callback.clone();
        self.log.push(entry);
        (self.react)(conn, &callback);
    }

    fn record_core(&mut self, cx: &mut CoreContext<TestDriver, Self>, callback: CoreCallback) {
        if callback != CoreCallback::TurnEnded {
            self.core_log.push((cx.driver().now(), callback));
        }
        (self.core_react)(cx, callback);
    }
}

impl<S: ByteSession, const READS: bool> App<TestDriver> for Scripted<S, READS> {
    type Session = S;
    type State = u32;

    const READS_WHILE_BLOCKED: bool = READS;

    fn wants_arrival(&self, _id: &u32) -> bool {
        self.times_arrivals
    }

    fn started(&mut self, cx: &mut CoreContext<TestDriver, Self>) {
        if let Some(addr) = self.listen {
            let options = SocketOptions::default();
            let spec = ListenSpec { addr, backlog: 1_000, reuseport: true, options };
            let listener = cx.driver().listen(&spec).expect("the address is free");
            cx.driver().watch(&listener, 0).expect("the listener is not watched yet");
            self.listener = Some(listener);
        }
    }

    fn acceptable(&mut self, cx: &mut CoreContext<TestDriver, Self>, _number: u32) {
        let Some(listener) = &self.listener else { return };
        while let Ok(fd) = cx.driver().accept(listener) {
            match cx.adopt(fd, S::default(), self.next_id) {
                Ok(_) => self.next_id += 1,
                Err((fd, _)) => {
                    self.refused += 1;
                    cx.driver().close(fd, Default::default());
                }
            }
        }
    }

    fn woken(&mut self, cx: &mut CoreContext<TestDriver, Self>) {
        self.record_core(cx, CoreCallback::Woken);
    }

    fn message(&mut self, cx: &mut CoreContext<TestDriver, Self>, message: u64) {
        self.record_core(cx, CoreCallback::Message(message));
    }

    fn due(&self) -> Instant {
        self.due
    }

    fn run_due(&mut self, cx: &mut CoreContext<TestDriver, Self>) {
        self.due = Instant::FAR;
        self.record_core(cx, CoreCallback::Due);
    }

    fn turn_ended(&mut self, cx: &mut CoreContext<TestDriver, Self>) {
        self.record_core(cx, CoreCallback::TurnEnded);
    }

    fn opened(&mut self, conn: &mut Conn<'_, TestDriver, Self>) {
        self.record(conn, Callback::Opened);
    }

    fn event(&mut self, conn: &mut Conn<'_, TestDriver, Self>, event: &[u8]) {
        self.record(conn, Callback::Event(event.to_vec()));
    }

    fn finished(&mut self, conn: &mut Conn<'_, TestDriver, Self>) {
        self.record(conn, Callback::Finished);
    }

    fn drained(&mut self, conn: &mut Conn<'_, TestDriver, Self>) {
        self.record(conn, Callback::Drained);
    }

    fn deadline(&mut self, conn: &mut Conn<'_, TestDriver, Self>) {
        self.record(conn, Callback::Deadline);
    }

    fn notified(&mut self, conn: &mut Conn<'_, TestDriver, Self>) {
        self.record(conn, Callback::Notified);
    }

    fn closed(&mut self, conn: &mut Conn<'_, TestDriver, Self>, reason: CloseReason) -> AfterClose {
        self.record(conn, Callback::Closed(reason));
        self.after
    }
}

pub(crate) type Raws<const READS: bool> = Scripted<Raw, READS>;
pub(crate) type RunningCore<S, const READS: bool> =
    Rc<RefCell<Core<TestDriver, Scripted<S, READS>>>>;

/// Starts an app on the only core of a new process.
pub(crate) fn spawn<S: ByteSession, const READS: bool>(
    sim: &mut Sim,
    app: Scripted<S, READS>,
    limits: CoreLimits,
) -> RunningCore<S, READS> {
    let cores = sim.cores(&SimCoresOptions::default());
    spawn_on(sim, &cores, vec![app], limits).remove(0)
}

/// Starts one app on each core of a process.
pub(crate) fn spawn_on<S: ByteSession, const READS: bool>(
    sim: &mut Sim,
    cores: &SimCores<u64>,
    apps: Vec<Scripted<S, READS>>,
    limits: CoreLimits,
) -> Vec<RunningCore<S, READS>> {
    let faults = sim.faults();
    let mut running = Vec::new();
    for (driver, app) in cores.drivers().into_iter().zip(apps) {
        let driver = FaultyDriver::new(driver, faults.clone(), sim.prng());
        running.push(sim.spawn(Core::new(driver, app, limits)));
    }
    running
}

/// Inserts a user into a core's table, and connects it to the server.
pub(crate) fn dial<S: ByteSession, const READS: bool>(
    core: &RunningCore<S, READS>,
    id: u32,
) -> Key {
    let mut core = core.borrow_mut();
    let key = core.cx().insert(S::default(), id);
    core.cx().with(key, |conn| conn.connect(to_server()));
    key
}

pub(crate) fn to_server() -> ConnectSpec {
    ConnectSpec {
        target: server_addr(),
        source: SourceAddress::Any,
        options: SocketOptions::default(),
    }
}

pub(crate) fn server_addr() -> SocketAddr {
    "127.0.0.1:7000".parse().unwrap()
}
