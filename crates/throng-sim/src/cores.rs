//! The cores of one simulated process: what they share, and how they are reached.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::{CoreId, MESSAGE_BATCH_MAX, MailboxFull, MessagePriority, Permits};

use crate::SimDriver;
use crate::world::{Action, State, World};

/// How the cores of a simulated process are set up.
#[derive(Clone, Debug)]
pub struct SimCoresOptions {
    /// How many. Default 1.
    pub cores: usize,
    /// Permits that they share. Default: no limit.
    pub permits: usize,
    /// Bulk messages that a mailbox holds, those on their way included. Default 4,096.
    pub mailbox_max: usize,
    /// Sockets that fit into an fd table. Default: no limit.
    pub fds_max: usize,
    /// Those of them that [`Driver::fd_room`](throng_driver::Driver::fd_room) does not tell of, kept for sockets on their
    /// way. Default 0.
    pub fds_reserved: usize,
    /// Whether every core has an fd table of its own. Default true.
    pub private_fds: bool,
    /// How long a turn may keep a core of this process busy, beside
    /// [`Faults::turn_max`](crate::Faults::turn_max): a late process. Default 0.
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

/// The cores of one simulated process: a source of drivers, and the control thread's way to reach them.
pub struct SimCores<M> {
    world: World,
    shared: Rc<SimProcess<M>>,
}

impl<M> SimCores<M> {
    pub(crate) fn new(world: World, options: &SimCoresOptions) -> Self {
        let shared = Rc::new(SimProcess::new(&mut world.borrow_mut(), options));
        Self { world, shared }
    }

    /// The drivers of all cores, in order. To be asked for once.
    pub fn drivers(&self) -> Vec<SimDriver<M>> {
        let slots = self.shared.slots.iter().enumerate();
        slots
            .map(|(core, slot)| {
                SimDriver::new(core, *slot, Rc::clone(&self.world), Rc::clone(&self.shared))
            })
            .collect()
    }

    /// Posts a control message, which is never refused, as the control thread does.
    pub fn send_message(&self, to: CoreId, mail: M) {
        let posted = self.shared.send_message(
            &mut self.world.borrow_mut(),
            to,
            mail,
            MessagePriority::Control,
        );
        debug_assert!(posted.is_ok(), "control mail was refused");
    }

    /// Wakes a core, as the control thread does.
    pub fn wake(&self, core: CoreId) {
        self.shared.wake(&mut self.world.borrow_mut(), core);
    }

    /// The permits that the cores share.
    pub fn permits(&self) -> &Permits {
        &self.shared.permits
    }
}

/// What the cores of one process share.
pub(crate) struct SimProcess<M> {
    pub(crate) slots: Vec<usize>,
    pub(crate) permits: Permits,
    pub(crate) private_fds: bool,
    pub(crate) fds_reserved: usize,
    mailboxes: Vec<RefCell<Mailbox<M>>>,
    mailbox_max: usize,
}

/// Mail for one core, on its way or there, by the moment of its arrival.
struct Mailbox<M> {
    queue: BTreeMap<(Instant, u64), M>,
    message_count: u64,
    /// When the last message arrives; nothing overtakes, as in a queue behind a lock.
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
        mail: M,
        kind: MessagePriority,
    ) -> Result<(), MailboxFull<M>> {
        let mailbox = &mut *self.mailboxes[to].borrow_mut();
        if kind == MessagePriority::Bulk && mailbox.queue.len() >= self.mailbox_max {
            return Err(MailboxFull(mail));
        }
        mailbox.last_arrival = mailbox.last_arrival.max(world.message_arrival());
        mailbox.message_count += 1;
        mailbox.queue.insert((mailbox.last_arrival, mailbox.message_count), mail);
        world.schedule(mailbox.last_arrival, Action::Wake { slot: self.slots[to] });
        Ok(())
    }

    pub(crate) fn wake(&self, world: &mut State, core: CoreId) {
        let at = world.message_arrival();
        world.schedule(at, Action::Wake { slot: self.slots[core] });
    }

    pub(crate) fn messages_waiting(&self, now: Instant, core: CoreId) -> usize {
        let there = ..=(now, u64::MAX);
        self.mailboxes[core].borrow().queue.range(there).count()
    }

    pub(crate) fn receive_messages(&self, now: Instant, core: CoreId, into: &mut Vec<M>) -> bool {
        let queue = &mut self.mailboxes[core].borrow_mut().queue;
        let is_there = |queue: &BTreeMap<(Instant, u64), M>| {
            queue.first_key_value().is_some_and(|((at, _), _)| *at <= now)
        };
        for _ in 0..MESSAGE_BATCH_MAX {
            if !is_there(queue) {
                return false;
            }
            into.extend(queue.pop_first().map(|(_, mail)| mail));
        }
        is_there(queue)
    }
}
