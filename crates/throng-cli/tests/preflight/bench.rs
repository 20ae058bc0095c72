//! Server and generator under one limit: the result of the preflight, and the result of a run.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use throng_driver::netns;

/// The test bed of server and generator: a folder, and the command prefix of both.
pub(crate) struct Bench {
    dir: TempDir,
    prefix: Vec<String>,
    server: Option<Child>,
    /// The server's address, once it listens.
    addr: String,
    /// The flags of the generator and of the preflight: `--cores`, `--source`.
    flags: Vec<String>,
    /// The lock that prevents other tests from changing limits of the whole machine.
    _unchanged: Option<File>,
}

/// The result of a run.
pub(crate) struct Came {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
    summary: Value,
}

impl Bench {
    /// Creates a test bed that starts every process with the command `prefix`, for example
    /// `["prlimit", "--nofile=200:200"]`.
    pub(crate) fn behind(prefix: &[&str]) -> Self {
        let unchanged = crate::machinewide::hold_unchanged();
        Self::new(prefix, unchanged)
    }

    /// Creates a test bed for a test that changes limits of the machine itself, and takes the lock
    /// for it.
    pub(crate) fn changing(prefix: &[&str]) -> Self {
        Self::new(prefix, None)
    }

    fn new(prefix: &[&str], unchanged: Option<File>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // Another user may work here, too.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(dir.path(), open).unwrap();
        let prefix = prefix.iter().map(|&word| word.to_owned()).collect();
        Self {
            dir,
            prefix,
            server: None,
            addr: String::new(),
            flags: Vec::new(),
            _unchanged: unchanged,
        }
    }

    /// Creates a test bed in a new network namespace, into which this thread moves. Returns `None`,
    /// and prints the reason, where that is not permitted.
    pub(crate) fn in_namespace(lines: &str) -> Option<Self> {
        enter_namespace(lines).then(|| Self::behind(&[]))
    }

    /// Adds flags for both the generator and the preflight.
    pub(crate) fn with(mut self, flags: &[&str]) -> Self {
        self.flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        self
    }

    /// Starts `throng serve hold` on `listen` with more `args`.
    pub(crate) fn serve(&mut self, listen: &str, args: &[&str]) {
        let mut command =
            self.throng(&["serve", "hold", "--listen", listen, "--json", "--exit-with-parent"]);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let hello: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        self.addr = hello["addr"].as_str().unwrap().to_owned();
        self.server = Some(server);
    }

