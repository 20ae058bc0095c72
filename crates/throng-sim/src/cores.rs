//! The cores of one simulated process: their shared state, and the control thread's access to them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::{CoreId, MESSAGE_BATCH_MAX, MailboxFull, MessagePriority, Permits};

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
    shared: Rc<SimProcess<M>>,
}

impl<M> SimCores<M> {
    pub(crate) fn new(world: World, options: &SimCoresOptions) -> Self {
        let shared = Rc::new(SimProcess::new(&mut world.borrow_mut(), options));
        Self { world, shared }
    }

    /// Returns the drivers of all cores, in order. Call it once.
    pub fn drivers(&self) -> Vec<SimDriver<M>> {
        let slots = self.shared.slots.iter().enumerate();
        slots
            .map(|(core, slot)| {
                SimDriver::new(core, *slot, Rc::clone(&self.world), Rc::clone(&self.shared))
            })
            .collect()
    }

    /// Sends a control message, which is never refused, as the control thread does.
    pub fn send_message(&self, to: CoreId, message: M) {
        let sent = self.shared.send_message(
            &mut self.world.borrow_mut(),
            to,
            message,
            MessagePriority::Control,
        );
        debug_assert!(sent.is_ok(), "a mailbox refused a control message");
    }

    /// Wakes a core, as the control thread does.
    pub fn wake(&self, core: CoreId) {
        self.shared.wake(&mut self.world.borrow_mut(), core);
    }

    /// Returns the permits that the cores share.
    pub fn permits(&self) -> &Permits {
        &self.shared.permits
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

    pub(crate) fn send_message(
        &self,
        world: &mut State,
        to: CoreId,
        message: M,
        priority: MessagePriority,
    ) -> Result<(), MailboxFull<M>> {
        let mailbox = &mut *self.mailboxes[to].borrow_mut();
        if priority == MessagePriority::Bulk && mailbox.queue.len() >= self.mailbox_max {
            return Err(MailboxFull(message));
        }
        mailbox.last_arrival = mailbox.last_arrival.max(world.message_arrival());
        mailbox.message_count += 1;
        mailbox.queue.insert((mailbox.last_arrival, mailbox.message_count), message);
        world.schedule(mailbox.last_arrival, Action::Wake { slot: self.slots[to] });
        Ok(())
    }

    pub(crate) fn wake(&self, world: &mut State, core: CoreId) {
        let at = world.message_arrival();
        world.schedule(at, Action::Wake { slot: self.slots[core] });
    }

    pub(crate) fn messages_waiting(&self, now: Instant, core: CoreId) -> usize {
        let arrived = ..=(now, u64::MAX);
        self.mailboxes[core].borrow().queue.range(arrived).count()
    }

    pub(crate) fn receive_messages(&self, now: Instant, core: CoreId, into: &mut Vec<M>) -> bool {
        let queue = &mut self.mailboxes[core].borrow_mut().queue;
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
}
