//! A running server: its cores, and the thread-safe methods that control it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use throng_bus::BusError;
use throng_driver::{
    Clock, CoreId, CoreLink, Cores, CoresOptions, Driver, Epoll, EpollDriver, Errno, MailboxSender,
    cores, fdtable, process,
};
use throng_engine::{Core, CoreLimits};
use throng_measure::{Merge, RunEvent, RunEventKind, ServerSnapshot};
use throng_tls::{TlsConfigError, TlsServerOptions};

use crate::core_message::{CoreMessage, CoreReport, ListenReport};
use crate::events::EventSink;
use crate::node_port::NodePort;
use crate::options::Size;
use crate::server::inspect::Inspector;
use crate::shared_topics::{NodeStart, RunningNode};
use crate::{
    AcceptTopology, Handler, ServerApp, ServerConfig, ServerHandle, ServerOptions, SharedHandler,
    SharedTopics, tls,
};

mod inspect;
mod reload;

pub use reload::TlsReloadError;

/// A running server. All methods may be called on any thread that shares the fd table of the thread
/// that started it: on every thread except cores of another engine with fd tables of their own,
/// where the methods panic. Dropping the server stops it.
pub struct RunningServer<H: Handler> {
    mailboxes: MailboxSender<CoreMessage<H::Message>>,
    cores: Mutex<Option<Cores<CoreMessage<H::Message>>>>,
    accept: AcceptTopology,
    size: Size,
    addr: SocketAddr,
    private_fds: bool,
    /// The requested length of the accept queue; the kernel may allow less.
    backlog: u32,
    epoch: throng_base::Instant,
    events: Mutex<Receiver<RunEvent>>,
    event_sender: SyncSender<RunEvent>,
    is_suspended: AtomicBool,
    /// The last report of each core.
    last_reports: Mutex<Vec<CoreReport>>,
    /// Held while the cores receive the order to listen or not to, so that two orders do not mix.
    steering: Mutex<()>,
    /// Options of the handshakes that begin now. Held while the cores receive others.
    tls: Option<Mutex<TlsServerOptions>>,
    /// Resident memory before the first connection.
    rss_bytes_at_start: u64,
    inspector: Inspector,
    /// The node among those that share topics.
    node: Option<RunningNode>,
}

impl<H: Handler> RunningServer<H> {
    /// Starts the cores, each with the handler that `make` makes for it, and listens. `make` is
    /// called on the core's thread: with [`ServerOptions::private_fds`] neither it nor the handler
    /// may use an fd that it captured.
    ///
    /// # Errors
    /// The cores could not be set up, a certificate is wrong, or the server cannot listen on the
    /// address. Then nothing runs.
    ///
    /// # Panics
    /// If `make` panics, on the core's thread.
    pub fn start(
        options: ServerOptions,
        make: impl Fn(CoreId) -> H + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        Self::launch(options, None, make)
    }

    /// Starts the server, whose cores may speak to other nodes through `node`.
    fn launch(
        options: ServerOptions,
        node: Option<Arc<NodePort>>,
        make: impl Fn(CoreId) -> H + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        let private_fds = options.private_fds && fdtable::can_be_private().is_ok();
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let fds = fdtable::limit_of_a_table(private_fds);
        let size = Size::of(&options, cpus, fds, private_fds);
        let (to_events, events) = sync_channel(EVENTS_MAX);
        let epoch = Clock.now();
        let config = Arc::new(ServerConfig {
            accept: options.accept,
            backlog: options.backlog,
            sockets: options.socket_options(),
            idle_timeout: options.idle_timeout,
            connections_max: size.connections_max,
            limited_by_fds: size.limited_by_fds,
            events: Some(to_events.clone()),
            epoch,
        });
        let limits = CoreLimits {
            pending_bytes_max: options.pending_bytes_max,
            drain_timeout: options.close_timeout,
            ..CoreLimits::default()
        };
        let cores_options = CoresOptions {
            name: "server",
            cores: size.cores,
            permits: size.connections_max,
            mailbox_max: options.mailbox_max,
            private_fds,
        };
        let transport = options.tls.as_ref().map(tls::transports).transpose()?;
        let run = move |driver: EpollDriver<CoreMessage<H::Message>>| {
            let handler = make(driver.link().core());
            let mut app = ServerApp::new(Arc::clone(&config), handler);
            if let Some(node) = &node {
                app.share_topics(Arc::clone(node));
            }
            let number = driver.link().core();
            let mut core = Core::new(driver, app, limits);
            if let Some(transport) = &transport {
                core.set_transport(transport.make(number));
            }
            core.run();
        };
        let cores = cores::spawn(&cores_options, Epoll, run).map_err(StartError::Cores)?;
        let mut server = Self {
            mailboxes: cores.sender(),
            private_fds: cores.private_fds(),
            cores: Mutex::new(Some(cores)),
            accept: options.accept,
            backlog: options.backlog,
            size,
            addr: options.listen,
            epoch,
            events: Mutex::new(events),
            event_sender: to_events,
            is_suspended: AtomicBool::new(false),
            last_reports: Mutex::new(vec![CoreReport::default(); size.cores]),
            steering: Mutex::new(()),
            tls: options.tls.map(Mutex::new),
            rss_bytes_at_start: 0,
            inspector: Inspector::new(size.cores),
            node: None,
        };
        // Once every core has answered, all of them have allocated their tables and buffers.
        let silent = server.collect().1;
        let has_ended = silent > 0 && lock(&server.cores).as_ref().is_some_and(Cores::any_ended);
        assert!(!has_ended, "a handler could not be made");
        server.rss_bytes_at_start = process::rss_bytes();
        // On an error the server is dropped, which stops the cores.
        server.addr = server.listen()?;
        Ok(server)
    }

