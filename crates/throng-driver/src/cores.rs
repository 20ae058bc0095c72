//! The threads of the cores: each with its own fd table where that is possible, its mailbox and its slot
//! among the others.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use rustix::event::EventfdFlags;

use crate::handoff::HandoffQueue;
use crate::mailbox::Mailbox;
use crate::passing::FdChannel;
use crate::tables::{SharedFd, Tables};
use crate::{CoreId, EpollDriver, Errno, MailboxSender, Permits, fdtable};

/// How cores are started.
#[derive(Clone, Debug)]
pub struct CoresOptions {
    /// What the threads are called: `name-0`, `name-1`, …. Default `core`.
    pub name: &'static str,
    /// How many. Default 1.
    pub cores: usize,
    /// Permits that they share. Default: no limit.
    pub permits: usize,
    /// Bulk messages that a mailbox holds. Default 4,096.
    pub mailbox_max: usize,
    /// Whether every core gets an fd table of its own, so that each holds as many fds as the limit
    /// allows, and no two wait for one table's lock. Where the machine refuses it (see
    /// [`fdtable::can_be_private`]) all cores share one. Default false.
    ///
    /// **With such a table an fd is good on one thread only.** What `run` has captured that owns an
    /// fd (a `File`, a socket, a logger that writes to one) does not work on a core: its number leads
    /// nowhere there, and every use fails with EBADF. An fd that another thread opens *later* must
    /// not come to a core at all: there its number may be a connection's.
    pub private_fds: bool,
}

impl Default for CoresOptions {
    fn default() -> Self {
        Self { name: "core", cores: 1, permits: usize::MAX, mailbox_max: 4_096, private_fds: false }
    }
}

/// Cores that run. Dropping it does not stop them: tell them by [`Cores::post`], then [`Cores::join`].
pub struct Cores<M> {
    shared: Arc<CoreSetState<M>>,
    threads: Vec<JoinHandle<()>>,
    private_fds: bool,
}

impl<M> Cores<M> {
    /// A way to post to the cores, for the thread that started them or one that shares its fd table.
    pub fn sender(&self) -> MailboxSender<M> {
        MailboxSender::new(Arc::clone(&self.shared.mailboxes), self.shared.tables)
    }

    /// The permits that the cores share.
    pub fn permits(&self) -> &Permits {
        &self.shared.permits
    }

    /// Whether every core has an fd table of its own.
    pub fn private_fds(&self) -> bool {
        self.private_fds
    }

    /// Waits until all cores have returned. True when none of them panicked.
    pub fn join(&mut self) -> bool {
        let ended: Vec<bool> = self.threads.drain(..).map(|thread| thread.join().is_ok()).collect();
        ended.into_iter().all(|fine| fine)
    }

    /// Whether a core has ended.
    pub fn any_ended(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }
}

