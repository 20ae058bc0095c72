//! The scheduler: many cores in one thread, on one virtual clock.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use throng_base::{Instant, Prng};
use throng_driver::Driver;
use throng_engine::{App, Core};
use throng_proto::TransportFactory;

use crate::Faults;
use crate::cores::{SimCores, SimCoresOptions, SimLink};
use crate::faults::random_span;
use crate::peer::SimPeers;
use crate::world::{State, World};

/// Simulated world, and the cores that run in it. One seed decides everything that happens.
pub struct Sim {
    world: World,
    seed: u64,
    prng: Prng,
    cores: Vec<CoreHandle>,
    /// Transport of all cores; none for plain connections.
    transport: Option<TransportFactory>,
    /// Turns since the clock last moved.
    turns_since_advance: u32,
}

/// Core, and the end of its last turn.
struct CoreHandle {
    core: Rc<RefCell<dyn Turn>>,
    busy_until: Instant,
}

/// Core without its type parameters.
trait Turn {
    fn turn(&mut self) -> bool;
    fn next_due(&self) -> Instant;
    fn slot(&mut self) -> usize;
}

impl<M, D: Driver<Link = SimLink<M>>, A: App<D>> Turn for Core<D, A> {
    fn turn(&mut self) -> bool {
        Core::turn(self)
    }

    fn next_due(&self) -> Instant {
        Core::next_due(self)
    }

    fn slot(&mut self) -> usize {
        self.cx().driver().link().slot()
    }
}

impl Sim {
    /// Creates an empty world without faults.
    pub fn new(seed: u64) -> Self {
        Self {
            world: Rc::new(RefCell::new(State::new(seed))),
            seed,
            prng: Prng::derive(seed, 1),
            cores: Vec::new(),
            transport: None,
            turns_since_advance: 0,
        }
    }

    /// Returns the seed, which decides everything.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns a generator of random numbers for the test. Each call returns another sequence.
    pub fn prng(&mut self) -> Prng {
        Prng::new(self.prng.bits())
    }

