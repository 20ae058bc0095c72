//! The whole server on virtual time, with all faults: limits hold, no connection waits forever, and
//! the counters add up.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use throng_base::Prng;
use throng_base::wheel::TICK;
use throng_driver::{ConnectSpec, SocketOptions, SourceAddress};
use throng_engine::{AfterClose, App, CloseReason, Conn, Core, CoreContext, CoreLimits, Deadline};
use throng_measure::{Merge, ServerCounters};
use throng_proto::Raw;
use throng_server::{
    AcceptTopology, Connection, CoreMessage, DisconnectReason, Handler, ListenReport, ServerApp,
    ServerConfig,
};
use throng_sim::{Faults, FaultyDriver, Sim, SimCores, SimCoresOptions, SimDriver, check_over_all};

type Message = std::convert::Infallible;
type ServerDriver = FaultyDriver<SimDriver<CoreMessage<Message>>>;
type UsersCore = Rc<RefCell<Core<SimDriver<()>, Users>>>;
type ServerCore = Rc<RefCell<Core<ServerDriver, ServerApp<Watcher, ServerDriver>>>>;

const TOPOLOGIES: [AcceptTopology; 3] =
    [AcceptTopology::Reuseport, AcceptTopology::Shared, AcceptTopology::Dispatch];
/// Longer than any run in which no user is stuck.
const PATIENCE: Duration = Duration::from_secs(900);

/// A handler that answers `?` with `ok`, panics at `!`, and counts connections over all cores.
#[derive(Clone, Default)]
struct Watcher {
    open: Rc<Cell<usize>>,
    most: Rc<Cell<usize>>,
    served: Rc<Cell<usize>>,
    /// True to close every connection at once.
    turns_away: Rc<Cell<bool>>,
}

impl Handler for Watcher {
    type Session = Raw;
    type State = ();
    type Message = Message;

    fn open(&mut self, conn: &mut Connection<'_, Self>) {
        if self.turns_away.get() {
            conn.close();
        }
        self.open.set(self.open.get() + 1);
        self.most.set(self.most.get().max(self.open.get()));
    }

    fn event(&mut self, conn: &mut Connection<'_, Self>, bytes: &[u8]) {
        assert_eq!(bytes, b"?", "this is the test's own panic");
        conn.send(b"ok");
        self.served.set(self.served.get() + 1);
    }

    fn close(&mut self, _conn: &mut Connection<'_, Self>, _why: DisconnectReason) {
        self.open.set(self.open.get() - 1);
    }
}

/// Users that connect, send a question, read the answer and close, again and again, until each has
/// been served often enough.
struct Users {
    target: ConnectSpec,
    count: usize,
    rounds: u32,
    /// The chance that a user makes the server's handler panic.
    panics: f64,
    /// True if the user leaves the close to the server.
    stays: bool,
    /// The pause between an answer and the next question of a user that stays.
    talks_every: Option<Duration>,
    prng: Prng,
    served: usize,
}

#[derive(Default)]
struct User {
    rounds_left: u32,
    received: usize,
    /// It has sent `!` and waits for the reset.
    provokes: bool,
}

impl App<SimDriver<()>> for Users {
    type Session = Raw;
    type State = User;

    fn started(&mut self, cx: &mut CoreContext<SimDriver<()>, Self>) {
        for _ in 0..self.count {
            let key = cx.insert(Raw, User { rounds_left: self.rounds, ..User::default() });
            let span = Duration::from_millis(self.prng.below(30));
            cx.with(key, |conn| conn.set_deadline(Deadline::Exact(conn.now() + span)));
        }
    }

    fn deadline(&mut self, conn: &mut Conn<'_, SimDriver<()>, Self>) {
        if conn.is_detached() {
            conn.connect(self.target);
        } else if self.talks_every.is_some() {
            conn.send(b"?");
        } else {
            conn.close();
        }
    }

    fn opened(&mut self, conn: &mut Conn<'_, SimDriver<()>, Self>) {
        let provokes = self.prng.unit() < self.panics;
        *conn.state() = User { received: 0, provokes, ..*conn.state() };
        conn.send(if provokes { b"!" } else { b"?" });
    }

