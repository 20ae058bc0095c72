//! The acceptor against a driver that is a list of results.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use throng_base::Instant;
use throng_driver::{CoreId, CoreLink, Errno, SocketClose};
use throng_measure::{RunEvent, RunEventKind, ServerCounters};

use super::AcceptStep::{Accepted, PassOn, Skip};
use super::{AcceptContext, AcceptStep, Acceptor, BURST_MAX, BatchEnd, HANDOFFS_MAX, PauseReason};
use crate::core_message::RegistryMessage;
use crate::{AcceptTopology, ServerConfig};
use fake_driver::{FakeDriver, LISTENER};

mod fake_driver;

/// A core that carries out the acceptor's steps.
struct FakeCore {
    acceptor: Acceptor<FakeDriver>,
    driver: FakeDriver,
    events: Receiver<RunEvent>,
    now: Instant,
    /// Open connections.
    open: usize,
    /// Connections that were handed off, and where to.
    handed_off: Vec<(u32, CoreId)>,
}

impl FakeCore {
    /// Makes a core that listens.
    fn new(accept: AcceptTopology, driver: FakeDriver) -> Self {
        let (sender, events) = sync_channel(64);
        let config = ServerConfig { accept, events: Some(sender), ..ServerConfig::default() };
        let acceptor = Acceptor::new(&Arc::new(config));
        let now = Instant::ZERO + Duration::from_secs(100);
        let mut core = Self { acceptor, driver, events, now, open: 0, handed_off: Vec::new() };
        core.acceptor.start(&core.driver);
        let address = "127.0.0.1:0".parse().unwrap();
        core.run(|acceptor, cx| acceptor.listen(cx, address, false)).unwrap();
        core
    }

    fn own(permits: usize) -> Self {
        Self::new(AcceptTopology::Reuseport, FakeDriver::new(permits))
    }

