//! What this machine can hold with both ends on it, and the command for what it cannot.

use std::fmt;

use serde::Serialize;
use throng_doctor::{Facts, Root, conntrack};
use throng_driver::fdtable;
use throng_report::render::{bytes, count};

/// The limits that a lab meets. A limit that could not be read is absent and stops nobody.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    /// CPUs that this process may use.
    pub cpus: u64,
    /// Memory that is free for the taking.
    pub memory_available_bytes: Option<u64>,
    /// Connections that fit into one fd table.
    pub fds_per_table: u64,
    /// Whether each core can have a table of its own.
    pub private_fds: bool,
    /// `fs.epoll.max_user_watches`: a pair of connections needs two.
    pub epoll_watches_max: Option<u64>,
    /// The third number of `net.ipv4.tcp_mem`: pages that the buffers of all sockets may take.
    pub tcp_mem_pages_max: Option<u64>,
    /// `nf_conntrack_max`, where connections are tracked at all.
    pub conntrack_max: Option<u64>,
    /// `fs.file-max` less what is open.
    pub files_free: Option<u64>,
}

/// A limit that is too low, and how to move it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shortage {
    /// What is short, with both numbers.
    pub what: String,
    /// The command.
    pub remedy: String,
}

impl Machine {
    /// Reads them. In namespaces of their own the ends' connections are not tracked.
    pub(crate) fn read(isolated: bool) -> Self {
        let root = Root::default();
        let limit = fdtable::raise_limit();
        let facts = Facts::read(&root, std::process::id());
        let sysctl = |name: &str| root.sysctl(name).known().and_then(|n| u64::try_from(*n).ok());
        let tracked = root.read(conntrack::COUNT_PATH, conntrack::parse_count);
        let tracks = !isolated && tracked.known().is_some_and(|n| *n > 0);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let memory = facts.memory.known();
        let tcp_mem = root.sysctl_list::<3>("net.ipv4.tcp_mem");
        Self {
            cpus: cpus as u64,
            memory_available_bytes: memory
                .map(|memory| memory.available_bytes.unwrap_or(memory.total_bytes)),
            fds_per_table: fdtable::usable(limit, cpus) as u64,
            private_fds: fdtable::can_be_private().is_ok(),
            epoll_watches_max: sysctl("fs.epoll.max_user_watches"),
            tcp_mem_pages_max: tcp_mem.known().and_then(|pages| u64::try_from(pages[2]).ok()),
            conntrack_max: facts.conntrack_max.known().copied().filter(|_| tracks),
            files_free: facts.files.known().map(|files| files.max.saturating_sub(files.open)),
        }
    }

