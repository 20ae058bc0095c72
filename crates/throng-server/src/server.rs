//! A server: its cores, and the thread-safe handle that steers them.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use throng_driver::{
    Clock, CoreId, Cores, CoresOptions, EpollDriver, Errno, MailboxSender, cores, fdtable, process,
};
use throng_engine::{Core, CoreLimits};
use throng_report::{Merge, RunEvent, RunEventKind, ServerSnapshot};

use crate::core_message::{CoreMessage, CoreReport, ListenReport};
use crate::options::Size;
use crate::{AcceptTopology, Handler, ServerApp, ServerConfig, ServerHandle, ServerOptions};

/// A server that runs. All methods may be called from any thread that shares the fd table of the one that started it;
/// that is every thread but another engine's cores, where they panic if those have fd tables of their own. Dropping it stops
/// it.
pub struct Server<H: Handler> {
    post: MailboxSender<CoreMessage<H::Message>>,
    cores: Mutex<Option<Cores<CoreMessage<H::Message>>>>,
    accept: AcceptTopology,
    size: Size,
    addr: SocketAddr,
    private_fds: bool,
    /// Connections that were asked to be let wait for accept; the kernel may allow fewer.
    backlog: u32,
    epoch: throng_base::Instant,
    events: Mutex<Receiver<RunEvent>>,
    to_events: SyncSender<RunEvent>,
    is_suspended: AtomicBool,
    /// What each core said last.
    last: Mutex<Vec<CoreReport>>,
    /// Held while the cores are told to listen or not to, so that two such tellings do not mix.
    steering: Mutex<()>,
    /// Resident memory before the first connection.
    rss_bytes_at_start: u64,
}

impl<H: Handler> Server<H> {
    /// Starts the cores, each with the handler that `make` makes for it, and listens. `make` is called on
    /// the core's thread: with [`ServerOptions::private_fds`] neither it nor the handler may use an fd
    /// that it captured.
    ///
    /// # Errors
    /// The cores could not be set up, or the address could not be listened on. Nothing runs then.
    ///
    /// # Panics
    /// When `make` does, on the core's thread.
    pub fn start(
        options: ServerOptions,
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
        let run = move |driver: EpollDriver<CoreMessage<H::Message>>| {
            let handler = make(throng_driver::Driver::core(&driver));
            let app = ServerApp::new(Arc::clone(&config), handler);
            Core::new(driver, app, limits).run();
        };
        let cores = cores::spawn(&cores_options, run).map_err(StartError::Cores)?;
        let mut server = Self {
            post: cores.sender(),
            private_fds: cores.private_fds(),
            cores: Mutex::new(Some(cores)),
            accept: options.accept,
            backlog: options.backlog,
            size,
            addr: options.listen,
            epoch,
            events: Mutex::new(events),
            to_events,
            is_suspended: AtomicBool::new(false),
            last: Mutex::new(vec![CoreReport::default(); size.cores]),
            steering: Mutex::new(()),
            rss_bytes_at_start: 0,
        };
        // Once every core has answered, all of them have their tables and buffers.
        let silent = server.collect().1;
        let has_ended = silent > 0 && lock(&server.cores).as_ref().is_some_and(Cores::any_ended);
        assert!(!has_ended, "a handler could not be made");
        server.rss_bytes_at_start = process::rss_bytes();
        // On an error the server is dropped, which stops the cores.
        server.addr = server.listen()?;
        Ok(server)
    }

    /// Where it listens; where it listened, while it is suspended.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// How many cores it has.
    pub fn cores(&self) -> usize {
        self.size.cores
    }

    /// Connections that it can have at a time.
    pub fn connections_max(&self) -> usize {
        self.size.connections_max
    }

    /// Whether every core has an fd table of its own.
    pub fn private_fds(&self) -> bool {
        self.private_fds
    }

    /// A handle by which other threads reach connections.
    pub fn sender(&self) -> ServerHandle<H> {
        ServerHandle::new(self.post.clone())
    }

    /// Stops accepting and closes the listening sockets: what has connected already is accepted first, what connects
    /// later is refused, and the connections that are open go on. What has connected beyond `connections_max`, or in
    /// [`Accept::Dispatch`] has not been accepted yet, is reset. Waits for at most 5 s for the cores.
    pub fn suspend(&self) {
        let _steering = lock(&self.steering);
        self.is_suspended.store(true, SeqCst);
        let (reply, answers) = channel();
        self.post.send_to_all(|_| CoreMessage::suspend(reply.clone()));
        drop(reply);
        let _: Vec<CoreId> = answers_until(&answers, self.size.cores, STEERING_MAX);
    }

