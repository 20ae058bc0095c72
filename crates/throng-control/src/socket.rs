//! The side that answers: a listener on its own thread, and a thread for each client.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{ControlRequest, ProcessRole, Verb, place};

/// Longest request, in bytes with its line end.
pub const REQUEST_BYTES_MAX: usize = 4_096;
/// Clients at one time; one more is told so and closed.
pub const CLIENTS_MAX: usize = 16;
/// A client that asks nothing for so long is closed.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A process that can be asked and steered. Called on threads of the control socket.
pub trait ControlTarget: Send + Sync {
    /// What it answers to; `who` is answered in any case.
    fn verbs(&self) -> &[Verb];

    /// Does what `request` says and returns the `data` of the reply.
    ///
    /// # Errors
    /// Why not, in words for the person who asked.
    fn answer(&self, request: &ControlRequest) -> Result<Value, String>;
}

/// An open control socket. Dropping it lets replies under way end and removes its file.
pub struct ControlSocket {
    path: PathBuf,
    link: Option<PathBuf>,
    /// Absent only while it is dropped.
    listener: Option<UnixListener>,
    thread: Option<JoinHandle<()>>,
    clients: Arc<Clients>,
}

/// Opens a control socket at `path`, or at `PID.sock` in this user's folder, and answers there until
/// it is dropped. `title` is what `throng ctl list` shows: the scenario, or the address listened on.
/// A socket elsewhere is linked to from the folder, so that [`processes`](crate::processes) finds it.
///
/// # Errors
/// The socket cannot be made: its path is in the error.
pub fn serve(
    path: Option<&Path>,
    role: ProcessRole,
    title: &str,
    controlled: Arc<dyn ControlTarget>,
) -> io::Result<ControlSocket> {
    let folder = place::folder();
    let usual = folder.join(format!("{}.sock", std::process::id()));
    let folder_is_ours = place::make_folder(&folder).inspect(|()| place::remove_stale(&folder));
    let path = match path {
        Some(path) => std::path::absolute(path)?,
        None => folder_is_ours.as_ref().map(|()| usual.clone()).map_err(copy_of)?,
    };
    place::clear(&path)?;
    let open = || {
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok(listener)
    };
    let listener =
        open().map_err(|e| place::explain(e, "cannot open the control socket", &path))?;
    let link = (folder_is_ours.is_ok() && path != usual && !usual.exists())
        .then(|| {
            let _ = fs::remove_file(&usual);
            symlink(&path, &usual).ok().map(|()| usual)
        })
        .flatten();
    let clients = Arc::<Clients>::default();
    let answers = Arc::new(Answers { role, title: title.to_owned(), controlled });
    let thread = {
        let (listener, clients) = (listener.try_clone()?, Arc::clone(&clients));
        let next = move || listener.accept().map(|(stream, _)| stream);
        spawn("control", move || accept(next, &clients, &answers))?
    };
    Ok(ControlSocket { path, link, listener: Some(listener), thread: Some(thread), clients })
}

impl ControlSocket {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        for path in [Some(&self.path), self.link.as_ref()].into_iter().flatten() {
            let _ = fs::remove_file(path);
        }
        self.clients.are_over.store(true, SeqCst);
        // Shutting a listening socket down ends the accept that waits on it; the standard library
        // shuts down streams only, so the listener is treated as one.
        let listener =
            self.listener.take().map(|listener| UnixStream::from(OwnedFd::from(listener)));
        if let Some(listener) = &listener {
            let _ = listener.shutdown(Shutdown::Both);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.clients.end(LAST_REPLY_TIMEOUT);
    }
}

/// How long a reply under way may still take when the socket is dropped.
const LAST_REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// The connections that are open, so that they can be ended.
#[derive(Default)]
struct Clients {
    open: Mutex<BTreeMap<u64, UnixStream>>,
    one_left: Condvar,
    /// Set before the listener is shut down: from then on an error of accept is its end.
    are_over: AtomicBool,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, UnixStream>> {
        self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Adds one, which has a place until the place is dropped.
    ///
    /// # Errors
    /// There are too many already, or there is no fd for it.
    fn enter(self: &Arc<Self>, id: u64, stream: &UnixStream) -> Result<Place, String> {
        let mut open = self.lock();
        if open.len() >= CLIENTS_MAX {
            return Err(format!("{CLIENTS_MAX} clients are connected already"));
        }
        let stream = stream.try_clone().map_err(|error| error.to_string())?;
        open.insert(id, stream);
        Ok(Place { clients: Arc::clone(self), id })
    }

    /// Lets nobody ask any more and waits until those who did have their replies.
    fn end(&self, patience: Duration) {
        let open = self.lock();
        for stream in open.values() {
            let _ = stream.shutdown(Shutdown::Read);
        }
        let _ = self.one_left.wait_timeout_while(open, patience, |open| !open.is_empty());
    }
}

/// One client's place among [`CLIENTS_MAX`].
struct Place {
    clients: Arc<Clients>,
    id: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clients.lock().remove(&self.id);
        self.clients.one_left.notify_all();
    }
}

