//! Prints all readable facts about this machine and one process, as a table: `cargo run -p
//! throng-machine --example facts [PID [PORT...]]`.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::thread;
use std::time::Duration;

use throng_base::time::Instant;
use throng_machine::cgroup::CgroupReader;
use throng_machine::limits::Rlimit;
use throng_machine::process::{rss_exact, threads};
use throng_machine::status::Capability;
use throng_machine::{
    Fact, ListenerReader, ListenerScope, MachineFacts, ProcRoot, Sampler, SamplerOptions,
    WatchedProcess,
};
use throng_measure::{Endpoint, Limit};

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse::<u32>().ok());
    let pid = numbers.next().unwrap_or_else(std::process::id);
    let ports = numbers.filter_map(|port| u16::try_from(port).ok()).collect();
    let scope = ListenerScope::of_ports(ports);
    let root = ProcRoot::default();

    heading("machine and process");
    machine(&root, pid);
    heading("control groups");
    let mut groups = CgroupReader::locate(&root, pid);
    row("cpu", groups.cpu().map(|cpu| format!("{cpu:?}")));
    row("memory", groups.memory().map(|memory| format!("{memory:?}")));
    heading("threads");
    match threads(&root, pid) {
        Fact::Known(threads) => {
            for thread in threads {
                let sched = thread.sched;
                let text =
                    format!("ran {} us, waited {} us", sched.run_ns / 1000, sched.delay_ns / 1000);
                row(&format!("{} {}", thread.tid, thread.name), text);
            }
        }
        Fact::Unknown(why) => row("threads", why),
    }
    heading("listeners: accept queue / backlog");
    match ListenerReader::default().listeners() {
        Fact::Known(listeners) => {
            for listener in listeners {
                let text = format!("{} / {}", listener.accept_queue, listener.backlog);
                row(&listener.addr.to_string(), text);
            }
        }
        Fact::Unknown(why) => row("listeners", why),
    }

    heading("one second: value, change");
    let processes = vec![WatchedProcess { program: Endpoint::Server, pid, also: Vec::new() }];
    let options = SamplerOptions { root, scope, processes, counts_established: true };
    let mut sampler = Sampler::new(options);
    let first = sampler.sample(Instant::ZERO);
    thread::sleep(Duration::from_secs(1));
    let second = sampler.sample(Instant::from_nanos(1_000_000_000));
    let before: BTreeMap<_, _> = first.counters.iter().collect();
    for (name, value) in second.counters.iter() {
        let change = before.get(name).map(|before| value - before);
        row(name, format!("{value:>16} {:>+12}", change.unwrap_or(0)));
    }
    row("machine", second.machine.map_or("unknown".into(), |machine| format!("{machine:?}")));
    for process in &second.processes {
        row("process", process.used.clone().map(|used| format!("{used:?}")));
    }
    heading("unknown");
    for why in &second.unknown {
        row(&why.source, &why.reason);
    }
}

fn machine(root: &ProcRoot, pid: u32) {
    let facts = MachineFacts::read(root, pid);
    row("kernel", &facts.kernel);
    row("memory", facts.memory.map(|memory| format!("{memory:?}")));
    let fds = facts.limits.clone().map(|limits| limits.open_files);
    row("open files, soft / hard", fds.map(|Rlimit { soft, hard }| format!("{soft:?} / {hard:?}")));
    if let (Some(limits), Some(nr_open)) =
        (facts.limits.known(), root.sysctl(Limit::FDS_CEILING.name()).known())
    {
        row("usable fds per table", limits.usable_fds_per_table(nr_open.cast_unsigned()));
    }
    row(
        "files of the machine",
        facts.files.map(|files| format!("{} of {}", files.open, files.max)),
    );
    row(
        "local ports",
        facts
            .local_ports
            .map(|ports| format!("{}-{}, {} usable", ports.first, ports.last, ports.count())),
    );
    row("seccomp", facts.status.clone().map(|status| format!("{:?}", status.seccomp)));
    for capability in [Capability::NetAdmin, Capability::SysAdmin, Capability::SysResource] {
        let has = facts.status.clone().map(|status| status.has(capability));
        row(&format!("capability {capability:?}"), has);
    }
    row("resident bytes, exact", rss_exact(root, pid));
    for (name, value) in facts.sysctls {
        row(name, value.map(|text| text.replace('\t', " ")));
    }
}

fn heading(text: &str) {
    println!("\n{text}");
}

fn row(name: &str, value: impl Display) {
    println!("  {name:<36} {value}");
}
