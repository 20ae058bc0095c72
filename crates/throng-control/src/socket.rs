//! The side that answers: a listener on its own thread, and a thread for each client.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Request, Role, Verb, place};

/// Longest request, in bytes with its line end.
pub const REQUEST_BYTES_MAX: usize = 4_096;
/// Clients at one time; one more is told so and closed.
pub const CLIENTS_MAX: usize = 16;
/// A client that asks nothing for so long is closed.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A process that can be asked and steered. Called on threads of the control socket.
pub trait Controlled: Send + Sync {
    /// What it answers to; `who` is answered in any case.
    fn verbs(&self) -> &[Verb];

    /// Does what `request` says and returns the `data` of the reply.
    ///
    /// # Errors
    /// Why not, in words for the person who asked.
    fn answer(&self, request: &Request) -> Result<Value, String>;
}

/// An open control socket. Dropping it lets replies under way end and removes its file.
pub struct ControlSocket {
    path: PathBuf,
    link: Option<PathBuf>,
    listener: UnixListener,
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
    role: Role,
    title: &str,
    controlled: Arc<dyn Controlled>,
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
        spawn("control", move || accept(&listener, &clients, &answers))?
    };
    Ok(ControlSocket { path, link, listener, thread: Some(thread), clients })
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
        // Shutting a listening socket down ends the accept that waits on it; the standard library
        // shuts down streams only, so the listener is treated as one.
        if let Ok(listener) = self.listener.try_clone() {
            let _ = UnixStream::from(OwnedFd::from(listener)).shutdown(Shutdown::Both);
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
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, UnixStream>> {
        self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Adds one. False when there are too many already.
    fn enter(&self, id: u64, stream: &UnixStream) -> bool {
        let mut open = self.lock();
        let admitted = open.len() < CLIENTS_MAX;
        if admitted && let Ok(stream) = stream.try_clone() {
            open.insert(id, stream);
        }
        admitted
    }

    fn leave(&self, id: u64) {
        self.lock().remove(&id);
        self.one_left.notify_all();
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

fn accept(listener: &UnixListener, clients: &Arc<Clients>, answers: &Arc<Answers>) {
    for id in 0.. {
        match listener.accept() {
            Ok((stream, _)) => {
                if !clients.enter(id, &stream) {
                    let error = format!("{CLIENTS_MAX} clients are connected already");
                    let _ = write(&stream, &failed(&error));
                    continue;
                }
                let (client, answers) = (Arc::clone(clients), Arc::clone(answers));
                let begun = spawn("control-client", move || {
                    // A client that goes away in the midst of it is its own affair.
                    let _ = converse(&stream, &answers);
                    client.leave(id);
                });
                if begun.is_err() {
                    clients.leave(id);
                }
            }
            // The fd table is full for now.
            Err(error) if error.raw_os_error() == Some(EMFILE) => thread::sleep(PAUSE),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The socket was shut down.
            Err(_) => return,
        }
    }
}

const EMFILE: i32 = 24;
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
    role: Role,
    title: String,
    controlled: Arc<dyn Controlled>,
}

impl Answers {
    fn to(&self, line: &str) -> Value {
        let mut verbs = vec![Verb::Who];
        verbs.extend(self.controlled.verbs());
        let data = Request::parse(line, &verbs).and_then(|request| match request.verb {
            Verb::Who => {
                Ok(json!({"pid": std::process::id(), "title": self.title, "verbs": verbs}))
            }
            _ => self.controlled.answer(&request),
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