/// Serves those who come by `next` until the socket is over. An error of accept is not its end: a
/// machine that is short of fds or memory is the one whose processes somebody wants to ask.
fn accept(
    mut next: impl FnMut() -> io::Result<UnixStream>,
    clients: &Arc<Clients>,
    answers: &Arc<Answers>,
) {
    for id in 0.. {
        match next() {
            Ok(stream) => match clients.enter(id, &stream) {
                Ok(place) => {
                    let answers = Arc::clone(answers);
                    // Without a thread for it the client is closed; a client that goes away in the midst of
                    // it is its own affair.
                    let _ = spawn("control-client", move || {
                        let _place = place;
                        let _ = converse(&stream, &answers);
                    });
                }
                Err(error) => _ = write(&stream, &failed(&error)),
            },
            Err(_) if clients.are_over.load(SeqCst) => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// The rest after an accept that failed: ENFILE, EMFILE, ENOMEM and ENOBUFS pass by themselves.
const PAUSE: Duration = Duration::from_millis(100);

/// Reads a line, answers it, and so on until the client has no more.
fn converse(stream: &UnixStream, answers: &Answers) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE_TIMEOUT))?;
    stream.set_write_timeout(Some(IDLE_TIMEOUT))?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        (&mut reader).take(REQUEST_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        if line.len() == REQUEST_BYTES_MAX && !line.ends_with(b"\n") {
            let error = format!("a request has at most {REQUEST_BYTES_MAX} bytes");
            return write(stream, &failed(&error));
        }
        write(stream, &answers.to(&String::from_utf8_lossy(&line)))?;
    }
}

fn write(mut stream: &UnixStream, reply: &Value) -> io::Result<()> {
    stream.write_all(format!("{reply}\n").as_bytes())
}

/// What the process says to requests.
struct Answers {
    role: ProcessRole,
    title: String,
    controlled: Arc<dyn ControlTarget>,
}

impl Answers {
    /// Has it answered; a panic there is an answer too.
    fn answer(&self, request: &ControlRequest) -> Result<Value, String> {
        let answer = || self.controlled.answer(request);
        catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|_| {
            let verb = request.verb;
            Err(format!("a defect of throng: `{verb}` panicked, see the process' standard error"))
        })
    }

    fn to(&self, line: &str) -> Value {
        let mut verbs = vec![Verb::Who];
        verbs.extend(self.controlled.verbs());
        let data = ControlRequest::parse(line, &verbs).and_then(|request| match request.verb {
            Verb::Who => {
                Ok(json!({"pid": std::process::id(), "title": self.title, "verbs": verbs}))
            }
            _ => self.answer(&request),
        });
        match data {
            Ok(data) => json!({"ok": true, "role": self.role, "data": data}),
            Err(error) => failed(&error),
        }
    }
}

fn failed(error: &str) -> Value {
    json!({"ok": false, "error": error})
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(body)
}

const STACK_BYTES: usize = 256 << 10;

fn copy_of(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::ControlClient;

    /// Panics when it is asked for a snapshot.
    struct Fragile;

    impl ControlTarget for Fragile {
        fn verbs(&self) -> &[Verb] {
            &[Verb::Snapshot, Verb::Count]
        }

        fn answer(&self, request: &ControlRequest) -> Result<Value, String> {
            assert_ne!(request.verb, Verb::Snapshot, "as the test wants it");
            Ok(json!({"open": 7}))
        }
    }

    fn answers() -> Arc<Answers> {
        let controlled = Arc::new(Fragile);
        Arc::new(Answers { role: ProcessRole::Server, title: String::new(), controlled })
    }

    #[test]
    fn no_error_of_accept_ends_the_socket_but_its_own_end() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let errnos = [ENFILE, ENOMEM, ENOBUFS, ECONNABORTED, EMFILE, EINTR, EIO];
        let mut script: VecDeque<io::Result<UnixStream>> =
            errnos.map(|errno| Err(io::Error::from_raw_os_error(errno))).into();
        script.push_back(Ok(theirs));
        let clients = Arc::<Clients>::default();
        let next = {
            let clients = Arc::clone(&clients);
            move || {
                script.pop_front().unwrap_or_else(|| {
                    clients.are_over.store(true, SeqCst);
                    Err(io::Error::from_raw_os_error(EINVAL))
                })
            }
        };
        accept(next, &clients, &answers());
        (&ours).write_all(b"{\"verb\":\"count\"}\n").unwrap();
        let mut reply = String::new();
        BufReader::new(&ours).read_line(&mut reply).unwrap();
        assert!(reply.contains("\"open\":7"), "{reply}");
    }

    const EINTR: i32 = 4;
    const EIO: i32 = 5;
    const ENOMEM: i32 = 12;
    const EINVAL: i32 = 22;
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ECONNABORTED: i32 = 103;
    const ENOBUFS: i32 = 105;

    #[test]
    fn an_answer_that_panics_is_an_answer_and_loses_no_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("throng.sock");
        let _socket = serve(Some(&path), ProcessRole::Server, "", Arc::new(Fragile)).unwrap();
        for _ in 0..2 * CLIENTS_MAX {
            // A place is free a moment after its client has gone.
            let asked = (0..1_000).find_map(|_| {
                let mut client = ControlClient::connect(&path).unwrap();
                let error =
                    client.ask(&ControlRequest::new(Verb::Snapshot)).unwrap_err().to_string();
                if error.contains("clients are connected") || error.contains("ended before") {
                    thread::sleep(Duration::from_millis(5));
                    return None;
                }
                Some((client, error))
            });
            let (mut client, error) = asked.expect("a place");
            assert!(error.contains("`snapshot` panicked"), "{error}");
            assert_eq!(client.ask(&ControlRequest::new(Verb::Count)).unwrap().data["open"], 7);
        }
    }
}
