//! `/proc/PID/status`: the capabilities of a process, and the restrictions of its container.

use std::fmt;

use crate::fact::{Fact, ParseFailure};
use crate::proc_root::ProcRoot;
use crate::text::{after, hex, next};

/// The capabilities and restrictions of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Effective user id.
    pub uid: u64,
    /// Effective capabilities, one bit each.
    pub capabilities: u64,
    /// Bounding set: the capabilities that the process can ever have.
    pub bounding: u64,
    /// System-call filter; `None` if the kernel has no seccomp.
    pub seccomp: Option<Seccomp>,
    /// True if a set-user-id program gains nothing; `None` before Linux 4.10.
    pub no_new_privileges: Option<bool>,
    /// Resident memory in bytes; `None` for a kernel thread.
    pub rss_bytes: Option<u64>,
    /// Number of threads now.
    pub threads: u64,
}

/// The filter for system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seccomp {
    /// No filter.
    Off,
    /// All but four calls are forbidden.
    Strict,
    /// A program decides: most containers have one.
    Filter,
}

/// A capability that matters to throng, by its bit in `linux/capability.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// Binds ports below `net.ipv4.ip_unprivileged_port_start`.
    NetBindService = 10,
    /// Configures interfaces, queueing and some sysctls; sets `SO_*BUFFORCE`.
    NetAdmin = 12,
    /// Opens raw sockets.
    NetRaw = 13,
    /// Reads other users' processes under `/proc`.
    SysPtrace = 19,
    /// Creates namespaces, and opens more files than `fs.file-max`.
    SysAdmin = 21,
    /// Raises hard limits.
    SysResource = 24,
}

impl Capability {
    /// All capabilities of this type.
    pub const ALL: [Self; 6] = [
        Self::NetBindService,
        Self::NetAdmin,
        Self::NetRaw,
        Self::SysPtrace,
        Self::SysAdmin,
        Self::SysResource,
    ];

    /// Returns the name in `capabilities(7)`.
    pub fn name(self) -> &'static str {
        match self {
            Self::NetBindService => "CAP_NET_BIND_SERVICE",
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::NetRaw => "CAP_NET_RAW",
            Self::SysPtrace => "CAP_SYS_PTRACE",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::SysResource => "CAP_SYS_RESOURCE",
        }
    }
}

impl fmt::Display for Seccomp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "none",
            Self::Strict => "strict: all but four calls are forbidden",
            Self::Filter => "a seccomp filter, as in most containers: some calls may be refused",
        })
    }
}

impl Status {
    /// Reports whether `capability` is in effect.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities & (1 << capability as u8) != 0
    }
}

/// Reads the status of one process.
pub fn status(root: &ProcRoot, pid: u32) -> Fact<Status> {
    root.read(&format!("proc/{pid}/status"), parse)
}

/// Parses `/proc/PID/status`.
pub fn parse(text: &str) -> Result<Status, ParseFailure> {
    let line = |head, expected| after(text, head).map(str::trim).ok_or(ParseFailure(expected));
    let optional = |head| after(text, head).map(|line| next(&mut line.split_ascii_whitespace()));
    let seccomp = match optional("Seccomp:").transpose()? {
        None => None,
        Some(0) => Some(Seccomp::Off),
        Some(1) => Some(Seccomp::Strict),
        Some(2) => Some(Seccomp::Filter),
        Some(_) => return Err(ParseFailure("a seccomp mode of 0 to 2")),
    };
    Ok(Status {
        uid: next(&mut line("Uid:", "a line of Uid")?.split_ascii_whitespace().skip(1))?,
        capabilities: hex(line("CapEff:", "a line of CapEff")?)?,
        bounding: hex(line("CapBnd:", "a line of CapBnd")?)?,
        seccomp,
        no_new_privileges: optional("NoNewPrivs:").transpose()?.map(|value| value != 0),
        rss_bytes: optional("VmRSS:").transpose()?.map(|kb| kb.saturating_mul(1024)),
        threads: next(&mut line("Threads:", "a line of Threads")?.split_ascii_whitespace())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{recorded, recorded_root};

    #[test]
    fn root_outside_a_container_has_nearly_all_capabilities() {
        let found = status(&recorded_root("linux-6.18"), 4242).into_result().unwrap();
        assert_eq!((found.uid, found.threads), (0, 2));
        assert_eq!(found.seccomp, Some(Seccomp::Off));
        assert!(found.has(Capability::NetAdmin) && found.has(Capability::SysAdmin));
        assert!(!found.has(Capability::SysResource), "this machine has dropped it");
        let names = Capability::ALL.into_iter().filter(|one| found.has(*one)).map(Capability::name);
        assert!(names.eq([
            "CAP_NET_BIND_SERVICE",
            "CAP_NET_ADMIN",
            "CAP_NET_RAW",
            "CAP_SYS_PTRACE",
            "CAP_SYS_ADMIN"
        ]));
    }

    #[test]
    fn a_container_shows_its_filter() {
        let found = parse(&recorded("linux-5.15-container", "proc/self/status")).unwrap();
        assert_eq!(found.seccomp, Some(Seccomp::Filter));
        assert_eq!(found.no_new_privileges, Some(true));
        assert!(!found.has(Capability::NetAdmin) && !found.has(Capability::NetBindService));
        assert_eq!(found.uid, 10_001);
    }

    #[test]
    fn an_old_kernel_without_seccomp_has_no_filter() {
        let found = parse(&recorded("linux-3.10", "proc/self/status")).unwrap();
        assert_eq!((found.seccomp, found.no_new_privileges), (None, None));
        assert!(found.has(Capability::SysResource));
    }

    #[test]
    fn a_status_without_capabilities_is_refused() {
        assert!(parse("Uid:\t0\t0\t0\t0\nThreads:\t1\n").is_err());
        assert!(parse("").is_err());
    }
}
