//! The scheduler: many cores in one thread, on one virtual clock.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use throng_base::{Instant, Prng};
use throng_engine::{App, Core};

use crate::Faults;
use crate::cores::{SimCores, SimCoresOptions};
use crate::driver::SimulatedDriver;
use crate::faults::random_span;
use crate::world::{State, World};

/// A simulated world and the cores that run in it. One seed decides everything that happens.
pub struct Sim {
    world: World,
    seed: u64,
    prng: Prng,
    cores: Vec<CoreHandle>,
    /// Turns since the clock moved last.
    turns_since_advance: u32,
}

/// A core, and until when its last turn keeps it busy.
struct CoreHandle {
    core: Rc<RefCell<dyn Turn>>,
    busy_until: Instant,
}

/// A core without its types.
trait Turn {
    fn turn(&mut self) -> bool;
    fn next_due(&self) -> Instant;
    fn slot(&mut self) -> usize;
}

impl<D: SimulatedDriver, A: App<D>> Turn for Core<D, A> {
    fn turn(&mut self) -> bool {
        Core::turn(self)
    }

    fn next_due(&self) -> Instant {
        Core::next_due(self)
    }

    fn slot(&mut self) -> usize {
        self.cx().driver().slot()
    }
}

impl Sim {
    /// An empty world without faults.
    pub fn new(seed: u64) -> Self {
        Self {
            world: Rc::new(RefCell::new(State::new(seed))),
            seed,
            prng: Prng::derive(seed, 1),
            cores: Vec::new(),
            turns_since_advance: 0,
        }
    }

    /// What decides everything.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// A generator of random numbers for the test's own use; each call yields another sequence.
    pub fn prng(&mut self) -> Prng {
        Prng::new(self.prng.bits())
    }

    /// Changes the faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.world.borrow_mut().faults = faults;
    }

    /// The faults that are in force.
    pub fn faults(&self) -> Faults {
        self.world.borrow().faults.clone()
    }

    /// Makes room for the cores of one process, which send each other mail of type `M`.
    pub fn cores<M>(&self, options: &SimCoresOptions) -> SimCores<M> {
        SimCores::new(Rc::clone(&self.world), options)
    }

    /// Lets a core run. It stays the test's to look at between steps.
    pub fn spawn<D, A>(&mut self, core: Core<D, A>) -> Rc<RefCell<Core<D, A>>>
    where
        D: SimulatedDriver + 'static,
        A: App<D> + 'static,
    {
        let core = Rc::new(RefCell::new(core));
        let busy_until = self.now();
        self.cores.push(CoreHandle { core: Rc::clone(&core) as Rc<RefCell<dyn Turn>>, busy_until });
        core
    }

    /// Stops a core as SIGSTOP stops a process: its sockets stay, what arrives for them waits, and
    /// it has no turn until [`Self::thaw`].
    pub fn freeze<D, A>(&mut self, core: &Rc<RefCell<Core<D, A>>>)
    where
        D: SimulatedDriver + 'static,
        A: App<D> + 'static,
    {
        self.set_busy(core, Instant::FAR);
    }

    /// Lets a frozen core go on.
    pub fn thaw<D, A>(&mut self, core: &Rc<RefCell<Core<D, A>>>)
    where
        D: SimulatedDriver + 'static,
        A: App<D> + 'static,
    {
        let now = self.now();
        self.set_busy(core, now);
    }

    fn set_busy<D, A>(&mut self, core: &Rc<RefCell<Core<D, A>>>, until: Instant)
    where
        D: SimulatedDriver,
        A: App<D>,
    {
        let place = Rc::as_ptr(core).cast::<()>();
        for member in &mut self.cores {
            if Rc::as_ptr(&member.core).cast::<()>() == place {
                member.busy_until = until;
            }
        }
    }

    /// The time in the world.
    pub fn now(&self) -> Instant {
        self.world.borrow().now
    }

    /// Cores that have not stopped.
    pub fn running(&self) -> usize {
        self.cores.len()
    }

    /// Sockets that some program, or an accept queue, or the network still has.
    pub fn sockets(&self) -> usize {
        self.world.borrow().sockets.len() as usize
    }

    /// Files that are open in all fd tables.
    pub fn files(&self) -> usize {
        self.world.borrow().files
    }

    /// Sockets that were dropped instead of closed by their driver: a leak of the books, since the start. What
    /// a core still holds when it ends counts too.
    pub fn dropped_sockets(&self) -> u64 {
        self.world.borrow().dropped
    }

    /// Lets the world go on for `span`. Returns early when nothing will ever happen again.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(span, |_| false);
    }

    /// Lets the world go on until `done` says so after a step, for `limit` at most. True when it did.
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

    /// One turn of a core that has something to do, or one move of the clock; false when the world has
    /// come to `end`, or to its own.
    fn step(&mut self, end: Instant) -> bool {
        let now = self.now();
        self.world.borrow_mut().advance(now);
        let mut next = self.world.borrow().next_action();
        let mut ready = Vec::new();
        for (index, member) in self.cores.iter().enumerate() {
            let due = self.wake_time(member).max(member.busy_until);
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
        let is_more = next <= end;
        // A world in which nothing will happen stays at the moment of the last event.
        if next != Instant::FAR {
            self.world.borrow_mut().advance(next.min(end));
        }
        is_more && next != Instant::FAR
    }

    /// When a core's wait returns.
    fn wake_time(&self, member: &CoreHandle) -> Instant {
        let mut core = member.core.borrow_mut();
        if self.world.borrow().slots[core.slot()].has_events() {
            return Instant::ZERO;
        }
        core.next_due()
    }

    fn turn(&mut self, index: usize, now: Instant) {
        self.turns_since_advance += 1;
        assert!(
            self.turns_since_advance < TURNS_PER_MOMENT_MAX,
            "the cores turn and turn and the clock stands still"
        );
        let goes_on = self.cores[index].core.borrow_mut().turn();
        if !goes_on {
            self.cores.swap_remove(index);
            return;
        }
        let slot = self.cores[index].core.borrow_mut().slot();
        let world = &mut *self.world.borrow_mut();
        // The next thing a core does is to wait, and before it waits it sends what it passes on.
        world.send_passed(slot);
        let turn_max = world.faults.turn_max + world.slots[slot].turn_max;
        let mut busy = random_span(&mut world.prng, Duration::ZERO, turn_max);
        if world.happens(world.faults.stall) {
            busy = random_span(&mut world.prng, busy, world.faults.stall_max);
        }
        self.cores[index].busy_until = now + busy;
    }

    /// The last things that happened, one a line.
    pub fn trace(&self) -> String {
        self.world.borrow().trace.to_string()
    }
}

/// No test has that much to do at one moment.
const TURNS_PER_MOMENT_MAX: u32 = 100_000;