    /// Listens and accepts again, on the same address and port.
    ///
    /// # Errors
    /// The port was taken meanwhile, say. The server stays suspended.
    pub fn resume(&self) -> Result<(), StartError> {
        let _steering = lock(&self.steering);
        if self.is_suspended.load(SeqCst) {
            self.listen()?;
            self.is_suspended.store(false, SeqCst);
        }
        Ok(())
    }

    /// Suspends, tells all connections ([`Handler::draining`]), waits for them to end, and closes those that have not
    /// after `timeout`. True when all ended by themselves.
    pub fn drain(&self, timeout: Duration) -> bool {
        self.suspend();
        let open = self.open();
        let at_ms = (Clock.now() - self.epoch).as_millis() as u64;
        let _ = self.to_events.try_send(RunEvent::new(at_ms, RunEventKind::Draining { open }));
        self.post.send_to_all(|_| CoreMessage::drain());
        let ended = wait_until(timeout, || self.is_empty());
        if !ended {
            self.post.send_to_all(|_| CoreMessage::close_all());
            wait_until(CLOSE_MAX, || self.is_empty());
        }
        ended
    }

    /// Whether every permit is back. Connections on their way from one core to another have one, too, and are
    /// counted by no core.
    fn is_empty(&self) -> bool {
        lock(&self.cores).as_ref().is_none_or(|cores| cores.permits().in_use() == 0)
    }

    /// Ends the cores and, with them, all connections, at once; [`Handler::close`] is not called. False when a core had
    /// ended by itself, which is a defect.
    pub fn stop(&self) -> bool {
        let Some(mut cores) = lock(&self.cores).take() else { return true };
        self.post.send_to_all(|_| CoreMessage::stop());
        cores.join()
    }

    /// Connections that are open on each core.
    pub fn counts(&self) -> Vec<u64> {
        self.collect().0.iter().map(|report| report.server.open).collect()
    }

    /// Connections that are open.
    pub fn open(&self) -> u64 {
        self.counts().iter().sum()
    }

    /// Waits until the number of open connections is as asked for. False when it was not within `timeout`.
    pub fn wait_for_connections(&self, is: CountCondition, n: u64, timeout: Duration) -> bool {
        wait_until(timeout, || is.holds(self.open(), n))
    }

    /// What was counted. A core that does not answer within 200 ms is counted in
    /// `cores_silent`, and reported as it was last.
    pub fn snapshot(&self) -> ServerSnapshot {
        let (mut reports, cores_silent) = self.collect();
        let mut snapshot = ServerSnapshot {
            listen: self.addr.to_string(),
            accept: self.accept.name().to_owned(),
            handler: H::NAME.to_owned(),
            cores: self.size.cores as u64,
            cores_silent,
            connections_max: self.size.connections_max as u64,
            backlog: u64::from(self.backlog),
            process: process::own_use(),
            ..ServerSnapshot::default()
        };
        snapshot.process.rss_bytes_at_start = self.rss_bytes_at_start;
        for report in reports.iter_mut() {
            snapshot.counters.merge(&report.server);
            snapshot.core.merge(&report.turns);
            snapshot.open_per_core.push(report.server.open);
            for (errno, count) in &report.accept_errors {
                snapshot.accept_errors.add(errno.name(), *count);
            }
            report.turns.turn_us_most = 0;
            report.server.registry_mailbox_most = 0;
        }
        snapshot
    }

    /// What has happened since the last call.
    pub fn events(&self) -> Vec<RunEvent> {
        lock(&self.events).try_iter().collect()
    }

    /// What each core says, or said last, and how many did not answer.
    fn collect(&self) -> (MutexGuard<'_, Vec<CoreReport>>, u64) {
        let mut last = lock(&self.last);
        let (reply, answers) = channel();
        if lock(&self.cores).is_some() {
            self.post.send_to_all(|_| CoreMessage::collect(reply.clone()));
        }
        drop(reply);
        let mut silent = self.size.cores as u64;
        for mut report in answers_until(&answers, self.size.cores, ANSWER_MAX) {
            silent -= 1;
            let said = &mut last[report.core];
            // A core forgets its maxima as it tells them; until a snapshot has taken them they are kept here, whoever
            // counts connections meanwhile.
            keep_most(&mut report.turns.turn_us_most, said.turns.turn_us_most);
            keep_most(&mut report.server.registry_mailbox_most, said.server.registry_mailbox_most);
            *said = report;
        }
        (last, silent)
    }

