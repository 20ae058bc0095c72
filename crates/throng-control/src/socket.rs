//! The server of a control socket: a listener on its own thread, and a thread for each client.

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

/// The longest request, in bytes with its line end.
pub const REQUEST_BYTES_MAX: usize = 4_096;
/// The most clients at a time. A further client receives an error and is closed.
pub const CLIENTS_MAX: usize = 16;
/// The time without a request after which a client is closed.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A process that answers requests. Called on threads of the control socket.
pub trait ControlTarget: Send + Sync {
    /// Returns the verbs that it supports; `who` is answered in any case.
    fn verbs(&self) -> &[Verb];

    /// Executes `request` and returns the `data` of the reply.
    ///
    /// # Errors
    /// The reason for the refusal, for the user who sent the request.
    fn answer(&self, request: &ControlRequest) -> Result<Value, String>;
}

/// An open control socket. Dropping it waits for replies in progress and removes its file.
pub struct ControlSocket {
    path: PathBuf,
    link: Option<PathBuf>,
    /// Absent only while the socket is dropped.
    listener: Option<UnixListener>,
    thread: Option<JoinHandle<()>>,
    clients: Arc<Clients>,
}

/// Opens a control socket at `path`, or at `PID.sock` in this user's folder, and answers there
/// until it is dropped. `throng ctl list` shows `title`: the scenario, or the listening address. A
/// socket elsewhere gets a symlink in the folder, so that [`processes`](crate::processes) finds it.
///
/// # Errors
/// The socket cannot be created; the error contains its path.
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
    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        for path in [Some(&self.path), self.link.as_ref()].into_iter().flatten() {
            let _ = fs::remove_file(path);
        }
        self.clients.are_closing.store(true, SeqCst);
        // Shutting down a listening socket ends the blocked accept. The standard library shuts down
        // streams only, so the listener is converted to a stream.
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

/// The time that a reply in progress may take after the socket is dropped.
const LAST_REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// The open connections, so that they can be closed.
#[derive(Default)]
struct Clients {
    open: Mutex<BTreeMap<u64, UnixStream>>,
    client_left: Condvar,
    /// Set before the listener is shut down: from then on an error of accept ends the loop.
    are_closing: AtomicBool,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, UnixStream>> {
        self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Adds a client, which counts until the returned place is dropped.
    ///
    /// # Errors
    /// There are too many clients already, or no fd is free.
    fn enter(self: &Arc<Self>, id: u64, stream: &UnixStream) -> Result<Place, String> {
        let mut open = self.lock();
        if open.len() >= CLIENTS_MAX {
            return Err(format!("{CLIENTS_MAX} clients are connected already"));
        }
        let stream = stream.try_clone().map_err(|error| error.to_string())?;
        open.insert(id, stream);
        Ok(Place { clients: Arc::clone(self), id })
    }

    /// Refuses further requests and waits until the pending replies are sent.
    fn end(&self, patience: Duration) {
        let open = self.lock();
        for stream in open.values() {
            let _ = stream.shutdown(Shutdown::Read);
        }
        let _ = self.client_left.wait_timeout_while(open, patience, |open| !open.is_empty());
    }
}

/// A client's place among [`CLIENTS_MAX`].
struct Place {
    clients: Arc<Clients>,
    id: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clients.lock().remove(&self.id);
        self.clients.client_left.notify_all();
    }
}

/// Serves the clients that `next` returns until the socket is closed. An error of accept does not
/// end the loop: the processes of a machine short of fds or memory are those that need inspection.
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
                    // If no thread can be started, the client is closed. An error of the connection
                    // concerns only this client.
                    let _ = spawn("control-client", move || {
                        let _place = place;
                        let _ = converse(&stream, &answers);
                    });
                }
                Err(error) => _ = write(&stream, &failed(&error)),
            },
            Err(_) if clients.are_closing.load(SeqCst) => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// The pause after a failed accept: ENFILE, EMFILE, ENOMEM and ENOBUFS pass by themselves.
const PAUSE: Duration = Duration::from_millis(100);

/// Reads a line and answers it, until the client closes the connection.
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
        write(stream, &answers.reply_to(&String::from_utf8_lossy(&line)))?;
    }
}

fn write(mut stream: &UnixStream, reply: &Value) -> io::Result<()> {
    stream.write_all(format!("{reply}\n").as_bytes())
}

/// The answers of the process.
struct Answers {
    role: ProcessRole,
    title: String,
    controlled: Arc<dyn ControlTarget>,
}

impl Answers {
    /// Returns the target's answer; a panic becomes an error.
    fn answer(&self, request: &ControlRequest) -> Result<Value, String> {
        let answer = || self.controlled.answer(request);
        catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|_| {
            let verb = request.verb;
            Err(format!("bug in throng: `{verb}` panicked, see the process's standard error"))
        })
    }

    fn reply_to(&self, line: &str) -> Value {
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

    /// A target that panics on a snapshot.
    struct Fragile;

    impl ControlTarget for Fragile {
        fn verbs(&self) -> &[Verb] {
            &[Verb::Snapshot, Verb::Count]
        }

        fn answer(&self, request: &ControlRequest) -> Result<Value, String> {
            assert_ne!(request.verb, Verb::Snapshot, "the test's panic");
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
                    clients.are_closing.store(true, SeqCst);
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
            // A place becomes free a moment after its client disconnects.
            let answered = (0..1_000).find_map(|_| {
                let mut client = ControlClient::connect(&path).unwrap();
                let error =
                    client.request(&ControlRequest::new(Verb::Snapshot)).unwrap_err().to_string();
                if error.contains("clients are connected") || error.contains("ended before") {
                    thread::sleep(Duration::from_millis(5));
                    return None;
                }
                Some((client, error))
            });
            let (mut client, error) = answered.expect("a place");
            assert!(error.contains("`snapshot` panicked"), "{error}");
            assert_eq!(client.request(&ControlRequest::new(Verb::Count)).unwrap().data["open"], 7);
        }
    }
}
