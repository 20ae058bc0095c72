//! One network namespace, held by a thread that runs jobs in it.

use std::fs;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use throng_driver::{Errno, netns};
use throng_machine::sysctl::sysctl_path;

use super::error::IsolateError;

type Job = Box<dyn FnOnce() + Send>;

/// A namespace without a name. Child processes of its thread start in it.
#[derive(Debug)]
pub(super) struct Namespace {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    path: String,
}

impl Namespace {
    /// Creates a namespace whose TCP hash table has `buckets` buckets.
    pub(super) fn new(name: &str, buckets: u64) -> Result<Self, IsolateError> {
        let (jobs, pending) = mpsc::channel::<Job>();
        let (ready, is_ready) = mpsc::channel();
        let run = move || {
            let path = unshare_with(buckets);
            let is_unshared = path.is_ok();
            let _ = ready.send(path);
            if is_unshared {
                pending.into_iter().for_each(|job| job());
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        let thread = thread.map_err(|error| IsolateError::Setup(error.to_string()))?;
        let path =
            is_ready.recv().unwrap_or(Err(Errno::PERMISSION)).map_err(IsolateError::Unshare)?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), path })
    }

    /// Returns the file of `/proc` that identifies the namespace.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Starts a process in the namespace.
    pub(super) fn spawn(&self, mut command: Command) -> io::Result<Child> {
        self.run(move || command.spawn())
    }

    /// Runs `lines` as an `ip` batch in the namespace.
    pub(super) fn ip(&self, lines: &str) -> Result<(), IsolateError> {
        let mut command = Command::new("ip");
        command.args(["-batch", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = self.spawn(command).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => IsolateError::NoIp,
            _ => IsolateError::Setup(format!("cannot start ip: {error}")),
        })?;
        let fail = |error: io::Error| IsolateError::Setup(format!("ip: {error}"));
        // The pipe is closed at the end of the statement, which ends the batch.
        child
            .stdin
            .take()
            .map_or(Ok(()), |mut stdin| stdin.write_all(lines.as_bytes()))
            .map_err(fail)?;
        let output = child.wait_with_output().map_err(fail)?;
        if output.status.success() {
            return Ok(());
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(IsolateError::Setup(format!("ip failed: {}", stderr.trim())))
    }

    /// Sets a sysctl of the namespace, such as `net.ipv4.tcp_fin_timeout`.
    pub(super) fn set_sysctl(
        &self,
        name: &'static str,
        value: impl Into<String>,
    ) -> Result<(), IsolateError> {
        let value = value.into();
        self.run(move || {
            fs::write(format!("/{}", sysctl_path(name)), &value)
                .map_err(|error| IsolateError::Setup(format!("sysctl {name} = {value}: {error}")))
        })
    }

    /// Returns the buckets of the namespace's own TCP hash table; none where it shares the
    /// machine's.
    pub(super) fn buckets(&self) -> Option<u64> {
        let read = || fs::read_to_string("/proc/sys/net/ipv4/tcp_ehash_entries").ok();
        // The kernel negates the size of a table that is not the namespace's own.
        self.run(read)?.trim().parse().ok()
    }

    /// Runs `job` on the namespace's thread and returns its result.
    pub(super) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = mpsc::channel();
        let jobs = self.jobs.as_ref().expect("kept until the namespace is dropped");
        let job = Box::new(move || _ = done.send(job()));
        jobs.send(job).expect("the thread runs jobs until then");
        result.recv().expect("a job does not panic")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Moves the thread into a new namespace and returns its file of `/proc`. The parent namespace has
/// the sysctl for the size of the table, so there is a namespace in between: the host's own sysctl
/// stays unchanged.
fn unshare_with(buckets: u64) -> Result<String, Errno> {
    netns::unshare()?;
    // Kernels before 6.1 have one table for all namespaces, and no such sysctl.
    if fs::write("/proc/sys/net/ipv4/tcp_child_ehash_entries", buckets.to_string()).is_ok() {
        netns::unshare()?;
    }
    // The link is read here: in another process `thread-self` is that process's thread.
    let task = fs::read_link("/proc/thread-self").map_err(|_| Errno::PERMISSION)?;
    Ok(format!("/proc/{}/ns/net", task.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_sysctls_and_a_table_of_its_own() {
        let somaxconn = || fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        let before = somaxconn();
        let namespace = match Namespace::new("test", 4096) {
            Ok(namespace) => namespace,
            Err(error) => return println!("skipped: {error}"),
        };
        namespace.set_sysctl("net.core.somaxconn", "321").unwrap();
        assert_eq!(namespace.run(somaxconn), "321\n");
        assert_eq!(somaxconn(), before, "the host's is untouched");
        let entries = namespace.run(|| fs::read_to_string("/proc/sys/net/ipv4/tcp_ehash_entries"));
        if let Ok(entries) = entries {
            assert_eq!(entries.trim(), "4096");
        }
    }

    #[test]
    fn a_failing_ip_names_the_cause() {
        let Ok(namespace) = Namespace::new("test", 4096) else {
            return println!("skipped: not root");
        };
        match namespace.ip("link set nothing up\n") {
            Err(IsolateError::Setup(what)) => assert!(what.contains("nothing"), "{what}"),
            Err(IsolateError::NoIp) => println!("skipped: ip is not installed"),
            other => panic!("{other:?}"),
        }
    }
}
