//! Sysctls by name, with their types.
//!
//! Those below `net` belong to the calling thread's network namespace. A namespace other than the
//! first lacks some of them: those of TCP's memory and of packets that wait for a CPU.

use crate::fact::{Fact, ParseFailure};
use crate::proc_root::ProcRoot;

impl ProcRoot {
    /// Reads a sysctl of one number; some are -1.
    pub fn sysctl(&self, name: &str) -> Fact<i64> {
        self.sysctl_list(name).map(|[value]| value)
    }

    /// Reads a sysctl of exactly `N` numbers.
    pub fn sysctl_list<const N: usize>(&self, name: &str) -> Fact<[i64; N]> {
        self.read(&sysctl_path(name), parse_list)
    }

    /// Reads a sysctl as text (`net.ipv4.tcp_congestion_control`).
    pub fn sysctl_text(&self, name: &str) -> Fact<String> {
        self.text(&sysctl_path(name)).map(|text| text.trim().to_owned())
    }
}

/// Returns the file of a sysctl. As in sysctl(8), a dot inside a part is written as a slash:
/// `net.ipv4.conf.eth0/1.rp_filter` is about the interface `eth0.1`.
pub fn sysctl_path(name: &str) -> String {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        c => c,
    };
    format!("proc/sys/{}", name.chars().map(swap).collect::<String>())
}

/// Parses exactly `N` numbers.
pub fn parse_list<const N: usize>(text: &str) -> Result<[i64; N], ParseFailure> {
    let mut words = text.split_ascii_whitespace();
    let mut values = [0; N];
    for value in &mut values {
        let word = words.next().ok_or(ParseFailure("more numbers"))?;
        *value = word.parse().map_err(|_| ParseFailure("a number"))?;
    }
    if words.next().is_some() { Err(ParseFailure("fewer numbers")) } else { Ok(values) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Reason;
    use crate::recorded_root;

    #[test]
    fn sysctls_are_found_by_name() {
        let root = recorded_root("linux-6.18");
        assert_eq!(root.sysctl("net.core.somaxconn"), Fact::Known(4096));
        assert_eq!(root.sysctl("net.ipv4.tcp_tw_reuse"), Fact::Known(2));
        assert_eq!(root.sysctl_list("net.ipv4.tcp_mem"), Fact::Known([287_832, 383_779, 575_664]));
        assert_eq!(root.sysctl_text("fs.nr_open"), Fact::Known("1048576".into()));
    }

    #[test]
    fn a_sysctl_that_this_kernel_lacks_is_missing() {
        let why = recorded_root("linux-4.19").sysctl("kernel.io_uring_disabled");
        assert_eq!(why.why().unwrap().reason, Reason::Missing);
        let why = recorded_root("linux-6.18").sysctl("net.ipv4.tcp_mem");
        assert!(matches!(why.why().unwrap().reason, Reason::Malformed(_)), "three are not one");
    }

    #[test]
    fn a_dot_inside_a_part_is_written_as_a_slash() {
        assert_eq!(
            sysctl_path("net.ipv4.conf.eth0/1.rp_filter"),
            "proc/sys/net/ipv4/conf/eth0.1/rp_filter"
        );
    }
}
