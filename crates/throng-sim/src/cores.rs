//! The cores of one simulated process: their shared state, and the control thread's access to them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::{CoreId, CoreLink, MESSAGE_BATCH_MAX, MailboxFull, MessagePriority, Permits};

use crate::SimDriver;
use crate::world::{Action, State, World};

/// Options of the cores of a simulated process.
#[derive(Clone, Debug)]
pub struct SimCoresOptions {
    /// Number of cores. Default 1.
    pub cores: usize,
    /// Permits that the cores share. Default: no limit.
    pub permits: usize,
    /// Messages that a mailbox may hold before it refuses bulk messages, those in transit included.
    /// Default 4,096.
    pub mailbox_max: usize,
    /// Sockets that fit into an fd table. Default: no limit.
    pub fds_max: usize,
    /// Part of `fds_max` that [`Listeners::fd_room`](throng_driver::Listeners::fd_room)
    /// leaves out, a reserve for sockets in transit. Default 0.
    pub fds_reserved: usize,
    /// Give every core its own fd table. Default true.
    pub private_fds: bool,
    /// Longest turn of a core of this process, in addition to
    /// [`Faults::turn_max`](crate::Faults::turn_max), for a process that is late. Default 0.
    pub turn_max: Duration,
}

impl Default for SimCoresOptions {
    fn default() -> Self {
        Self {
            cores: 1,
            permits: usize::MAX,
            mailbox_max: 4_096,
            fds_max: usize::MAX,
            fds_reserved: 0,
            private_fds: true,
            turn_max: Duration::ZERO,
        }
    }
}

/// Cores of one simulated process. It returns their drivers, and acts as the control thread.
pub struct SimCores<M> {
    world: World,
    process: Rc<SimProcess<M>>,
}

impl<M> SimCores<M> {
    pub(crate) fn new(world: World, options: &SimCoresOptions) -> Self {
        let process = Rc::new(SimProcess::new(&mut world.borrow_mut(), options));
        Self { world, process }
    }

    /// Returns the drivers of all cores, in order. Call it once.
    pub fn drivers(&self) -> Vec<SimDriver<M>> {
        (0..self.process.slots.len()).map(|core| SimDriver::new(self.link(core))).collect()
    }

    /// Sends a control message, which is never refused, as the control thread does.
    pub fn send_message(&self, to: CoreId, message: M) {
        let sent = self.link(to).send_message(to, message, MessagePriority::Control);
        debug_assert!(sent.is_ok(), "a mailbox refused a control message");
    }

    /// Wakes a core, as the control thread does.
    pub fn wake(&self, core: CoreId) {
        self.link(core).wake(core);
    }

    /// Returns the permits that the cores share.
    pub fn permits(&self) -> &Permits {
        &self.process.permits
    }

    fn link(&self, core: CoreId) -> SimLink<M> {
        SimLink { core, world: Rc::clone(&self.world), process: Rc::clone(&self.process) }
    }
}

/// Link between the cores of a simulated process. Its messages take time.
pub struct SimLink<M> {
    core: CoreId,
    pub(crate) world: World,
    pub(crate) process: Rc<SimProcess<M>>,
}

impl<M> SimLink<M> {
    /// Returns the number of the core among all cores of the world.
    pub(crate) fn slot(&self) -> usize {
        self.process.slots[self.core]
    }
}

impl<M> CoreLink for SimLink<M> {
    type Message = M;

    fn core(&self) -> CoreId {
        self.core
    }

    fn cores(&self) -> usize {
        self.process.slots.len()
    }

    fn send_message(
        &self,
        to: CoreId,
        message: M,
        priority: MessagePriority,
    ) -> Result<(), MailboxFull<M>> {
        let world = &mut *self.world.borrow_mut();
        let mailbox = &mut *self.process.mailboxes[to].borrow_mut();
        if priority == MessagePriority::Bulk && mailbox.queue.len() >= self.process.mailbox_max {
            return Err(MailboxFull(message));
        }
        mailbox.last_arrival = mailbox.last_arrival.max(world.message_arrival());
        mailbox.message_count += 1;
        mailbox.queue.insert((mailbox.last_arrival, mailbox.message_count), message);
        world.schedule(mailbox.last_arrival, Action::Wake { slot: self.process.slots[to] });
        Ok(())
    }

    fn receive_messages(&self, into: &mut Vec<M>) -> bool {
        let now = self.world.borrow().now;
        let queue = &mut self.process.mailboxes[self.core].borrow_mut().queue;
        let has_arrived = |queue: &BTreeMap<(Instant, u64), M>| {
            queue.first_key_value().is_some_and(|((at, _), _)| *at <= now)
        };
        for _ in 0..MESSAGE_BATCH_MAX {
            if !has_arrived(queue) {
                return false;
            }
            into.extend(queue.pop_first().map(|(_, message)| message));
        }
        has_arrived(queue)
    }

    fn messages_waiting(&self) -> usize {
        let arrived = ..=(self.world.borrow().now, u64::MAX);
        self.process.mailboxes[self.core].borrow().queue.range(arrived).count()
    }

    fn wake(&self, core: CoreId) {
        let world = &mut *self.world.borrow_mut();
        let at = world.message_arrival();
        world.schedule(at, Action::Wake { slot: self.process.slots[core] });
    }

    fn permits(&self) -> &Permits {
        &self.process.permits
    }
}

/// State that the cores of one process share.
pub(crate) struct SimProcess<M> {
    pub(crate) slots: Vec<usize>,
    pub(crate) permits: Permits,
    pub(crate) private_fds: bool,
    pub(crate) fds_reserved: usize,
    mailboxes: Vec<RefCell<Mailbox<M>>>,
    mailbox_max: usize,
}

/// Messages for one core, in transit or arrived, by the time of their arrival.
struct Mailbox<M> {
    queue: BTreeMap<(Instant, u64), M>,
    message_count: u64,
    /// Arrival of the last message. No message overtakes another, as in a queue behind a lock.
    last_arrival: Instant,
}

impl<M> SimProcess<M> {
    fn new(world: &mut State, options: &SimCoresOptions) -> Self {
        use crate::readiness::DriverSlot;
        use crate::world::Table;
        let tables = if options.private_fds { options.cores } else { 1 };
        let first_table = world.tables.len();
        let first_slot = world.slots.len();
        let table = || Table { open: 0, max: options.fds_max };
        world.tables.extend(std::iter::repeat_with(table).take(tables));
        let slot = |core| DriverSlot::new(first_table + core % tables, options.turn_max);
        world.slots.extend((0..options.cores).map(slot));
        let mailbox = || {
            RefCell::new(Mailbox {
                queue: BTreeMap::new(),
                message_count: 0,
                last_arrival: Instant::ZERO,
            })
        };
        Self {
            slots: (first_slot..first_slot + options.cores).collect(),
            permits: Permits::new(options.permits),
            private_fds: options.private_fds,
            fds_reserved: options.fds_reserved,
            mailboxes: std::iter::repeat_with(mailbox).take(options.cores).collect(),
            mailbox_max: options.mailbox_max,
        }
    }
}