    fn listen(&self) -> Result<SocketAddr, StartError> {
        let listening = match self.accept {
            AcceptTopology::Reuseport => self.listen_each(),
            AcceptTopology::Shared | AcceptTopology::Dispatch => self.listen_once(),
        };
        listening.map_err(|errno| {
            self.post.send_to_all(|_| CoreMessage::suspend(channel().0));
            StartError::Listen(self.addr, errno)
        })
    }

    /// Every core has its listening socket; the first one finds the port for all.
    fn listen_each(&self) -> Result<SocketAddr, Errno> {
        let (reply, answers) = channel();
        self.post.send_control(0, CoreMessage::listen(self.addr, reply.clone()));
        let addr = listening(&answers, 1)?.unwrap_or(self.addr);
        for core in 1..self.size.cores {
            self.post.send_control(core, CoreMessage::listen(addr, reply.clone()));
        }
        listening(&answers, self.size.cores - 1)?;
        Ok(addr)
    }

    /// Core 0 opens the one listening socket and shares it; the others are told before, so that none takes
    /// it for one that came too late.
    fn listen_once(&self) -> Result<SocketAddr, Errno> {
        let (reply, answers) = channel();
        let others = self.size.cores - 1;
        (1..=others)
            .for_each(|core| self.post.send_control(core, CoreMessage::expect(reply.clone())));
        listening(&answers, others)?;
        self.post.send_control(0, CoreMessage::listen_for_all(self.addr, reply));
        Ok(listening(&answers, others + 1)?.unwrap_or(self.addr))
    }
}

impl<H: Handler> Drop for Server<H> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// How a number of connections is to compare with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountCondition {
    /// `==`
    Exactly,
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
}

impl CountCondition {
    const fn holds(self, open: u64, n: u64) -> bool {
        match self {
            Self::Exactly => open == n,
            Self::AtLeast => open >= n,
            Self::AtMost => open <= n,
        }
    }
}

/// Why a server does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// The threads could not be set up: fds or memory are short.
    Cores(Errno),
    /// The address cannot be listened on.
    Listen(SocketAddr, Errno),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cores(errno) => write!(f, "cannot start the server's cores: {errno}"),
            Self::Listen(addr, errno) => write!(f, "cannot listen on {addr}: {errno}"),
        }
    }
}

impl std::error::Error for StartError {}

/// Asks again and again whether something is so; false when it was not within `timeout`.
fn wait_until(timeout: Duration, is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    loop {
        if is_so() {
            return true;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(left.min(POLL));
    }
}

/// The answers that come in time.
fn answers_until<T>(answers: &Receiver<T>, count: usize, timeout: Duration) -> Vec<T> {
    let deadline = Instant::now() + timeout;
    let left = || deadline.saturating_duration_since(Instant::now());
    (0..count).map_while(|_| answers.recv_timeout(left()).ok()).collect()
}

/// Where `count` cores say that they listen, or what the first says that cannot.
fn listening(answers: &Receiver<ListenReport>, count: usize) -> Result<Option<SocketAddr>, Errno> {
    let deadline = Instant::now() + STEERING_MAX;
    let mut addr = None;
    for _ in 0..count {
        let left = deadline.saturating_duration_since(Instant::now());
        let (_, listening) = answers.recv_timeout(left).map_err(|_| Errno::TIMED_OUT)?;
        addr = addr.or(listening?);
    }
    Ok(addr)
}

fn keep_most(most: &mut u64, before: u64) {
    *most = before.max(*most);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the locks guard is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a snapshot waits for a core.
const ANSWER_MAX: Duration = Duration::from_millis(200);
/// How long suspend and resume wait for the cores.
const STEERING_MAX: Duration = Duration::from_secs(5);
/// How long a drain waits for the connections that it closed itself.
const CLOSE_MAX: Duration = Duration::from_secs(6);
/// How often what is waited for is asked for.
const POLL: Duration = Duration::from_millis(10);
/// Events that wait to be read; later ones are lost.
const EVENTS_MAX: usize = 1_024;