    /// The most pairs of connections that every limit allows.
    pub fn pairs_most(&self) -> u64 {
        [
            self.memory_available_bytes.map(|free| free / 100 * MEMORY_PERCENT / PAIR_BYTES),
            self.epoll_watches_max.map(|watches| watches / 2),
            self.tcp_mem_pages_max.map(|pages| pages * PAIRS_PER_BUFFER_PAGE),
            self.conntrack_max,
            self.files_free.map(|free| free / 2),
            (!self.private_fds).then_some(self.fds_per_table),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(u64::MAX)
    }

    /// What `pairs` connections, both ends here, would lack.
    pub fn shortages(&self, pairs: u64) -> Vec<Shortage> {
        let mut short = Vec::new();
        let mut need = |has: Option<u64>, needs: u64, what: String, remedy: String| {
            if has.is_some_and(|has| has < needs) {
                short.push(Shortage { what, remedy });
            }
        };
        let memory = self.memory_available_bytes.map(|free| free / 100 * MEMORY_PERCENT);
        let needs = pairs * PAIR_BYTES;
        need(
            memory,
            needs,
            format!(
                "memory: {} pairs take {} ({} each with the kernel's part), {} % of what is free are {}",
                count(pairs as f64),
                bytes(needs as f64),
                bytes(PAIR_BYTES as f64),
                MEMORY_PERCENT,
                bytes(memory.unwrap_or(0) as f64)
            ),
            format!("ask for --users {}", memory.unwrap_or(0) / PAIR_BYTES),
        );
        let watches = 2 * pairs;
        need(
            self.epoll_watches_max,
            watches,
            limit("fs.epoll.max_user_watches", watches, self.epoll_watches_max),
            format!("sysctl -w fs.epoll.max_user_watches={watches}"),
        );
        let pages = pairs.div_ceil(PAIRS_PER_BUFFER_PAGE);
        need(
            self.tcp_mem_pages_max,
            pages,
            limit("net.ipv4.tcp_mem (pages of 4 KiB)", pages, self.tcp_mem_pages_max),
            format!("sysctl -w net.ipv4.tcp_mem=\"{} {} {pages}\"", pages / 2, pages * 3 / 4),
        );
        need(
            self.conntrack_max,
            pairs,
            limit("net.netfilter.nf_conntrack_max", pairs, self.conntrack_max),
            format!(
                "sysctl -w net.netfilter.nf_conntrack_max={pairs}   (or --isolate, which is not tracked)"
            ),
        );
        let files = 2 * pairs;
        need(
            self.files_free,
            files,
            limit("fs.file-max, less what is open,", files, self.files_free),
            format!("sysctl -w fs.file-max={}", files * 2),
        );
        need(
            (!self.private_fds).then_some(self.fds_per_table),
            pairs,
            limit(
                "the fd table (cores cannot have tables of their own here)",
                pairs,
                Some(self.fds_per_table),
            ),
            format!("ulimit -n {}", pairs + 1024),
        );
        short
    }

    /// Cores of an end that holds `connections`: the CPUs, or as many as the fd tables need.
    pub(crate) fn cores_for(&self, connections: u64) -> u64 {
        if !self.private_fds {
            return self.cpus;
        }
        // Each core's table also holds fds for every other core, so more cores make smaller tables; a
        // tenth of slack also covers that connections do not spread evenly.
        let with_slack = connections + connections / 10;
        self.cpus.max(with_slack.div_ceil(self.fds_per_table.max(1)))
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n    do: {}", self.what, self.remedy)
    }
}

fn limit(name: &str, needs: u64, has: Option<u64>) -> String {
    format!("{name} is {}, {needs} are needed", has.unwrap_or(0))
}

/// A pair of idle connections: 6.3 KB of kernel memory as measured on Linux 6.18, and the 256 bytes that
/// each end may take of its own.
const PAIR_BYTES: u64 = 6_300 + 2 * 256;

/// How much of the free memory a lab takes.
const MEMORY_PERCENT: u64 = 90;

/// Pairs whose buffers share a page on average: connections that say a few bytes now and then have theirs
/// empty nearly always. A limit that is reached all the same shows as `TCPMemoryPressures`.
const PAIRS_PER_BUFFER_PAGE: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine {
            cpus: 2,
            memory_available_bytes: Some(23 << 30),
            fds_per_table: 19_900,
            private_fds: true,
            epoll_watches_max: Some(5_490_265),
            tcp_mem_pages_max: Some(575_664),
            conntrack_max: None,
            files_free: Some(9_000_000),
        }
    }

    #[track_caller]
    fn check(machine: &Machine, pairs: u64, what: &str, remedy: &str) {
        let short = machine.shortages(pairs);
        assert_eq!(short.len(), 1, "{short:?}");
        assert!(short[0].what.contains(what) && short[0].remedy.contains(remedy), "{short:?}");
        assert!(machine.pairs_most() < pairs);
        assert_eq!(machine.shortages(machine.pairs_most()), [], "what is offered fits");
    }

    #[test]
    fn a_million_pairs_fit_on_24_gigabytes() {
        assert_eq!(machine().shortages(1_000_000), []);
        assert!(machine().pairs_most() > 2_500_000);
    }

    #[test]
    fn each_limit_is_named_with_its_command() {
        check(
            &Machine { epoll_watches_max: Some(1_800_000), ..machine() },
            1_000_000,
            "is 1800000, 2000000 are needed",
            "sysctl -w fs.epoll.max_user_watches=2000000",
        );
        check(
            &Machine { memory_available_bytes: Some(4 << 30), ..machine() },
            1_000_000,
            "1M pairs take 6.34 GiB",
            "--users 567",
        );
        check(
            &Machine { conntrack_max: Some(262_144), ..machine() },
            1_000_000,
            "nf_conntrack_max is 262144",
            "nf_conntrack_max=1000000",
        );
        check(
            &Machine { tcp_mem_pages_max: Some(50_000), ..machine() },
            1_000_000,
            "tcp_mem",
            "sysctl -w net.ipv4.tcp_mem=\"31250 46875 62500\"",
        );
        check(&Machine { files_free: Some(1000), ..machine() }, 501, "file-max", "fs.file-max");
        check(&Machine { private_fds: false, ..machine() }, 20_000, "fd table", "ulimit -n 21024");
    }

    #[test]
    fn cores_are_as_many_as_the_tables_need() {
        assert_eq!(machine().cores_for(1_000), 2);
        assert_eq!(machine().cores_for(200_000), 12);
        assert_eq!(Machine { private_fds: false, ..machine() }.cores_for(200_000), 2);
    }
}