    fn run<T>(
        &mut self,
        act: impl FnOnce(&mut Acceptor<FakeDriver>, &mut AcceptContext<'_, FakeDriver>) -> T,
    ) -> T {
        let (driver, now, open) = (&mut self.driver, self.now, self.open);
        act(&mut self.acceptor, &mut AcceptContext { driver, now, open })
    }

    /// Adds connections to the accept queue.
    fn queue(&mut self, connections: usize) {
        self.driver.accepts.extend((0..connections).map(|fd| Ok(fd as u32)));
    }

    fn accept_one(&mut self) -> Result<AcceptStep<u32>, BatchEnd> {
        self.run(Acceptor::accept_one)
    }

    /// Accepts a batch. Returns how many accepts it made.
    fn accept(&mut self) -> (usize, BatchEnd) {
        let burst = self.acceptor.burst();
        for accepted in 0..burst {
            match self.accept_one() {
                Ok(Accepted(_)) => self.open += 1,
                Ok(PassOn { fd, to }) => self.handed_off.push((fd, to)),
                Ok(Skip) => {}
                Err(end) => {
                    self.run(|acceptor, cx| acceptor.end_batch(cx, accepted, end));
                    return (accepted, end);
                }
            }
        }
        self.run(|acceptor, cx| acceptor.end_batch(cx, burst, BatchEnd::Filled));
        (burst, BatchEnd::Filled)
    }

    /// Ends the turn after `closes` connections have closed. Returns whether to accept again.
    fn end_turn(&mut self, closes: usize) -> bool {
        for _ in 0..closes {
            self.open -= 1;
            self.acceptor.connection_closed();
        }
        let ends_pause = self.acceptor.turn_ended(&mut self.driver);
        self.acceptor.needs_permit(&mut self.driver) || ends_pause
    }

    fn counters(&mut self) -> ServerCounters {
        let mut counters = ServerCounters::default();
        self.acceptor.report(&mut counters);
        counters
    }

    fn events(&self) -> Vec<RunEventKind> {
        self.events.try_iter().map(|event| event.kind).collect()
    }
}

const fn pause(errno: Errno) -> Result<AcceptStep<u32>, BatchEnd> {
    Err(BatchEnd::Pause(PauseReason::Kernel(errno)))
}

#[test]
fn each_result_of_the_kernel_has_its_step() {
    let table = [
        (Ok(7), Ok(Accepted(7))),
        (Err(Errno::AGAIN), Err(BatchEnd::Empty)),
        (Err(Errno::INTR), Ok(Skip)),
        // Of the peer: the next connection may be fine.
        (Err(Errno::CONN_ABORTED), Ok(Skip)),
        (Err(Errno::PROTOCOL), Ok(Skip)),
        // Limits.
        (Err(Errno::TABLE_FULL), pause(Errno::TABLE_FULL)),
        (Err(Errno::SYSTEM_FULL), pause(Errno::SYSTEM_FULL)),
        (Err(Errno::NO_BUFFERS), pause(Errno::NO_BUFFERS)),
        (Err(Errno::NO_MEMORY), pause(Errno::NO_MEMORY)),
    ];
    for (result, step) in table {
        let mut core = FakeCore::own(10);
        core.driver.accepts.push_back(result);
        assert_eq!(core.accept_one(), step, "{result:?}");
        let held = usize::from(result.is_ok());
        assert_eq!(core.driver.permits.in_use(), held, "{result:?} returns its permit");
        let is_counted = !matches!(result, Ok(_) | Err(Errno::AGAIN | Errno::INTR));
        assert_eq!(!core.acceptor.errors().is_empty(), is_counted, "{result:?}");
    }
}

#[test]
fn without_a_listener_nothing_is_accepted() {
    let mut core = FakeCore::own(10);
    core.run(|acceptor, cx| acceptor.close_listener(cx));
    assert_eq!(core.accept_one(), Err(BatchEnd::NoListener));
    assert!(!core.driver.is_watched);
    assert_eq!(core.driver.closed, [(LISTENER, SocketClose::Finish)]);
}

#[test]
fn a_batch_doubles_while_batches_fill_in_turn_after_turn() {
    let mut core = FakeCore::own(10_000);
    core.queue(1_000);
    let sizes: Vec<_> = (0..9)
        .map(|_| {
            let (accepted, end) = core.accept();
            assert_eq!(end, BatchEnd::Filled);
            core.end_turn(0);
            accepted
        })
        .collect();
    assert_eq!(sizes, [1, 1, 2, 4, 8, 16, 32, 64, BURST_MAX]);
}

#[test]
fn a_batch_is_as_long_as_the_queue_was() {
    let mut core = FakeCore::own(10_000);
    core.queue(19);
    while core.accept().1 == BatchEnd::Filled {
        core.end_turn(0);
    }
    // 1, 1, 2, 4, 8, then 3 of 16.
    assert_eq!(core.acceptor.burst(), 3);
    assert_eq!(core.accept(), (0, BatchEnd::Empty));
    assert_eq!(core.acceptor.burst(), 1);
    assert!(core.driver.is_watched);
    let counters = core.counters();
    assert_eq!((counters.accepted, counters.accepts_empty), (19, 2));
}

#[test]
fn without_a_permit_it_waits_until_one_is_returned() {
    let mut core = FakeCore::own(1);
    core.queue(3);
    assert_eq!(core.accept(), (1, BatchEnd::Filled));
    assert_eq!(core.accept(), (0, BatchEnd::Pause(PauseReason::Permits)));
    assert!(!core.driver.is_watched);
    assert_eq!(core.acceptor.due(), Instant::FAR);
    assert!(!core.end_turn(0));
    assert_eq!(core.counters().paused_cores, 1);

    core.now += Duration::from_millis(1_500);
    assert!(core.end_turn(1), "its own close returns the permit");
    assert_eq!(core.accept(), (1, BatchEnd::Filled));
    assert!(core.driver.is_watched);
    let counters = core.counters();
    assert_eq!((counters.pauses_max, counters.pauses_fd, counters.closed), (1, 0, 1));
    assert!(matches!(
        core.events()[..],
        [
            RunEventKind::ConnectionsMaxReached { .. },
            RunEventKind::AcceptResumed { core: 0, paused_ms: 1_500 }
        ]
    ));
}

#[test]
fn a_permit_that_is_not_needed_wakes_the_next_core() {
    let mut core = FakeCore::own(1);
    core.queue(1);
    core.accept();
    assert!(!core.driver.permits.acquire_or_register(3));
    core.end_turn(1);
    assert_eq!(*core.driver.woken.borrow(), [3]);
    assert_eq!(core.driver.permits.in_use(), 0);

    // Core 0 is signaled without need while core 5 waits: the signal goes there.
    assert!(core.driver.permits.acquire_or_register(3));
    assert!(!core.driver.permits.acquire_or_register(4));
    assert!(!core.driver.permits.acquire_or_register(5));
    assert_eq!(core.driver.permits.release(), Some(4));
    core.acceptor.permit_returned();
    assert_eq!(core.acceptor.due(), Instant::ZERO);
    assert!(!core.end_turn(0));
    assert_eq!(*core.driver.woken.borrow(), [3, 5]);
    assert_eq!(core.driver.permits.in_use(), 0);
}

#[test]
fn a_full_table_is_tried_again_after_a_while_or_a_close() {
    let mut core = FakeCore::own(10);
    core.queue(1);
    core.accept();
    core.driver.accepts.extend([Err(Errno::TABLE_FULL), Err(Errno::TABLE_FULL), Ok(9)]);
    let paused = BatchEnd::Pause(PauseReason::Kernel(Errno::TABLE_FULL));
    assert_eq!(core.accept(), (0, paused));
    assert!(!core.driver.is_watched);
    let retry_at = core.now + Duration::from_millis(100);
    assert_eq!(core.acceptor.due(), retry_at);
    assert!(!core.acceptor.is_retry_due(core.now));

    core.now = retry_at;
    assert!(core.acceptor.is_retry_due(core.now));
    assert_eq!(core.accept(), (0, paused));
    assert_eq!(core.acceptor.due(), retry_at + Duration::from_millis(100));

    assert!(core.end_turn(1), "a close makes room");
    assert_eq!(core.accept(), (1, BatchEnd::Filled));
    assert!(core.driver.is_watched);
    let counters = core.counters();
    assert_eq!((counters.pauses_fd, counters.pauses_max), (1, 0));
    assert_eq!(core.acceptor.errors(), [(Errno::TABLE_FULL, 2)]);
    assert!(matches!(
        &core.events()[..],
        [
            RunEventKind::FdTableFull { core: 0, open: 1, errno },
            RunEventKind::AcceptResumed { paused_ms: 100, .. }
        ] if errno == "EMFILE"
    ));
}

#[test]
fn pauses_are_counted_always_and_reported_once_a_second() {
    let mut core = FakeCore::own(100);
    for millis in [0, 400, 400, 400] {
        core.now += Duration::from_millis(millis);
        core.driver.accepts.push_back(Err(Errno::NO_MEMORY));
        core.accept();
        core.accept();
    }
    assert_eq!(core.counters().pauses_fd, 4);
    let reported = core.events();
    let is_pause = |event: &&RunEventKind| matches!(event, RunEventKind::FdTableFull { .. });
    assert_eq!(reported.iter().filter(is_pause).count(), 2);
    assert_eq!(reported.len(), 4, "a pause that was not reported has no end");
}

#[test]
fn a_listener_that_cannot_be_watched_is_tried_again() {
    let mut core = FakeCore::own(10);
    core.run(|acceptor, cx| acceptor.close_listener(cx));
    core.driver.watch_error = Some(Errno::NO_SPACE);
    let address = "127.0.0.1:0".parse().unwrap();
    core.run(|acceptor, cx| acceptor.listen(cx, address, false)).unwrap();
    assert_eq!(core.acceptor.due(), core.now + Duration::from_millis(100));
    core.accept();
    assert!(core.driver.is_watched);
}

#[test]
fn a_core_without_room_passes_connections_to_all_others_in_turn() {
    let driver = FakeDriver { core: 1, cores: 3, fd_room: Some(3), ..FakeDriver::new(100) };
    let mut core = FakeCore::new(AcceptTopology::Reuseport, driver);
    core.queue(6);
    while core.accept().1 == BatchEnd::Filled {
        core.end_turn(0);
    }
    assert_eq!(core.open, 2, "the listener takes a place too");
    assert_eq!(core.handed_off, [(2, 2), (3, 0), (4, 2), (5, 0)]);
    assert_eq!(core.driver.permits.in_use(), 6, "each takes its permit along");
    assert_eq!(core.counters().handed_over, 4);
}

#[test]
fn handoffs_of_one_turn_are_limited() {
    let driver = FakeDriver { cores: 2, fd_room: Some(1), ..FakeDriver::new(1_000) };
    let mut core = FakeCore::new(AcceptTopology::Shared, driver);
    core.queue(100);
    for _ in 0..HANDOFFS_MAX {
        assert!(matches!(core.accept_one(), Ok(PassOn { to: 1, .. })));
    }
    assert_eq!(core.accept(), (0, BatchEnd::HandoffsMax));
    assert!(core.driver.is_watched);
    core.end_turn(0);
    assert!(matches!(core.accept_one(), Ok(PassOn { .. })));
}

#[test]
fn a_handoff_that_failed_returns_its_permit() {
    let driver = FakeDriver { cores: 2, fd_room: Some(1), ..FakeDriver::new(10) };
    let mut core = FakeCore::new(AcceptTopology::Shared, driver);
    core.queue(1);
    core.accept();
    core.driver.pass_failures = 1;
    core.end_turn(0);
    assert_eq!(core.driver.permits.in_use(), 0);
    let counters = core.counters();
    assert_eq!((counters.hand_over_failures, counters.closed), (1, 1));
}

#[test]
fn a_server_that_ends_closes_what_arrives() {
    let mut core = FakeCore::own(10);
    core.acceptor.set_closing(true);
    core.queue(2);
    assert_eq!(core.accept_one(), Ok(Skip));
    assert!(core.driver.permits.try_acquire(), "a handoff brings its permit");
    assert_eq!(core.run(|acceptor, cx| acceptor.place(cx, 5)), Skip);
    assert_eq!(core.driver.closed, [(0, SocketClose::Finish), (5, SocketClose::Finish)]);
}

#[test]
fn a_connection_that_the_core_cannot_open_is_reset_and_counted() {
    let mut core = FakeCore::own(10);
    core.queue(1);
    assert_eq!(core.accept_one(), Ok(Accepted(0)));
    core.acceptor.refuse(&mut core.driver, 0, Some(Errno::NO_SPACE));
    assert_eq!(core.driver.closed, [(0, SocketClose::Reset)]);
    assert_eq!(core.driver.permits.in_use(), 0);
    assert_eq!(core.acceptor.errors(), [(Errno::NO_SPACE, 1)]);
}

#[test]
fn in_dispatch_each_connection_waits_for_the_registry() {
    let driver = FakeDriver { cores: 2, ..FakeDriver::new(10) };
    let mut core = FakeCore::new(AcceptTopology::Dispatch, driver);
    assert_eq!(core.acceptor.last_accepts(), 0);
    core.queue(3);
    assert_eq!(core.accept(), (0, BatchEnd::AwaitPlacement));
    assert!(!core.driver.is_watched);
    assert_eq!(*core.driver.to_registry.borrow(), [RegistryMessage::PlacementRequest(0)]);
    assert_eq!(core.accept(), (0, BatchEnd::AwaitPlacement), "one at a time");

    // Core 0 has the registry, which answers core 0 first and then core 1.
    for core_of_request in [0, 1] {
        let request = RegistryMessage::PlacementRequest(core_of_request);
        core.acceptor.registry_message(&mut core.driver, request);
    }
    assert_eq!(*core.driver.placements.borrow(), [(0, 0), (1, 1)]);
    let placed = core.run(|acceptor, cx| acceptor.placement_received(cx, 0));
    assert_eq!(placed, Some(Accepted(0)));
    assert_eq!(core.accept(), (0, BatchEnd::AwaitPlacement));
    let placed = core.run(|acceptor, cx| acceptor.placement_received(cx, 1));
    assert_eq!(placed, Some(PassOn { fd: 1, to: 1 }));
    assert_eq!(core.run(|acceptor, cx| acceptor.placement_received(cx, 1)), None);

    // The registry learns of ends, those of failed handoffs included.
    core.driver.to_registry.borrow_mut().clear();
    core.open = 1;
    core.driver.pass_failures = 1;
    core.end_turn(1);
    let ended = [0, 1].map(RegistryMessage::ConnectionEnded);
    assert_eq!(*core.driver.to_registry.borrow(), ended);
}

#[test]
fn a_shared_listener_that_arrives_too_late_is_closed() {
    let mut core = FakeCore::own(10);
    core.run(|acceptor, cx| acceptor.close_listener(cx));
    core.run(|acceptor, cx| acceptor.listener_arrived(cx, 77));
    assert_eq!(core.driver.closed.last(), Some(&(77, SocketClose::Finish)));

    let (reply, answers) = std::sync::mpsc::channel();
    core.acceptor.expect_listener(reply);
    core.run(|acceptor, cx| acceptor.listener_arrived(cx, 78));
    assert_eq!(answers.try_recv(), Ok((core.driver.core(), Ok(None))));
    assert!(core.driver.is_watched);
}