    /// Returns the address the server listens on. While it is suspended, returns its last address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the number of cores.
    pub fn cores(&self) -> usize {
        self.size.cores
    }

    /// Returns the maximum of open connections.
    pub fn connections_max(&self) -> usize {
        self.size.connections_max
    }

    /// Reports whether every core has an fd table of its own.
    pub fn private_fds(&self) -> bool {
        self.private_fds
    }

    /// Returns a handle by which other threads reach connections.
    pub fn handle(&self) -> ServerHandle<H> {
        ServerHandle::new(self.mailboxes.clone())
    }

    /// Stops accepting and closes the listening sockets. Established connections in the accept
    /// queue are accepted first, later connects are refused, and open connections continue.
    /// Connections beyond `connections_max` are reset, and in [`AcceptTopology::Dispatch`] so are
    /// those not yet accepted. Waits for the cores for at most 5 s.
    pub fn suspend(&self) {
        let _steering = lock(&self.steering);
        self.is_suspended.store(true, SeqCst);
        let (reply, answers) = channel();
        self.mailboxes.send_to_all(|_| CoreMessage::suspend(reply.clone()));
        drop(reply);
        let _: Vec<CoreId> = answers_until(&answers, self.size.cores, STEERING_MAX);
    }

    /// Listens and accepts again, on the same address and port.
    ///
    /// # Errors
    /// The server cannot listen: another process has taken the port, say. It stays suspended.
    pub fn resume(&self) -> Result<(), StartError> {
        let _steering = lock(&self.steering);
        if self.is_suspended.load(SeqCst) {
            self.listen()?;
            self.is_suspended.store(false, SeqCst);
            self.node.iter().for_each(|node| node.set_draining(false));
        }
        Ok(())
    }

    /// Suspends the server, calls [`Handler::draining`] for all connections, waits for them to end,
    /// and after `timeout` closes the rest. Returns true if none had to be closed. A node that
    /// shares topics tells its clients where to go: see
    /// [`Connection::other_nodes`](crate::Connection::other_nodes).
    pub fn drain(&self, timeout: Duration) -> bool {
        self.suspend();
        let open = self.open();
        let at_ms = (Clock.now() - self.epoch).as_millis() as u64;
        let _ = self.event_sender.try_send(RunEvent::new(at_ms, RunEventKind::Draining { open }));
        let mut other_nodes = Arc::default();
        if let Some(node) = &self.node {
            node.set_draining(true);
            other_nodes = node.addresses();
        }
        self.mailboxes.send_to_all(|_| CoreMessage::drain_to(Arc::clone(&other_nodes)));
        let ended = poll_until(timeout, || self.is_empty());
        if !ended {
            self.mailboxes.send_to_all(|_| CoreMessage::close_all());
            poll_until(CLOSE_MAX, || self.is_empty());
        }
        ended
    }

    /// Reports whether every permit has been returned. A connection in flight from one core to
    /// another holds a permit, and no core counts it.
    fn is_empty(&self) -> bool {
        lock(&self.cores).as_ref().is_none_or(|cores| cores.permits().in_use() == 0)
    }

    /// Stops the cores and closes all connections at once; [`Handler::close`] is not called.
    /// Returns false if a core had already ended, which is a defect.
    pub fn stop(&self) -> bool {
        self.node.iter().for_each(RunningNode::stop);
        let Some(mut cores) = lock(&self.cores).take() else { return true };
        self.mailboxes.send_to_all(|_| CoreMessage::stop());
        cores.join()
    }

