//! Agents of a fleet over a real NATS server, and their start on hosts that a script in place of
//! ssh plays: each has a home of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

use crate::nats_server::NatsServer;
use crate::process::{Finished, Running, TestDir, eventually, run_file};

/// A bus, and the folder of a test.
pub(crate) struct Fleet {
    server: NatsServer,
    pub(crate) place: TestDir,
}

impl Fleet {
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    fn start_with(options: &[&str]) -> Option<Self> {
        Some(Self { server: NatsServer::start_with(options)?, place: TestDir::new() })
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.server.port())
    }

    /// Starts an agent of a group and waits until it has joined.
    pub(crate) fn agent(&self, group: &str, name: &str) -> Running {
        let bus = self.url();
        let mut agent = self.place.start(&[
            "agent",
            "--bus",
            &bus,
            "--bus-group",
            group,
            "--name",
            name,
            "--no-calibrate",
        ]);
        agent.line_with("waiting for a run");
        agent
    }

    /// Runs a command of `throng fleet`, which finds the bus in its environment.
    pub(crate) fn run(&self, args: &[&str]) -> Finished {
        self.run_with(&self.url(), args)
    }

    fn run_with(&self, bus: &str, args: &[&str]) -> Finished {
        let mut command = self.place.command(&[&["fleet"], args].concat());
        Finished::from(command.env("THRONG_BUS", bus).output().unwrap())
    }

    fn names(&self, group: &str) -> Vec<String> {
        let listed = self.run(&["ls", "--json", "--group", group]).json();
        let agents = listed.as_array().unwrap().iter();
        agents.map(|agent| agent["facts"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Writes a script in place of ssh: it runs the command on this machine, in the home directory
    /// of the host that it got.
    fn ssh(&self) -> String {
        let path = self.place.path("ssh");
        let homes = self.place.path("homes");
        let script = format!(
            "#!/bin/sh
echo \"$*\" >>{homes}.options
while [ \"$1\" != -- ]; do shift; done
if [ \"$2\" = away ]; then echo 'ssh: connect to host away port 22: No route' >&2; exit 255; fi
export HOME={homes}/$2
mkdir -p \"$HOME\" && cd && echo Welcome! && exec sh -c \"$3\"
",
            homes = homes.display()
        );
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    fn home(&self, host: &str) -> std::path::PathBuf {
        self.place.path("homes").join(host).join(".throng")
    }
}

/// Ends agents that no test process is the parent of, however the test ends.
struct Apart<'a>(&'a Fleet);

impl Drop for Apart<'_> {
    fn drop(&mut self) {
        let homes = self.0.place.path("homes");
        let processes = fs::read_dir("/proc").unwrap().flatten();
        for entry in processes {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let program = fs::read_link(entry.path().join("exe")).unwrap_or_default();
            if let Some(pid) = Pid::from_raw(pid).filter(|_| program.starts_with(&homes)) {
                _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

#[test]
fn an_agent_tells_its_lines_and_ends_when_it_is_asked() {
    let Some(fleet) = Fleet::start() else { return };
    let one = fleet.agent("default", "one");
    let two = fleet.agent("default", "two");
    let log = fleet.run(&["logs", "one", "-n", "5"]).exits_with(0);
    assert_eq!(log.stdout.lines().count(), 1, "{log:?}");
    let log = log.stdout_contains(&["Z  agent one of group default: "]);
    assert!(log.stdout.starts_with("20"), "{log:?}");
    fleet
        .run(&["down", "one", "three"])
        .exits_with(1)
        .stdout_contains(&["one: ended\n", "three: no agent of this name answered\n"]);
    one.finish().exits_with(0).stdout_contains(&["asks it to end"]);
    fleet.run(&["down", "all"]).exits_with(0).stdout_contains(&["two: ended\n"]);
    two.finish().exits_with(0);
    fleet.run(&["down", "all"]).exits_with(2).stderr_contains(&["no agent of the group"]);
    fleet.run(&["logs", "one"]).exits_with(2).stderr_contains(&["no agent of the group"]);
}

#[test]
fn a_plan_counts_the_agents_that_a_scenario_takes() {
    let Some(fleet) = Fleet::start() else { return };
    let _one = fleet.agent("default", "one");
    let _two = fleet.agent("default", "two");
    let listed = fleet.run(&["ls"]).exits_with(0);
    listed.stdout_contains(&["not calibrated", "holds"]);
    let load = "[{ramp: {to: 10, over: 10s}}]";
    let user = "[connect, {every: {period: 1s, do: [send: a]}}]";
    let target = "target: tcp://127.0.0.1:1";
    fleet.place.write("s.yaml", &format!("{target}\nload: {load}\nuser: {user}\n"));
    let plan = |args: &[&str]| {
        let mut command = fleet.place.command(&[&["plan", "s.yaml", "--agents"], args].concat());
        Finished::from(command.env("THRONG_BUS", fleet.url()).output().unwrap())
    };
    let json = plan(&["--calibrate", "1s", "--json"]).exits_with(0).json();
    let demand = &json["plan"]["demand"];
    assert_eq!(demand["connections"], 10, "{json:#}");
    assert_eq!(demand["messages_per_s"], 10.0, "{json:#}");
    assert_eq!(json["plan"]["known"], 2, "{json:#}");
    // On a busy machine, an agent may be unable to measure itself.
    let is_known = json["plan"]["uncounted"].as_array().unwrap().is_empty();
    let is_enough = if is_known { true.into() } else { Value::Null };
    assert_eq!(json["is_enough"], is_enough, "{json:#}");
    plan(&["label=none"]).exits_with(2).stderr_contains(&["no free agent has this label"]);
    eventually("they are free again", || {
        let listed = fleet.run(&["ls", "--json"]).json();
        let is_free = |agent: &Value| agent["busy"].is_null();
        listed.as_array().unwrap().iter().filter(|agent| is_free(agent)).count() == 2
    });
}

#[test]
fn an_agent_measures_itself_after_its_start_and_the_list_shows_its_rates() {
    let Some(fleet) = Fleet::start() else { return };
    let bus = fleet.url();
    let mut agent = fleet.place.start(&["agent", "--bus", &bus, "--name", "one"]);
    let said = agent.line_with("calibrat");
    let listed = fleet.run(&["ls"]).exits_with(0);
    let json = fleet.run(&["ls", "--json"]).json();
    assert!(json[0]["clock"]["error_us"].is_u64(), "{json:#}");
    assert_eq!((&json[0]["has_stepped"], &json[0]["rival"]), (&false.into(), &().into()));
    // Other programs that keep the CPUs busy may leave one rate unknown, or both.
    let Some(rates) = said.strip_prefix("calibrated: ") else {
        listed.stdout_contains(&["not calibrated"]);
        return;
    };
    let listed = listed.stdout_contains(&[rates.trim_end()]);
    assert!(!listed.stdout.contains("not calibrated"), "{listed:?}");
    let known = [("connects_per_s", "/s connects"), ("messages_per_s", "/s messages")];
    let known = known.map(|(member, shown)| {
        let rate = json[0]["calibration"]["ceiling"][member].as_f64();
        assert_eq!(rate.is_some(), rates.contains(shown), "{rates} {json:#}");
        rate
    });
    assert!(known.iter().flatten().any(|rate| *rate > 0.0), "{rates} {json:#}");
}

#[test]
fn an_agent_that_measures_itself_serves_an_order_meanwhile() {
    let Some(fleet) = Fleet::start() else { return };
    let bus = fleet.url();
    let server = fleet.place.serve(&["ok"]);
    let user = "[connect, {send: a}, {expect: ok}]";
    fleet.place.write("s.yaml", &server.scenario("[{ramp: {to: 4, over: 100ms}}]", user));
    let flags = ["agent", "--name", "one", "--calibrate", "1m", "--bus", &bus];
    let mut agent = fleet.place.start(&flags);
    agent.line_with("waiting for a run");
    let run = ["run", "s.yaml", "--agents", "1", "--bus", &bus, "--force", "--no-tui"];
    let run = fleet.place.throng(&run);
    assert!(matches!(run.code, Some(0 | 3)), "{run:?}");
    fleet.run(&["down", "one"]).exits_with(0);
    // The measuring ended without a result.
    let said = agent.finish().exits_with(0).stdout;
    let has = |part: &str| said.contains(part);
    assert!(has("the load has ended") && !has("calibrat"), "{said}");
}

#[test]
fn an_agent_that_makes_a_run_ends_only_by_force() {
    let Some(fleet) = Fleet::start() else { return };
    let agent = fleet.agent("default", "busy");
    let server = fleet.place.serve(&["hold"]);
    let scenario =
        server.scenario("[{ramp: {to: 2, over: 100ms}}, {hold: {for: 10m}}]", "[connect, stay]");
    fleet.place.write("long.yaml", &scenario);
    let bus = fleet.url();
    // Limits of this machine are no matter of this test: other tests may change them meanwhile.
    let flags = ["--bus", &bus, "--agents", "1", "--no-tui", "--force"];
    let mut run = fleet.place.start(&[&["run", "long.yaml"], &flags[..]].concat());
    run.line_with("they begin within");
    let pid = server.process.pid();
    eventually("the load has begun", || fleet.place.count(pid)["open"] == 2);
    fleet.run(&["down", "busy"]).exits_with(1).stdout_contains(&["busy: makes run ", "--force"]);
    assert_eq!(fleet.names("default"), ["busy"]);
    fleet.run(&["down", "busy", "--force"]).exits_with(0).stdout_contains(&["busy: ended\n"]);
    agent.finish().exits_with(0).stdout_contains(&["the load has ended"]);
    let run = run.finish();
    assert_ne!(run.code, Some(0), "{run:#?}");
    let said = run.stdout + &run.stderr;
    assert!(said.contains("it was ended before its load was over"), "{said}");
}

#[test]
fn an_agent_stops_a_run_whose_coordinator_died_and_keeps_its_results() {
    let Some(fleet) = Fleet::start() else { return };
    let mut agent = fleet.agent("default", "one");
    let server = fleet.place.serve(&["hold"]);
    let load = "[{ramp: {to: 2, over: 100ms}}, {hold: {for: 10m}}]";
    fleet.place.write("long.yaml", &server.scenario(load, "[connect, stay]"));
    let bus = fleet.url();
    let flags = ["--bus", &bus, "--agents", "1", "--no-tui", "--force"];
    let run = fleet.place.start(&[&["run", "long.yaml"], &flags[..]].concat());
    let pid = server.process.pid();
    eventually("the load has begun", || fleet.place.count(pid)["open"] == 2);
    let listed = fleet.run(&["ls", "--json"]).json();
    let id = listed[0]["busy"]["run"].as_str().unwrap().to_owned();
    fleet.run(&["stop", "none"]).exits_with(2).stderr_contains(&["no agent makes run none"]);
    let stop = || fleet.run(&["stop", &id]);
    stop().exits_with(1).stdout_contains(&["one: goes on: ", "Ctrl-C there ends the run"]);
    run.signal(Signal::KILL);
    // An agent waits for some seconds until it takes its coordinator for dead.
    eventually("it stops the run", || stop().stdout.contains("one: ramps its load down"));
    agent.line_with("the load has ended");
    eventually("the users have left", || fleet.place.count(pid)["open"] == 0);
    eventually("the agent is free, and keeps the run", || {
        let listed = fleet.run(&["ls", "--json"]).json();
        listed[0]["busy"].is_null() && listed[0]["kept"][0]["run"] == id.as_str()
    });
    stop().exits_with(2);
}

#[test]
fn agents_load_the_server_of_a_lab_and_each_has_a_row() {
    let Some(fleet) = Fleet::start() else { return };
    let names = ["one", "two", "three", "four"];
    let _agents = names.map(|name| fleet.agent("default", name));
    let bus = fleet.url();
    for (lab, joined) in [("connscale", "connected"), ("phoenix-2m", "joined")] {
        let flags = ["--users", "80", "--rate", "40", "--seconds", "600", "--keep", lab];
        let run = ["lab", lab, "--bus", &bus, "--agents", "4", "--force", "--json", "-"];
        let process = fleet.place.start(&[&run[..], &flags].concat());
        let record = fleet.place.path(lab).join(format!("{lab}.jsonl"));
        eventually("all users are there", || {
            let lines = if record.exists() { run_file(&record) } else { Vec::new() };
            lines.iter().any(|line| line["load"]["counters"][joined] == 80)
        });
        process.signal(Signal::INT);
        let result = process.finish().exits_with(4);
        assert_eq!(result.json()["rows"][0][format!("{joined}_most")], 80, "{result:?}");
        // Each of the four has the same share.
        for name in names {
            let row = |line: &str| line.split_whitespace().take(3).eq([name, "20", "20"]);
            assert!(result.stderr.lines().any(row), "{name}: {result:?}");
        }
    }
}

#[test]
fn the_users_of_two_nodes_receive_all_once_while_one_of_them_restarts() {
    let Some(fleet) = Fleet::start() else { return };
    let bus = fleet.url();
    // It ends when all users are back and both servers share the room again.
    let flags = ["--users", "60", "--seconds", "600", "--force", "--json", "-"];
    let result = fleet.place.throng(&[&["lab", "two-nodes", "--bus", &bus], &flags[..]].concat());
    assert!(matches!(result.code, Some(0 | 3)), "{result:?}");
    let row = &result.json()["rows"][0];
    assert!(row["all_back_ms"].as_u64().is_some(), "{row}");
    assert_eq!(row["joined_least"].as_u64().map(|users| users >= 30), Some(true), "{row}");
    let settled = &row["settled"];
    assert!(settled["broadcasts"].as_u64().is_some_and(|n| n > 0), "{row}");
    assert!(row["shared_after_ms"].as_u64().is_some(), "{row}");
    for fault in ["missing", "unread", "twice", "out_of_order"] {
        assert_eq!(settled[fault], 0, "{fault}: {row}");
    }
    assert_eq!(row["restart"]["twice"], 0, "{row}");
}

#[test]
fn two_teams_share_a_bus_and_do_not_see_each_other() {
    let Some(fleet) = Fleet::start() else { return };
    // Both have the same name.
    let (ours, theirs) = (fleet.agent("team-a", "one"), fleet.agent("team-b", "one"));
    assert_eq!(fleet.names("team-a"), ["one"]);
    fleet.run(&["ls"]).exits_with(2).stderr_contains(&["no agent of the group `default`"]);
    fleet.run(&["down", "all", "--group", "team-a"]).exits_with(0);
    ours.finish().exits_with(0);
    assert_eq!(fleet.names("team-b"), ["one"]);
    let log = fleet.run(&["logs", "one", "--group", "team-b"]).exits_with(0);
    assert!(!log.stdout.contains("asks it to end"), "{log:?}");
    fleet.run(&["down", "one", "--bus-group", "team-b"]).exits_with(0);
    theirs.finish().exits_with(0);
}

#[test]
fn agents_are_started_over_ssh_and_one_host_that_fails_stops_no_other() {
    let Some(fleet) = Fleet::start() else { return };
    let ssh = fleet.ssh();
    let _apart = Apart(&fleet);
    let with_port = format!("{ssh} -p 2222");
    let up = |hosts: &[&str]| {
        let flags = ["--ssh", &with_port, "--group", "g", "--label", "eu"];
        fleet.run(&[&["up"], hosts, &flags].concat())
    };
    let first = up(&["web1", "away", "ada@web2"]).exits_with(1).stdout_contains(&[
        "web1: its agent runs: web1, ",
        "ada@web2: its agent runs: web2, ",
        "throng 0.1.0 copied (",
        "away: failed: ssh: connect to host away port 22: No route\n",
        "group g: agents on 2 of 3 hosts\n",
    ]);
    assert_eq!(first.stdout.lines().count(), 4, "{first:?}");
    assert_eq!(fleet.names("g"), ["web1", "web2"]);
    let labels = fleet.run(&["ls", "--json", "--group", "g"]).json();
    assert_eq!(labels[0]["facts"]["labels"][0], "eu");
    let options = fs::read_to_string(fleet.place.path("homes.options")).unwrap();
    assert!(options.starts_with("-p 2222 -a "), "{options}");
    let log = fs::read_to_string(fleet.home("web1").join("web1.log")).unwrap();
    assert!(log.contains("agent web1 of group g"), "{log}");
    assert_eq!(count(&fleet.home("web1").join("bin")), 1);

    up(&["web1"]).exits_with(0).stdout_contains(&["web1: its agent runs already: web1, "]);
    fleet.run(&["down", "web1", "--group", "g"]).exits_with(0);
    // The copy is there already.
    let again = up(&["web1"]).exits_with(0).stdout_contains(&["web1: its agent runs: web1, "]);
    assert!(!again.stdout.contains("copied"), "{again:?}");
    assert_eq!(count(&fleet.home("web1").join("bin")), 1);
    fleet
        .run(&["down", "all", "--group", "g"])
        .exits_with(0)
        .stdout_contains(&["web1: ended\n", "web2: ended\n"]);
}

#[test]
fn a_started_agent_gets_the_login_and_no_list_of_processes_shows_it() {
    let Some(fleet) = Fleet::start_with(&["--user", "ada", "--pass", "it's"]) else { return };
    let ssh = fleet.ssh();
    let _apart = Apart(&fleet);
    let bus = format!("nats://ada:it's@127.0.0.1:{}", fleet.server.port());
    fleet.run(&["ls"]).exits_with(2);
    let up = fleet.run_with(&bus, &["up", "web1", "--ssh", &ssh]).exits_with(0);
    let (_, pid) = up.stdout.lines().next().unwrap().rsplit_once("pid ").unwrap();
    let pid: i32 = pid.split(';').next().unwrap().parse().unwrap();
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let line = String::from_utf8(line).unwrap();
    assert!(line.contains("agent\0--name\0web1") && !line.contains("it's"), "{line:?}");
    fleet.run_with(&bus, &["down", "web1"]).exits_with(0);
    let pid = Pid::from_raw(pid).unwrap();
    eventually("the agent has ended", || test_kill_process(pid).is_err());
}

#[test]
fn an_agent_that_does_not_reach_the_bus_says_why_and_a_second_host_of_that_name_is_refused() {
    let Some(fleet) = Fleet::start() else { return };
    let ssh = fleet.ssh();
    let _apart = Apart(&fleet);
    // On the hosts, it is another `throng` that runs: one that ends at once.
    let broken =
        "#!/bin/sh\ncase $1 in --version) echo throng 0.1.0;; *) echo no luck; exit 2;; esac\n";
    let script = fs::read_to_string(&ssh).unwrap();
    let bin = fleet.place.path("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("throng"), broken).unwrap();
    fs::set_permissions(bin.join("throng"), fs::Permissions::from_mode(0o755)).unwrap();
    let with_path = format!("cd && export PATH={}:$PATH &&", bin.display());
    fs::write(&ssh, script.replace("cd &&", &with_path)).unwrap();
    fleet.run(&["up", "web1", "--ssh", &ssh]).exits_with(1).stdout_contains(&[
        "web1: failed: the agent has ended: no luck\n",
        "agents on 0 of 1 host\n",
    ]);
    fleet
        .run(&["up", "web1", "ada@web1", "--ssh", &ssh])
        .exits_with(2)
        .stderr_contains(&["web1 and ada@web1 give their agents the same name"]);
    fleet.run(&["up", "--ssh", &ssh]).exits_with(2).stderr_contains(&["HOST"]);
    let mut no_bus = fleet.place.command(&["fleet", "ls"]);
    Finished::from(no_bus.env_remove("THRONG_BUS").output().unwrap())
        .exits_with(2)
        .stderr_contains(&["--bus is missing", "THRONG_BUS"]);
}

#[test]
fn the_example_of_a_server_separates_teams_and_limits_each_kind_of_process() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/nats/nats-server.conf");
    let Some(fleet) = Fleet::start_with(&["--config", file]) else { return };
    let port = fleet.server.port();
    let as_user = |user: &str| format!("nats://{user}:change-me@127.0.0.1:{port}");
    let mut agent = fleet.place.start(&["agent", "--bus", &as_user("eu-1"), "--name", "eu-1"]);
    agent.line_with("waiting for a run");
    fleet.run_with(&as_user("team-a"), &["ls"]).exits_with(0).stdout_contains(&["eu-1"]);
    fleet.run_with(&as_user("team-a"), &["logs", "eu-1"]).exits_with(0);
    fleet.run_with(&as_user("team-b"), &["ls"]).exits_with(2);
    // An agent's login gives no orders, and the command says which permission that needs.
    for login in ["eu-1", "web", "node-a"] {
        let no_orders = fleet.run_with(&as_user(login), &["down", "eu-1"]).exits_with(2);
        no_orders.stderr_contains(&["subscribe to `throng.default.coordinator.", "allow:"]);
    }
    let mut nodes: Vec<_> = ["two", "three"]
        .map(|node| {
            let flags = ["serve", "chat", "--listen", "127.0.0.1:0", "--node", node, "--bus"];
            fleet.place.start(&[&flags[..], &[&as_user("node-a")]].concat())
        })
        .into();
    nodes.iter_mut().for_each(|node| _ = node.line_with("shares topics with this one"));
    let observe = ["agent", "--observe", "--port", "1", "--name", "web", "--bus"];
    let mut observer = fleet.place.start(&[&observe[..], &[&as_user("web")]].concat());
    observer.line_with("observer web");
    eventually("the observer is listed", || {
        let listed = fleet.run_with(&as_user("team-a"), &["ls"]).exits_with(0);
        listed.stdout.contains("web ")
    });
    // With the login of another kind of process, each says what it may not do.
    let mut mute = fleet.place.start(&[&observe[..], &[&as_user("eu-1")]].concat());
    mute.line_with("publish under `throng.default.observers.web`");
    let other = fleet.place.start(&["agent", "--bus", &as_user("eu-1"), "--name", "eu-2"]);
    other.finish().exits_with(2).stderr_contains(&["subscribe to `throng.default.agent.eu-2`"]);
    let mut pod = fleet.place.start(&["agent", "--bus", &as_user("pods-b"), "--name", "pod-7"]);
    pod.line_with("waiting for a run");
    fleet.run_with(&as_user("team-b"), &["down", "pod-7"]).exits_with(0);
    pod.finish().exits_with(0);
    let deaf = fleet.place.start(&["agent", "--bus", &as_user("node-a"), "--name", "deaf"]);
    deaf.finish().exits_with(2).stderr_contains(&["subscribe to `throng.default.questions`"]);
    fleet.run(&["ls"]).exits_with(2).stderr_contains(&["authorization"]);
    fleet.run_with(&as_user("team-a"), &["down", "eu-1"]).exits_with(0);
    agent.finish().exits_with(0);
}

#[test]
fn no_run_lets_an_agent_load_what_its_owner_does_not_allow() {
    let Some(fleet) = Fleet::start() else { return };
    let bus = fleet.url();
    let start = |name: &str, targets: &[&str]| {
        let flags = ["agent", "--bus", &bus, "--no-calibrate", "--name", name, "--label", name];
        let mut agent = fleet.place.start(&[&flags[..], targets].concat());
        agent.line_with("waiting for a run");
        agent
    };
    let _own = start("own", &[]);
    let _other = start("other", &["--targets", "198.51.100.0/24,127.0.0.0/8"]);
    let scenario = "target: tcp://192.0.2.1:9\nload: [{ramp: {to: 1, over: 1s}}]\n\
                    user: [connect]\n";
    fleet.place.write("s.yaml", scenario);
    for (agent, why) in [
        ("own", "it loads what needs no permission"),
        ("other", "it loads 198.51.100.0/24, 127.0.0.0/8,"),
    ] {
        let label = format!("label={agent}");
        let flags = ["run", "s.yaml", "--agents", &label, "--i-am-allowed", "--force"];
        let mut command = fleet.place.command(&[&flags[..], &["--bus", &bus]].concat());
        Finished::from(command.output().unwrap()).exits_with(2).stderr_contains(&[
            &format!("agent {agent}: this agent does not load 192.0.2.1: {why}"),
            "throng agent --targets 192.0.2.1",
        ]);
    }
    let wrong = fleet.place.command(&["agent", "--targets", "10.0.0.0/40"]).output().unwrap();
    Finished::from(wrong).exits_with(2).stderr_contains(&["--targets", "from 0 to 32"]);
}

fn count(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}