    /// Sets the faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.world.borrow_mut().faults = faults;
    }

    /// Puts the connections of all cores that are started from now on over a transport.
    pub fn set_transport(&mut self, transport: TransportFactory) {
        self.transport = Some(transport);
    }

    /// Reports whether the connections have a transport: their bytes are not those of the sessions,
    /// and a connection takes one round trip more to open.
    pub fn has_transport(&self) -> bool {
        self.transport.is_some()
    }

    /// Returns the faults in force.
    pub fn faults(&self) -> Faults {
        self.world.borrow().faults.clone()
    }

    /// Creates the cores of one process, which send each other messages of type `M`.
    pub fn cores<M>(&self, options: &SimCoresOptions) -> SimCores<M> {
        SimCores::new(Rc::clone(&self.world), options)
    }

    /// Creates a process whose client sockets the test uses itself.
    pub fn peers(&self) -> SimPeers {
        let driver = self.cores(&SimCoresOptions::default()).drivers().remove(0);
        SimPeers::new(driver, self.transport.as_ref().map(|transport| transport.make(0)))
    }

    /// Starts a core. The test can inspect it between steps.
    pub fn spawn<M, D, A>(&mut self, mut core: Core<D, A>) -> Rc<RefCell<Core<D, A>>>
    where
        D: Driver<Link = SimLink<M>> + 'static,
        A: App<D> + 'static,
    {
        if let Some(transport) = &self.transport {
            core.set_transport(transport.make(self.cores.len()));
        }
        let core = Rc::new(RefCell::new(core));
        let busy_until = self.now();
        self.cores.push(CoreHandle { core: Rc::clone(&core) as Rc<RefCell<dyn Turn>>, busy_until });
        core
    }

    /// Stops a core as SIGSTOP stops a process: its sockets stay open, arriving bytes wait, and it
    /// has no turn until [`Self::thaw`].
    pub fn freeze<C>(&mut self, core: &Rc<RefCell<C>>) {
        self.set_busy(core, Instant::FAR);
    }

    /// Continues a frozen core.
    pub fn thaw<C>(&mut self, core: &Rc<RefCell<C>>) {
        let now = self.now();
        self.set_busy(core, now);
    }

    fn set_busy<C>(&mut self, core: &Rc<RefCell<C>>, until: Instant) {
        let address = Rc::as_ptr(core).cast::<()>();
        for handle in &mut self.cores {
            if Rc::as_ptr(&handle.core).cast::<()>() == address {
                handle.busy_until = until;
            }
        }
    }

    /// Returns the time of the world.
    pub fn now(&self) -> Instant {
        self.world.borrow().now
    }

    /// Returns how many cores have not stopped.
    pub fn running(&self) -> usize {
        self.cores.len()
    }

    /// Returns how many sockets a program, an accept queue or the network still holds.
    pub fn sockets(&self) -> usize {
        self.world.borrow().sockets.len() as usize
    }

    /// Returns how many files are open in all fd tables.
    pub fn files(&self) -> usize {
        self.world.borrow().files
    }

    /// Returns how many sockets were dropped instead of closed by their driver since the start: a
    /// leak in the program. Sockets that a core still holds when it ends count too.
    pub fn dropped_sockets(&self) -> u64 {
        self.world.borrow().dropped
    }

    /// Runs the world for `span`. Returns early when no event remains.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(span, |_| false);
    }

    /// Runs the world until `done` returns true after a step, for at most `limit`. Returns whether
    /// `done` returned true.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.now() + limit;
        loop {
            if done(self) {
                return true;
            }
            if !self.step(end) {
                return false;
            }
        }
    }

    /// Runs one turn of a core that has work, or moves the clock once. Returns false when the clock
    /// reaches `end`, or when no event remains.
    fn step(&mut self, end: Instant) -> bool {
        let now = self.now();
        self.world.borrow_mut().advance(now);
        let mut next = self.world.borrow().next_action();
        let mut ready = Vec::new();
        for (index, handle) in self.cores.iter().enumerate() {
            let due = self.wake_time(handle).max(handle.busy_until);
            if due <= now {
                ready.push(index);
            }
            next = next.min(due);
        }
        if !ready.is_empty() {
            let index = ready[self.prng.below(ready.len() as u64) as usize];
            self.turn(index, now);
            return true;
        }
        self.turns_since_advance = 0;
        let is_within = next <= end;
        // Without further events, the clock stays at the last event.
        if next != Instant::FAR {
            self.world.borrow_mut().advance(next.min(end));
        }
        is_within && next != Instant::FAR
    }

    /// Returns when a core's wait returns.
    fn wake_time(&self, handle: &CoreHandle) -> Instant {
        let mut core = handle.core.borrow_mut();
        if self.world.borrow().slots[core.slot()].has_events() {
            return Instant::ZERO;
        }
        core.next_due()
    }

    fn turn(&mut self, index: usize, now: Instant) {
        self.turns_since_advance += 1;
        assert!(
            self.turns_since_advance < TURNS_PER_MOMENT_MAX,
            "the cores run turns without end and the clock does not move"
        );
        let is_running = self.cores[index].core.borrow_mut().turn();
        if !is_running {
            self.cores.swap_remove(index);
            return;
        }
        let slot = self.cores[index].core.borrow_mut().slot();
        let world = &mut *self.world.borrow_mut();
        // A core waits next, and before it waits it sends the sockets that it passes.
        world.send_passed(slot);
        let turn_max = world.faults.turn_max + world.slots[slot].turn_max;
        let mut busy = random_span(&mut world.prng, Duration::ZERO, turn_max);
        if world.happens(world.faults.stall) {
            busy = random_span(&mut world.prng, busy, world.faults.stall_max);
        }
        self.cores[index].busy_until = now + busy;
    }

    /// Returns the last notes, one in each line.
    pub fn trace(&self) -> String {
        self.world.borrow().trace.to_string()
    }
}

/// More turns than any test needs at one moment.
const TURNS_PER_MOMENT_MAX: u32 = 100_000;