/// Starts cores. `run` is called on each core's thread with its driver, after the core has its own fd
/// table, and runs the core until it is told to stop. With [`CoresOptions::private_fds`] it must use no
/// fd that was opened elsewhere.
///
/// # Errors
/// Why the first core could not be set up: EMFILE, ENOMEM, EAGAIN. No core has run then, and all threads have ended.
pub fn spawn<M, F>(options: &CoresOptions, run: F) -> Result<Cores<M>, Errno>
where
    M: Send + 'static,
    F: Fn(EpollDriver<M>) + Send + Sync + 'static,
{
    let private_fds = options.private_fds && fdtable::can_be_private().is_ok();
    let limit = fdtable::limit_of_a_table(private_fds);
    let shared = Arc::new(CoreSetState::new(options, private_fds, limit)?);
    let run = Arc::new(run);
    let (ready, is_ready) = mpsc::channel::<Result<(), Errno>>();
    let mut threads = Vec::with_capacity(options.cores);
    let mut goes = Vec::with_capacity(options.cores);
    let mut started = Ok(());
    for core in 0..options.cores {
        let (shared, run, ready) = (Arc::clone(&shared), Arc::clone(&run), ready.clone());
        let (go, may_go) = mpsc::channel();
        let body = move || {
            let driver = slot(core, &shared, private_fds);
            // A core's clones end before its thread is joined, so that what they share is closed in
            // the table that it was opened in.
            drop(shared);
            let _ = ready.send(driver.as_ref().map(drop).map_err(|errno| *errno));
            drop(ready);
            // No word means that another core could not be set up.
            if let (Ok(driver), Ok(())) = (driver, may_go.recv()) {
                run(driver);
            }
        };
        let name = format!("{}-{core}", options.name);
        match std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(body) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                started = Err(Errno(error.raw_os_error().unwrap_or(Errno::AGAIN.0)));
                break;
            }
        }
        goes.push(go);
    }
    drop(ready);
    // All cores have their tables before the starter opens anything that they must not copy.
    for _ in 0..threads.len() {
        started = started.and(is_ready.recv().unwrap_or(Err(Errno::INVALID)));
    }
    let mut cores = Cores { shared, threads, private_fds };
    if let Err(errno) = started {
        drop(goes);
        cores.join();
        return Err(errno);
    }
    goes.into_iter().for_each(|go: mpsc::Sender<()>| go.send(()).unwrap_or_default());
    Ok(cores)
}

/// Virtual; only what is touched counts.
const STACK_BYTES: usize = 1 << 20;

/// What all cores know.
pub(crate) struct CoreSetState<M> {
    pub(crate) mailboxes: Arc<[Mailbox<M>]>,
    pub(crate) slots: Vec<CoreSlot>,
    pub(crate) permits: Permits,
    /// Where the fds of the slots are open.
    tables: Tables,
    /// Sockets that fit into a core's own fd table; none when the table is shared.
    pub(crate) fds_max: Option<usize>,
}

/// The fds of one core that the others use.
pub(crate) struct CoreSlot {
    pub(crate) eventfd: Arc<SharedFd>,
    pub(crate) channel: FdChannel,
    /// Sockets for this core, where all cores share one fd table.
    pub(crate) handoff: HandoffQueue<OwnedFd>,
}

impl CoreSlot {
    pub(crate) fn new(tables: Tables) -> Result<Self, Errno> {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        let eventfd = rustix::event::eventfd(0, flags)?;
        Ok(Self {
            eventfd: Arc::new(SharedFd::new(eventfd, tables)),
            channel: FdChannel::new(tables)?,
            handoff: HandoffQueue::new(),
        })
    }
}

impl<M> CoreSetState<M> {
    fn new(options: &CoresOptions, private_fds: bool, limit: usize) -> Result<Self, Errno> {
        let mut slots = Vec::with_capacity(options.cores);
        let mut mailboxes = Vec::with_capacity(options.cores);
        let tables = Tables::for_new_cores();
        for _ in 0..options.cores {
            let slot = CoreSlot::new(tables)?;
            mailboxes.push(Mailbox::new(options.mailbox_max, Arc::clone(&slot.eventfd)));
            slots.push(slot);
        }
        let fds_max = private_fds.then(|| fdtable::usable(limit, options.cores));
        Ok(Self {
            mailboxes: mailboxes.into(),
            slots,
            permits: Permits::new(options.permits),
            tables,
            fds_max,
        })
    }

    fn kept_fds(&self) -> Vec<RawFd> {
        let fds = |slot: &CoreSlot| {
            [
                slot.eventfd.as_raw_fd(),
                slot.channel.write_end.as_raw_fd(),
                slot.channel.read_end.as_raw_fd(),
            ]
        };
        self.slots.iter().flat_map(fds).collect()
    }
}

fn slot<M: Send>(
    core: CoreId,
    shared: &Arc<CoreSetState<M>>,
    private_fds: bool,
) -> Result<EpollDriver<M>, Errno> {
    if private_fds {
        fdtable::make_private()?;
        fdtable::revoke_all_except(shared.kept_fds())?;
    }
    shared.tables.enter(private_fds);
    EpollDriver::new(core, Arc::clone(shared))
}