    fn event(&mut self, conn: &mut Conn<'_, SimDriver<()>, Self>, bytes: &[u8]) {
        conn.state().received += bytes.len();
        if let Some(pause) = self.talks_every {
            conn.set_deadline(Deadline::Exact(conn.now() + pause));
        } else if conn.state().received == 2 && !self.stays {
            // It stays open for a while, so that the limits are reached.
            let stay = Duration::from_millis(self.prng.below(40));
            conn.set_deadline(Deadline::Exact(conn.now() + stay));
        }
    }

    fn closed(
        &mut self,
        conn: &mut Conn<'_, SimDriver<()>, Self>,
        reason: CloseReason,
    ) -> AfterClose {
        let was_connected = !matches!(reason, CloseReason::ConnectFailed(_));
        let user = conn.state();
        if was_connected && (user.received == 2 || user.provokes) {
            user.rounds_left -= 1;
            self.served += 1;
        }
        if user.rounds_left == 0 {
            return AfterClose::Free;
        }
        let pause = Duration::from_millis(1 + self.prng.below(20));
        conn.set_deadline(Deadline::Exact(conn.now() + pause));
        AfterClose::Keep
    }
}

/// A server in a simulated world.
struct Simulated {
    cores: SimCores<CoreMessage<Message>>,
    running: Vec<ServerCore>,
    accept: AcceptTopology,
    watcher: Watcher,
}

impl Simulated {
    fn start(
        sim: &mut Sim,
        accept: AcceptTopology,
        options: &SimCoresOptions,
        idle: Option<Duration>,
    ) -> Self {
        let cores = sim.cores(options);
        let config = Arc::new(ServerConfig {
            accept,
            connections_max: options.permits,
            idle_timeout: idle,
            backlog: 1_000,
            ..ServerConfig::default()
        });
        let watcher = Watcher::default();
        let mut running = Vec::new();
        for driver in cores.drivers() {
            let driver = FaultyDriver::new(driver, sim.faults(), sim.prng());
            let app = ServerApp::new(Arc::clone(&config), watcher.clone());
            running.push(sim.spawn(Core::new(driver, app, CoreLimits::default())));
        }
        let server = Self { cores, running, accept, watcher };
        server.listen(sim);
        server
    }

    /// Resumes the server as the control thread does.
    fn listen(&self, sim: &mut Sim) {
        let (reply, answers) = channel::<ListenReport>();
        let others = 1..self.running.len();
        let answered = |sim: &mut Sim, count: usize| {
            let mut left = count;
            let listens = sim.run_until(PATIENCE, |_| {
                left -= answers.try_iter().inspect(|(_, answer)| assert!(answer.is_ok())).count();
                left == 0
            });
            assert!(listens, "the cores listen");
        };
        if self.accept == AcceptTopology::Reuseport {
            self.cores.send_message(0, CoreMessage::listen(addr(), reply.clone()));
            answered(sim, 1);
            others.for_each(|core| {
                self.cores.send_message(core, CoreMessage::listen(addr(), reply.clone()))
            });
            answered(sim, self.running.len() - 1);
        } else {
            others.for_each(|core| {
                self.cores.send_message(core, CoreMessage::expect_listener(reply.clone()))
            });
            answered(sim, self.running.len() - 1);
            self.cores.send_message(0, CoreMessage::listen_for_all(addr(), reply.clone()));
            answered(sim, self.running.len());
        }
    }

    fn suspend(&self, sim: &mut Sim) {
        let (reply, answers) = channel();
        (0..self.running.len())
            .for_each(|core| self.cores.send_message(core, CoreMessage::suspend(reply.clone())));
        let mut left = self.running.len();
        assert!(sim.run_until(PATIENCE, |_| {
            left -= answers.try_iter().count();
            left == 0
        }));
    }

    /// Returns the counters of all cores together.
    fn counters(&self, sim: &mut Sim) -> ServerCounters {
        let (reply, answers) = channel();
        (0..self.running.len())
            .for_each(|core| self.cores.send_message(core, CoreMessage::collect(reply.clone())));
        let (mut sum, mut left) = (ServerCounters::default(), self.running.len());
        assert!(sim.run_until(PATIENCE, |_| {
            for report in answers.try_iter() {
                sum.merge(&report.server);
                left -= 1;
            }
            left == 0
        }));
        sum
    }