    /// Returns the number of open connections of each core.
    pub fn counts(&self) -> Vec<u64> {
        self.collect().0.iter().map(|report| report.server.open).collect()
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> u64 {
        self.counts().iter().sum()
    }

    /// Waits until `is_reached` returns true for the number of open connections. Returns false if
    /// that takes longer than `timeout`.
    pub fn wait_until(&self, is_reached: impl Fn(u64) -> bool, timeout: Duration) -> bool {
        poll_until(timeout, || is_reached(self.open()))
    }

    /// Returns the counters. A core that does not answer within 200 ms is counted in
    /// `cores_silent`, and its last report is used.
    pub fn snapshot(&self) -> ServerSnapshot {
        // Before the cores are asked: the requests go into these mailboxes too.
        let mailbox_per_core = self.mailboxes.waiting();
        let (mut reports, cores_silent) = self.collect();
        let snapshot = self.sum(&reports, cores_silent, mailbox_per_core);
        for report in reports.iter_mut() {
            report.turns.turn_us_most = 0;
            report.server.registry_mailbox_most = 0;
        }
        snapshot
    }

    /// Returns the counters like [`Self::snapshot`], and leaves the maxima to the next snapshot: a
    /// second reader must not take what the recorder of a run needs.
    pub fn peek(&self) -> ServerSnapshot {
        let mailbox_per_core = self.mailboxes.waiting();
        let (reports, cores_silent) = self.collect();
        self.sum(&reports, cores_silent, mailbox_per_core)
    }

    fn sum(
        &self,
        reports: &[CoreReport],
        cores_silent: u64,
        mailbox_per_core: Vec<u64>,
    ) -> ServerSnapshot {
        let mut snapshot = ServerSnapshot {
            listen: self.addr.to_string(),
            accept: self.accept.name().to_owned(),
            handler: H::NAME.to_owned(),
            cores: self.size.cores as u64,
            cores_silent,
            connections_max: self.size.connections_max as u64,
            backlog: u64::from(self.backlog),
            process: process::own_use(),
            cpu_us_per_core: lock(&self.cores).as_ref().map(Cores::cpu_us).unwrap_or_default(),
            mailbox_per_core,
            ..ServerSnapshot::default()
        };
        snapshot.process.rss_bytes_at_start = self.rss_bytes_at_start;
        self.node.iter().for_each(|node| node.report(&mut snapshot.counters));
        for report in reports {
            snapshot.counters.merge(&report.server);
            snapshot.core.merge(&report.turns);
            snapshot.open_per_core.push(report.server.open);
            snapshot.tls_errors.merge(&report.transport_errors);
            for (errno, count) in &report.accept_errors {
                snapshot.accept_errors.add(errno.name(), *count);
            }
        }
        snapshot
    }

    /// Returns the events since the last call.
    pub fn events(&self) -> Vec<RunEvent> {
        lock(&self.events).try_iter().collect()
    }

    /// Requests a report from each core. Returns the last report of each, and the number of cores
    /// that did not answer.
    fn collect(&self) -> (MutexGuard<'_, Vec<CoreReport>>, u64) {
        let mut last = lock(&self.last_reports);
        let (reply, answers) = channel();
        if lock(&self.cores).is_some() {
            self.mailboxes.send_to_all(|_| CoreMessage::collect(reply.clone()));
        }
        drop(reply);
        let mut silent = self.size.cores as u64;
        for mut report in answers_until(&answers, self.size.cores, ANSWER_MAX) {
            silent -= 1;
            let last = &mut last[report.core];
            // A core resets its maxima when it reports them. They are kept here until a snapshot
            // has taken them, in spite of other calls meanwhile.
            keep_maximum(&mut report.turns.turn_us_most, last.turns.turn_us_most);
            keep_maximum(
                &mut report.server.registry_mailbox_most,
                last.server.registry_mailbox_most,
            );
            *last = report;
        }
        (last, silent)
    }

    fn listen(&self) -> Result<SocketAddr, StartError> {
        let listening = match self.accept {
            AcceptTopology::Reuseport => self.listen_each(),
            AcceptTopology::Shared | AcceptTopology::Dispatch => self.listen_once(),
        };
        listening.map_err(|errno| {
            self.mailboxes.send_to_all(|_| CoreMessage::suspend(channel().0));
            StartError::Listen(self.addr, errno)
        })
    }

    /// Opens a listening socket on every core. Core 0 finds the port for all.
    fn listen_each(&self) -> Result<SocketAddr, Errno> {
        let (reply, answers) = channel();
        self.mailboxes.send_control(0, CoreMessage::listen(self.addr, reply.clone()));
        let addr = listen_reports(&answers, 1)?.unwrap_or(self.addr);
        for core in 1..self.size.cores {
            self.mailboxes.send_control(core, CoreMessage::listen(addr, reply.clone()));
        }
        listen_reports(&answers, self.size.cores - 1)?;
        Ok(addr)
    }

    /// Opens one listening socket on core 0, which shares it. The other cores receive the order to
    /// expect it first, so that none of them takes it for a late one.
    fn listen_once(&self) -> Result<SocketAddr, Errno> {
        let (reply, answers) = channel();
        let others = self.size.cores - 1;
        (1..=others).for_each(|core| {
            self.mailboxes.send_control(core, CoreMessage::expect_listener(reply.clone()))
        });
        listen_reports(&answers, others)?;
        self.mailboxes.send_control(0, CoreMessage::listen_for_all(self.addr, reply));
        Ok(listen_reports(&answers, others + 1)?.unwrap_or(self.addr))
    }
}

impl<H: SharedHandler> RunningServer<H> {
    /// Starts a server like [`Self::start`], which shares its topics with other nodes: what a
    /// connection of one of them publishes reaches the subscribers on all of them. Two threads
    /// beside the cores speak to the bus.
    ///
    /// # Errors
    /// As [`Self::start`], and if the bus cannot be reached or a name is not one.
    pub fn start_shared(
        options: ServerOptions,
        shared: SharedTopics,
        make: impl Fn(CoreId) -> H + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        let node = NodeStart::new(shared).map_err(StartError::Bus)?;
        let mut server = Self::launch(options, Some(node.port()), make)?;
        let address = (!server.addr.ip().is_unspecified()).then(|| server.addr.to_string());
        let events = EventSink::to(server.event_sender.clone(), server.epoch);
        let started = node.spawn::<H>(address, server.mailboxes.clone(), events);
        let errno = |error: std::io::Error| Errno(error.raw_os_error().unwrap_or_default());
        server.node = Some(started.map_err(|error| StartError::Cores(errno(error)))?);
        Ok(server)
    }
}

impl<H: Handler> Drop for RunningServer<H> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The reason why a server did not start or resume.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The threads could not be set up: not enough fds or memory.
    #[error("cannot start the server's cores: {0}")]
    Cores(Errno),
    /// The server cannot listen on the address.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, Errno),
    /// A certificate, a key or an option of TLS is wrong.
    #[error("{0}")]
    Tls(#[from] TlsConfigError),
    /// The bus refuses this node.
    #[error("cannot share topics: {0}")]
    Bus(BusError),
}

/// Polls `is_true` until it returns true. Returns false if that takes longer than `timeout`.
fn poll_until(timeout: Duration, is_true: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    loop {
        if is_true() {
            return true;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(left.min(POLL));
    }
}

/// Receives up to `count` answers until `timeout`.
fn answers_until<T>(answers: &Receiver<T>, count: usize, timeout: Duration) -> Vec<T> {
    let deadline = Instant::now() + timeout;
    let left = || deadline.saturating_duration_since(Instant::now());
    (0..count).map_while(|_| answers.recv_timeout(left()).ok()).collect()
}

/// Receives the reports of `count` cores. Returns the first address, or the first error.
fn listen_reports(
    answers: &Receiver<ListenReport>,
    count: usize,
) -> Result<Option<SocketAddr>, Errno> {
    let deadline = Instant::now() + STEERING_MAX;
    let mut addr = None;
    for _ in 0..count {
        let left = deadline.saturating_duration_since(Instant::now());
        let (_, listening) = answers.recv_timeout(left).map_err(|_| Errno::TIMED_OUT)?;
        addr = addr.or(listening?);
    }
    Ok(addr)
}

/// Raises `most` to `before` if that is greater.
fn keep_maximum(most: &mut u64, before: u64) {
    *most = before.max(*most);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The guarded values are consistent between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time that a snapshot waits for a core.
const ANSWER_MAX: Duration = Duration::from_millis(200);
/// The time that suspend and resume wait for the cores.
const STEERING_MAX: Duration = Duration::from_secs(5);
/// The time that a drain waits for the connections that it closed itself.
const CLOSE_MAX: Duration = Duration::from_secs(6);
/// The interval between two polls.
const POLL: Duration = Duration::from_millis(10);
/// Events that may wait to be read; later ones are lost.
const EVENTS_MAX: usize = 1_024;
