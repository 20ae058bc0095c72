//! Both ends under one limit: what the preflight says of it, and what becomes of a run.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use throng_driver::netns;

/// Where both ends run: a folder, and the command behind which each of them is started.
pub(crate) struct Bench {
    dir: TempDir,
    prefix: Vec<String>,
    server: Option<Child>,
    /// The server's address, once it listens.
    addr: String,
    /// Flags of the generator and of the preflight alike: `--cores`, `--source`.
    flags: Vec<String>,
    /// Held so that nobody makes small meanwhile what the whole machine shares.
    _unchanged: Option<File>,
}

/// What a run came to.
pub(crate) struct Came {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
    summary: Value,
}

impl Bench {
    /// Everything is started behind `prefix`, `["prlimit", "--nofile=200:200"]`.
    pub(crate) fn behind(prefix: &[&str]) -> Self {
        let unchanged = crate::machinewide::hold_unchanged();
        Self::new(prefix, unchanged)
    }

    /// The same for a test that is going to change that itself, and takes the lock for it.
    pub(crate) fn changing(prefix: &[&str]) -> Self {
        Self::new(prefix, None)
    }

    fn new(prefix: &[&str], unchanged: Option<File>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // Another user may work here too.
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

    /// The same in a new network namespace, into which this thread moves. `None`, with the reason printed, where that is
    /// not permitted.
    pub(crate) fn in_namespace(lines: &str) -> Option<Self> {
        enter_namespace(lines).then(|| Self::behind(&[]))
    }

    /// The same, with flags that both the generator and the preflight get.
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

    /// The preflight for `connections`, as JSON.
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

    /// Holds `connections` for a moment, with more `flags`.
    pub(crate) fn run(&self, connections: u64, flags: &[&str]) -> Came {
        let scenario = format!(
            "target: tcp://{}\nload: [{{ramp: {{to: {connections}, over: 1s}}}}, {{hold: {{for: 1s}}}}]\nuser: [connect, stay]\n",
            self.target()
        );
        std::fs::write(self.path("hold.yaml"), scenario).unwrap();
        let mut command =
            self.throng(&["run", "hold.yaml", "--no-calibrate", "--no-record", "--json", "-"]);
        command.args(&self.flags).args(flags);
        Came::from(command.output().unwrap())
    }

    /// The preflight says that the limit `id` comes first; as many as it holds are really held, all of them, and one more is
    /// refused for that limit. Returns how many that are.
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

    /// Really tried, `connections` do not all come to be, for this reason; without one they are still under way.
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

    /// A file of this bench.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The server's port on an address at which it listens too.
    fn target(&self) -> &str {
        if self.addr.is_empty() { "127.0.0.1:5555" } else { &self.addr }
    }

    /// A command of throng, behind the prefix.
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
    /// It was run: a machine that is busy with other things makes it invalid, and nothing else wrong.
    #[track_caller]
    pub(crate) fn ran(&self) {
        assert!(matches!(self.code, Some(0 | 3)), "{:?} {}", self.code, self.stderr);
    }

    /// Connections that were established.
    pub(crate) fn established(&self) -> u64 {
        self.summary["connect"]["ok"].as_u64().unwrap_or(0)
    }

    /// Connects that failed, for whatever reason.
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

/// The filter of a container, in front of a command; `None`, with the reason printed, where there is no Python.
pub(crate) fn confined(flags: &[&str]) -> Option<Vec<String>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/preflight/confine.py");
    let works = Command::new("python3").arg(script).args(flags).arg("true").output();
    if !works.is_ok_and(|output| output.status.success()) {
        println!("skipped: python3 cannot set a system-call filter here");
        return None;
    }
    Some(["python3", script].iter().chain(flags).map(|&word| word.to_owned()).collect())
}

/// Moves this thread into a new network namespace and runs lines of shell there; false, with the reason printed, where that is
/// not possible.
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