    /// Checks that nothing is open, no permit is taken, and every accepted connection has closed.
    fn assert_balanced(&self, sim: &mut Sim) {
        let gone = sim.run_until(PATIENCE, |_| self.cores.permits().in_use() == 0);
        assert!(gone, "{} permits were never given back", self.cores.permits().in_use());
        assert_eq!(self.watcher.open.get(), 0);
        let counters = self.counters(sim);
        assert_eq!((counters.open, counters.accepted), (0, counters.closed));
        assert_eq!(sim.dropped_sockets(), 0, "a socket was dropped, not closed");
    }
}

fn addr() -> SocketAddr {
    "127.0.0.1:7000".parse().unwrap()
}

fn users(sim: &mut Sim, rounds: u32, panics: f64) -> UsersCore {
    let target = ConnectSpec {
        target: addr(),
        source: SourceAddress::Any,
        options: SocketOptions::default(),
    };
    let prng = sim.prng();
    spawn(
        sim,
        Users {
            target,
            count: USERS,
            rounds,
            panics,
            stays: false,
            talks_every: None,
            prng,
            served: 0,
        },
    )
}

fn spawn(sim: &mut Sim, users: Users) -> UsersCore {
    let cores = sim.cores(&SimCoresOptions::default());
    let driver = cores.drivers().pop().unwrap();
    sim.spawn(Core::new(driver, users, CoreLimits::default()))
}

fn runs_to_the_end(
    accept: AcceptTopology,
    options: &SimCoresOptions,
    faults: fn(&mut Prng) -> Faults,
    panics: f64,
) {
    check_over_all(RUNS, |sim| {
        let faults = faults(&mut sim.prng());
        sim.set_faults(faults);
        let server = Simulated::start(sim, accept, options, None);
        let users = users(sim, ROUNDS, panics);
        let mut is_exact = true;
        let room = options.fds_max.saturating_sub(options.fds_reserved + 1);
        let done = sim.run_until(PATIENCE, |_| {
            is_exact &= server.cores.permits().in_use() <= options.permits;
            is_exact &= server.running.iter().all(|core| core.borrow_mut().cx().len() <= room);
            users.borrow().app().served == USERS * ROUNDS as usize
        });
        assert!(is_exact && server.watcher.most.get() <= options.permits, "more than the limit");
        assert!(done, "{} of {} were served", users.borrow().app().served, USERS * ROUNDS as usize);
        server.assert_balanced(sim);
    });
}

const RUNS: u64 = 15;
const USERS: usize = 40;
const ROUNDS: u32 = 5;

#[test]
fn connections_max_is_exact_and_no_connection_is_stuck() {
    for accept in TOPOLOGIES {
        let options = SimCoresOptions { cores: 3, permits: 7, ..SimCoresOptions::default() };
        runs_to_the_end(accept, &options, Faults::random, 0.0);
    }
}

#[test]
fn a_single_permit_goes_round() {
    // A core that is woken for a permit and does not need it must wake the next core, even if a
    // message woke it before and it took the permit out of turn.
    for accept in TOPOLOGIES {
        check_over_all(8 * RUNS, |sim| {
            sim.set_faults(Faults {
                message_delay_max: Duration::from_millis(3),
                ..Faults::none()
            });
            let options = SimCoresOptions { cores: 3, permits: 1, ..SimCoresOptions::default() };
            let server = Simulated::start(sim, accept, &options, None);
            let users = users(sim, 1, 0.0);
            let mut prng = sim.prng();
            let messages = prng.below(200);
            for _ in 0..messages {
                sim.run_for(Duration::from_millis(prng.below(4)));
                server.cores.wake(prng.below(3) as usize);
            }
            assert!(sim.run_until(PATIENCE, |_| users.borrow().app().served == USERS));
            server.assert_balanced(sim);
        });
    }
}

