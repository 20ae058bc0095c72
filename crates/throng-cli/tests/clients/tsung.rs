//! Debian's tsung with the configuration of the article about two million WebSockets. Host, port
//! and numbers are those of this machine, and one machine does the work of three.

use std::collections::BTreeMap;
use std::fs::{File, read_dir, read_to_string};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::process::{TestDir, eventually};
use crate::tools::{Tool, clients};

const USERS: u64 = 500;

#[test]
fn tsung_joins_the_lobby_as_the_article_has_it() {
    if Tool::command("tsung", &["-v"]).skips() {
        return;
    }
    let place = TestDir::new();
    // Its `Origin` is a bare address, which fails every check. The article removes the check for
    // the same reason.
    let server = place.serve(&["channels", "--check-origin", "off"]);
    let counted = |group: &str, name: &str| {
        let pid = server.process.pid().to_string();
        place.throng(&["ctl", "snapshot", "--json", "--pid", &pid]).json()[group][name].clone()
    };
    let joined = || counted("counters", "memberships");
    let (host, port) = server.addr.rsplit_once(':').unwrap();
    let config = read_to_string(clients().join("tsung/lobby.xml")).unwrap();
    let config = config.replace("{host}", host).replace("{port}", port);
    let config = config.replace("{users}", &USERS.to_string()).replace("{rate}", "100");
    place.write("lobby.xml", &config);

    let tsung = Tsung::start(&place, "lobby.xml");
    eventually("all are in the lobby", || joined() == USERS);
    // It writes its counters every 10 s, and not all at once.
    let counters = ["users_count", "connected", "websocket_succ", "request"];
    let expected = [USERS, USERS, USERS, 2 * USERS];
    eventually("tsung wrote that all were answered", || {
        counters.map(|name| tsung.counted(name)) == expected
    });
    let names = tsung.stats().into_keys();
    let wrong: Vec<_> =
        names.filter(|name| name.contains("error") || name.contains("fail")).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(joined(), USERS, "all have stayed");
    drop(tsung);
    eventually("all are gone", || joined() == 0 && counted("counters", "open") == 0);
    assert_eq!(counted("core", "panics"), 0);
}

/// tsung and throng send the same, byte for byte and in the same order, but for headers that a
/// client has by its nature.
#[test]
fn throng_sends_what_tsung_sends() {
    if Tool::command("tsung", &["-v"]).skips() {
        return;
    }
    // tsung takes a while to begin and to end.
    let judges = ["http.xml", "websocket.xml", "raw.xml"].map(|file| {
        let judge = move || {
            let Some(of_tsung) = received(file, |place| drop_after(Tsung::start(place, file)))
            else {
                return;
            };
            let of_throng =
                received(file, |place| drop_after(place.start(&["run", file]))).unwrap();
            assert_eq!(of_tsung, of_throng, "{file}");
        };
        std::thread::Builder::new().name(file.to_owned()).spawn(judge).unwrap()
    });
    for judge in judges {
        judge.join().unwrap();
    }
}

/// Returns what a server receives of a tool with this file, one thing a line. `None` if there is no
/// Python here.
fn received(file: &str, start: impl FnOnce(&TestDir) -> Box<dyn std::any::Any>) -> Option<String> {
    let place = TestDir::new();
    let script = read_to_string(clients().join("python/recorder.py")).unwrap();
    let (mut server, port) = place.python(&script)?;
    let config = read_to_string(clients().join("tsung").join(file)).unwrap();
    place.write(file, &config.replace("{host}", "127.0.0.1").replace("{port}", &port));
    let tool = start(&place);
    let mut lines = String::new();
    loop {
        let line = server.line();
        assert!(!line.is_empty(), "{file} did not come to its end:\n{lines}");
        lines += &described(&line, &port);
        if line.contains("/end") {
            drop(tool);
            return Some(lines);
        }
    }
}

fn drop_after<T: 'static>(tool: T) -> Box<dyn std::any::Any> {
    Box::new(tool)
}

/// Describes a thing that arrived, without what two clients never have in common.
fn described(line: &str, port: &str) -> String {
    let event: serde_json::Value = serde_json::from_str(line).unwrap();
    let mut shown = String::new();
    for part in event.as_array().unwrap() {
        let Some(fields) = part.as_array() else {
            shown += &format!("{part} ");
            continue;
        };
        let is_upgrade = fields.iter().any(|field| field[0] == "sec-websocket-key");
        let own: &[&str] = if is_upgrade { &OF_A_HANDSHAKE } else { &["user-agent"] };
        let fields = fields.iter().filter(|field| !own.iter().any(|own| field[0] == *own));
        fields.for_each(|field| shown += &format!("{field} "));
    }
    shown.replace(port, "PORT") + "\n"
}

/// Headers of a handshake that tsung and throng do not have in common: tsung's `host` has no port,
/// the key is random, and tsung names no browser.
const OF_A_HANDSHAKE: [&str; 3] = ["host", "sec-websocket-key", "user-agent"];

/// A tsung with its own folder and name server, so that nothing remains and no other tsung is
/// affected.
struct Tsung {
    group: Child,
    names: Child,
    logs: std::path::PathBuf,
}

impl Tsung {
    fn start(place: &TestDir, file: &str) -> Self {
        let port =
            TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        let mut names = Command::new("epmd");
        names.args(["-address", "127.0.0.1", "-port", &port]);
        let names = names.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let logs = place.path("log");
        let said = File::create(place.path("tsung.out")).unwrap();
        let mut tsung = Command::new("tsung");
        tsung
            .args(["-n", "-i", &port, "-f", file, "-l"])
            .arg(&logs)
            .arg("start")
            .current_dir(place.path("."))
            .env("HOME", place.path("."))
            .env("ERL_EPMD_PORT", &port)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(said.try_clone().unwrap())
            .stderr(said);
        Self { group: tsung.spawn().unwrap(), names, logs }
    }

    /// Returns the latest total of a counter, or the number of a sample, in its log.
    fn counted(&self, name: &str) -> u64 {
        self.stats().get(name).copied().unwrap_or_default()
    }

    /// Parses the log. A line is `stats: counter delta total` or `stats: sample count mean
    /// deviation highest lowest mean count`, where the last count is that of all earlier spans.
    fn stats(&self) -> BTreeMap<String, u64> {
        let Some(run) = read_dir(&self.logs).ok().and_then(|mut runs| runs.next()) else {
            return BTreeMap::new();
        };
        let text = read_to_string(run.unwrap().path().join("tsung.log")).unwrap_or_default();
        let mut stats = BTreeMap::new();
        for line in text.lines().filter_map(|line| line.strip_prefix("stats: ")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| words[at].parse::<f64>().map_or(0, |number| number as u64);
            match words.len() {
                3 => stats.insert(words[0].to_owned(), number(2)),
                8 => stats.insert(words[0].to_owned(), number(1) + number(7)),
                _ => None,
            };
        }
        stats
    }
}

impl Drop for Tsung {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("tsung counted {:#?}", self.stats());
        }
        let _ = kill_process_group(Pid::from_child(&self.group), Signal::KILL);
        let _ = self.group.wait();
        let _ = self.names.kill();
        let _ = self.names.wait();
    }
}