    /// Runs the preflight for `connections` and returns its JSON.
    pub(crate) fn preflight(&self, connections: u64) -> Value {
        let target = format!("tcp://{}", self.target());
        let mut command = self.throng(&[
            "doctor",
            "--for",
            &connections.to_string(),
            "--target",
            &target,
            "--json",
        ]);
        command.args(&self.flags);
        let output = command.output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// Runs a load that holds `connections` for a moment, with more `flags`.
    pub(crate) fn run(&self, connections: u64, flags: &[&str]) -> Came {
        let scenario = format!(
            "target: tcp://{}\n\
             load: [{{ramp: {{to: {connections}, over: 1s}}}}, {{hold: {{for: 1s}}}}]\n\
             user: [connect, stay]\n",
            self.target()
        );
        std::fs::write(self.path("hold.yaml"), scenario).unwrap();
        self.wait_for_ports();
        let mut command =
            self.throng(&["run", "hold.yaml", "--no-calibrate", "--no-record", "--json", "-"]);
        command.args(&self.flags).args(flags);
        Came::from(command.output().unwrap())
    }

    /// Waits until the ports of an earlier run are free: its connections have ended, and the kernel
    /// uses a port in TIME-WAIT again after a second (`net.ipv4.tcp_tw_reuse`).
    fn wait_for_ports(&self) {
        let port = self.target().rsplit_once(':').expect("an address has a port").1;
        let port: u16 = port.parse().expect("a port is a number");
        let is_free = || connection_states(port).all(|state| state == TIME_WAIT);
        let polls = (0..POLLS_MAX).take_while(|_| !is_free());
        polls.for_each(|_| std::thread::sleep(POLL));
        assert!(is_free(), "the connections of an earlier run have not ended");
        if connection_states(port).next().is_some() {
            std::thread::sleep(2 * TW_REUSE_AFTER);
        }
    }

    /// Asserts that the preflight names the limit `id` first, that a run holds as many connections
    /// as it permits, and that one more is refused for that limit. Returns the number of
    /// connections.
    #[track_caller]
    pub(crate) fn is_exact(&self, id: &str) -> u64 {
        let said = self.preflight(1);
        let holds = said["holds"].as_u64().unwrap_or_else(|| panic!("{said}"));
        let checks = said["checks"].as_array().unwrap();
        let first = checks.iter().find(|check| check["stops"] == true && check["holds"] == holds);
        let first = first.unwrap_or_else(|| panic!("{said}"));
        assert_eq!(first["id"], id, "{said}");
        assert!(
            self.preflight(holds)["fits"] == true && self.preflight(holds + 1)["fits"] == false
        );

        let came = self.run(holds, &[]);
        came.ran();
        assert_eq!(came.established(), holds, "{}", came.stderr);
        assert_eq!(came.failed(), 0, "{}", came.stderr);

        let refused = self.run(holds + 1, &[]);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        let limit = first["limit"].as_str().unwrap();
        for part in ["do not fit", limit, "--force"] {
            assert!(refused.stderr.contains(part), "{part:?} is not in {}", refused.stderr);
        }
        holds
    }

    /// Asserts that a forced run of `connections` fails for this reason, or, without a reason, that
    /// some are still connecting.
    #[track_caller]
    pub(crate) fn fails_when_forced(&self, connections: u64, reason: &str) {
        let came = self.run(connections, &["--force"]);
        let failed = &came.summary["connect"]["failed"];
        assert!(came.established() < connections, "{}", came.stderr);
        assert!(
            reason.is_empty() || failed[reason].as_u64() > Some(0),
            "{failed}: {}",
            came.stderr
        );
    }

    /// Returns the path of a file of this test bed.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns an address at which the server listens, with its port.
    fn target(&self) -> &str {
        if self.addr.is_empty() { "127.0.0.1:5555" } else { &self.addr }
    }

    /// Returns a command of throng with the prefix.
    pub(crate) fn throng(&self, args: &[&str]) -> Command {
        let binary = env!("CARGO_BIN_EXE_throng").to_owned();
        let mut words = self.prefix.iter().chain([&binary]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(args).current_dir(self.dir.path());
        command.env("XDG_RUNTIME_DIR", self.dir.path()).stdin(Stdio::null());
        command
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl Came {
    /// Asserts that the run took place. A busy machine makes it invalid, without any other effect.
    #[track_caller]
    pub(crate) fn ran(&self) {
        assert!(matches!(self.code, Some(0 | 3)), "{:?} {}", self.code, self.stderr);
    }

    /// Returns the number of established connections.
    pub(crate) fn established(&self) -> u64 {
        self.summary["connect"]["ok"].as_u64().unwrap_or(0)
    }

    /// Returns the number of failed connects.
    pub(crate) fn failed(&self) -> u64 {
        let reasons = self.summary["connect"]["failed"].as_object();
        reasons.map_or(0, |reasons| reasons.values().filter_map(Value::as_u64).sum())
    }
}

impl From<Output> for Came {
    fn from(output: Output) -> Self {
        let mut stderr = String::new();
        let _ = (&output.stderr[..]).read_to_string(&mut stderr);
        let summary = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        Self { code: output.status.code(), stderr, summary }
    }
}

/// Returns the command prefix that applies the filter of a container; `None`, with the reason
/// printed, where there is no Python.
pub(crate) fn confined(flags: &[&str]) -> Option<Vec<String>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/preflight/confine.py");
    let works = Command::new("python3").arg(script).args(flags).arg("true").output();
    if !works.is_ok_and(|output| output.status.success()) {
        println!("skipped: python3 cannot set a system-call filter here");
        return None;
    }
    Some(["python3", script].iter().chain(flags).map(|&word| word.to_owned()).collect())
}

/// Moves this thread into a new network namespace and runs lines of shell there. Returns false, and
/// prints the reason, where that is not possible.
pub(crate) fn enter_namespace(lines: &str) -> bool {
    if let Err(errno) = netns::unshare() {
        println!("skipped: a network namespace needs root: {errno}");
        return false;
    }
    let lines = format!("ip link set lo up\n{lines}");
    let output = Command::new("sh").args(["-ec", &lines]).output().expect("a shell");
    if !output.status.success() {
        println!("skipped: {lines}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    output.status.success()
}

/// Returns the state of each TCP connection of this thread's network namespace with `port` at
/// either end, listeners left out.
fn connection_states(port: u16) -> impl Iterator<Item = u8> {
    let tables = ["tcp", "tcp6"].map(|name| {
        std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default()
    });
    let states = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let ports = [fields.next()?, fields.next()?];
        let state = u8::from_str_radix(fields.next()?, 16).ok()?;
        let has_port = |address: &str| {
            let hex = address.rsplit_once(':').map_or("", |(_, hex)| hex);
            u16::from_str_radix(hex, 16) == Ok(port)
        };
        (state != LISTEN && ports.into_iter().any(has_port)).then_some(state)
    };
    let found: Vec<u8> = tables.iter().flat_map(|table| table.lines().filter_map(states)).collect();
    found.into_iter()
}

const POLL: Duration = Duration::from_millis(20);
const POLLS_MAX: u32 = 3_000;

/// States as `/proc/net/tcp` writes them.
const LISTEN: u8 = 0x0a;
const TIME_WAIT: u8 = 0x06;

/// Time for which the kernel keeps a port in TIME-WAIT from a new connection to the same peer.
const TW_REUSE_AFTER: Duration = Duration::from_secs(1);