#[test]
fn a_connection_that_is_closed_as_it_opens_gives_its_permit_back() {
    for accept in TOPOLOGIES {
        let options = SimCoresOptions { cores: 3, permits: 2, ..SimCoresOptions::default() };
        check_over_all(RUNS, |sim| {
            sim.set_faults(Faults::rough());
            let server = Simulated::start(sim, accept, &options, None);
            server.watcher.turns_away.set(true);
            // No user is served, but every user connects and is disconnected again.
            users(sim, ROUNDS, 0.0);
            sim.run_for(Duration::from_secs(3));
            assert!(server.counters(sim).accepted > 100);
            server.watcher.turns_away.set(false);
            assert!(
                sim.run_until(PATIENCE, |_| server.watcher.served.get() == USERS * ROUNDS as usize)
            );
            server.assert_balanced(sim);
        });
    }
}

#[test]
fn full_private_tables_leave_no_connection_stuck_while_others_have_room() {
    for accept in TOPOLOGIES {
        // Each of three tables holds four connections beside the listener.
        let options = SimCoresOptions {
            cores: 3,
            permits: 12,
            fds_max: 5 + 64,
            fds_reserved: 64,
            ..SimCoresOptions::default()
        };
        runs_to_the_end(accept, &options, Faults::random, 0.0);
    }
}

#[test]
fn a_full_shared_table_leaves_no_connection_stuck() {
    for accept in TOPOLOGIES {
        let options = SimCoresOptions {
            cores: 3,
            fds_max: 12,
            private_fds: false,
            ..SimCoresOptions::default()
        };
        runs_to_the_end(accept, &options, Faults::random, 0.0);
    }
}

#[test]
fn panics_take_their_connection_and_no_permit() {
    for accept in TOPOLOGIES {
        let options = SimCoresOptions { cores: 3, permits: 7, ..SimCoresOptions::default() };
        runs_to_the_end(accept, &options, Faults::random, 0.2);
    }
}

#[test]
fn a_server_that_is_suspended_and_resumed_serves_every_client() {
    for accept in TOPOLOGIES {
        check_over_all(RUNS, |sim| {
            let faults = Faults::random(&mut sim.prng());
            sim.set_faults(faults);
            let options = SimCoresOptions { cores: 3, permits: 9, ..SimCoresOptions::default() };
            let server = Simulated::start(sim, accept, &options, None);
            let users = users(sim, ROUNDS, 0.0);
            let mut prng = sim.prng();
            for _ in 0..4 {
                sim.run_for(Duration::from_millis(prng.below(60)));
                server.suspend(sim);
                sim.run_for(Duration::from_millis(prng.below(30)));
                server.listen(sim);
            }
            let all = USERS * ROUNDS as usize;
            assert!(sim.run_until(PATIENCE, |_| users.borrow().app().served == all));
            server.assert_balanced(sim);
        });
    }
}

#[test]
fn an_idle_connection_is_closed_within_a_tick_of_its_time() {
    check_over_all(RUNS, |sim| {
        let idle = Duration::from_secs(30);
        let options = SimCoresOptions { cores: 2, ..SimCoresOptions::default() };
        let server = Simulated::start(sim, AcceptTopology::Reuseport, &options, Some(idle));
        let target = ConnectSpec {
            target: addr(),
            source: SourceAddress::Any,
            options: SocketOptions::default(),
        };
        let of = |count, talks_every, prng| Users {
            target,
            count,
            rounds: 1,
            panics: 0.0,
            stays: true,
            talks_every,
            prng,
            served: 0,
        };
        let sleepers = of(20, None, sim.prng());
        let sleepers = spawn(sim, sleepers);
        assert!(sim.run_until(PATIENCE, |_| server.watcher.open.get() == 20));
        let all_open = sim.now();
        sim.run_for(idle - Duration::from_millis(200));
        assert_eq!(server.watcher.open.get(), 20, "it is not time yet");
        server.assert_balanced(sim);
        assert!(sim.now() - all_open <= idle + TICK * 2, "{:?}", sim.now() - all_open);
        assert_eq!(server.counters(sim).idle_timeouts, 20);
        assert!(sim.run_until(PATIENCE, |_| sleepers.borrow().app().served == 20));
        let talkers = of(5, Some(idle / 2), sim.prng());
        spawn(sim, talkers);
        assert!(sim.run_until(PATIENCE, |_| server.watcher.open.get() == 5));
        sim.run_for(idle * 10);
        assert_eq!(server.watcher.open.get(), 5, "who talks is not idle");
        assert_eq!(server.counters(sim).idle_timeouts, 20);
    });
}
