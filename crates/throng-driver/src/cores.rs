//! The threads of the cores. Each has a mailbox, fds that the other cores use, and its own fd table
//! where that is possible.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use crate::core_set::CoreSetState;
use crate::{CoreId, DriverFactory, Errno, MailboxSender, Permits, ThreadLink, fdtable, process};

/// Options of a set of cores.
#[derive(Clone, Debug)]
pub struct CoresOptions {
    /// Prefix of the threads' names: `name-0`, `name-1`, …. Default `core`.
    pub name: &'static str,
    /// Number of cores. Default 1.
    pub cores: usize,
    /// Permits that the cores share. Default: no limit.
    pub permits: usize,
    /// Messages that a mailbox may hold before it refuses bulk messages. Default 4,096.
    pub mailbox_max: usize,
    /// Give every core its own fd table, so that each core holds as many fds as the limit allows,
    /// and cores do not wait for one table's lock. Where the machine refuses it (see
    /// [`fdtable::can_be_private`]), all cores share one table. Default false.
    ///
    /// **With its own table, a core's fd works on that core's thread only.** If `run` captures a
    /// value that owns an fd (a `File`, a socket, a logger that writes to one), that fd does not
    /// work on a core: every use fails with EBADF. Do not move an fd to a core that another thread
    /// opened *later*: on the core, its number may belong to a connection.
    pub private_fds: bool,
}

impl Default for CoresOptions {
    fn default() -> Self {
        Self { name: "core", cores: 1, permits: usize::MAX, mailbox_max: 4_096, private_fds: false }
    }
}

/// Running cores. A drop does not stop them: send them a message through [`Cores::sender`], then
/// call [`Cores::join`].
pub struct Cores<M> {
    shared: Arc<CoreSetState<M>>,
    threads: Vec<JoinHandle<()>>,
    private_fds: bool,
}

impl<M> Cores<M> {
    /// Returns a sender of messages to the cores, for the thread that started them and for threads
    /// that share its fd table.
    pub fn sender(&self) -> MailboxSender<M> {
        MailboxSender::new(Arc::clone(&self.shared.mailboxes), self.shared.tables)
    }

    /// Returns the permits that the cores share.
    pub fn permits(&self) -> &Permits {
        &self.shared.permits
    }

    /// Reports whether every core has its own fd table.
    pub fn private_fds(&self) -> bool {
        self.private_fds
    }

    /// Waits until all cores have ended. Returns true if none of them panicked.
    pub fn join(&mut self) -> bool {
        let results: Vec<bool> =
            self.threads.drain(..).map(|thread| thread.join().is_ok()).collect();
        results.into_iter().all(|is_ok| is_ok)
    }

    /// Returns the CPU time of each core's thread since it began, in microseconds; empty if a core
    /// has ended.
    pub fn cpu_us(&self) -> Vec<u64> {
        let times: Option<Vec<u64>> = self.threads.iter().map(process::thread_cpu_us).collect();
        times.unwrap_or_default()
    }

    /// Reports whether a core has ended.
    pub fn any_ended(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }
}

/// Starts cores. Each core's thread gets its own fd table, then a driver that `factory` makes
/// there, and calls `run` with it; `run` returns when the core ends. With
/// [`CoresOptions::private_fds`], `run` must not use fds that were opened elsewhere.
///
/// # Errors
/// The first error of a core's setup: EMFILE, ENOMEM, EAGAIN. Then no core has run, and all threads
/// have ended.
pub fn spawn<M: Send + 'static, F: DriverFactory>(
    options: &CoresOptions,
    factory: F,
    run: impl Fn(F::Driver<M>) + Send + Sync + 'static,
) -> Result<Cores<M>, Errno> {
    let private_fds = options.private_fds && fdtable::can_be_private().is_ok();
    let limit = fdtable::limit_of_a_table(private_fds);
    let fds_max = private_fds.then(|| fdtable::usable(limit, options.cores));
    let permits = Permits::new(options.permits);
    let shared = Arc::new(CoreSetState::new(options.cores, options.mailbox_max, permits, fds_max)?);
    let run = Arc::new(run);
    let (ready, is_ready) = mpsc::channel::<Result<(), Errno>>();
    let mut threads = Vec::with_capacity(options.cores);
    let mut start_signals = Vec::with_capacity(options.cores);
    let mut started = Ok(());
    for core in 0..options.cores {
        let (shared, run, ready) = (Arc::clone(&shared), Arc::clone(&run), ready.clone());
        let factory = factory.clone();
        let (start, may_start) = mpsc::channel();
        let body = move || {
            let driver = set_up(&factory, core, &shared, private_fds);
            // Drop the clone before the thread ends, so that the shared fds are closed in the table
            // in which they were opened.
            drop(shared);
            let _ = ready.send(driver.as_ref().map(drop).map_err(|errno| *errno));
            drop(ready);
            // A closed channel means that the setup of another core failed.
            if let (Ok(driver), Ok(())) = (driver, may_start.recv()) {
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
        start_signals.push(start);
    }
    drop(ready);
    // Wait until all cores have their tables: the caller may open fds later that they must not
    // copy.
    for _ in 0..threads.len() {
        started = started.and(is_ready.recv().unwrap_or(Err(Errno::INVALID)));
    }
    let mut cores = Cores { shared, threads, private_fds };
    if let Err(errno) = started {
        drop(start_signals);
        cores.join();
        return Err(errno);
    }
    start_signals
        .into_iter()
        .for_each(|start: mpsc::Sender<()>| start.send(()).unwrap_or_default());
    Ok(cores)
}

/// Stack size of a core's thread. It is virtual memory: only touched pages count.
const STACK_BYTES: usize = 1 << 20;

/// Gives the calling thread its fd table, if `private_fds`, and creates its driver.
fn set_up<M: Send + 'static, F: DriverFactory>(
    factory: &F,
    core: CoreId,
    shared: &Arc<CoreSetState<M>>,
    private_fds: bool,
) -> Result<F::Driver<M>, Errno> {
    if private_fds {
        fdtable::make_private()?;
        fdtable::revoke_all_except(shared.kept_fds())?;
    }
    shared.tables.enter(private_fds);
    factory.make(ThreadLink::new(core, Arc::clone(shared)))
}
