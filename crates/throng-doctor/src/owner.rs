//! The process that listens on a port: the search goes from the listener's inode to the fd table
//! that holds it.
//!
//! The kernel lists listeners by `sock_diag`; if that is refused, the first lines of
//! `/proc/net/tcp` have them. The search covers the fd tables of every process that this user may
//! read, and those of its threads: a thread can have a table of its own.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use crate::fact::{Fact, ParseFailure, Reason, Unknown};
use crate::listeners::ListenerReader;
use crate::proc_root::ProcRoot;
use crate::process::parse_stat;

/// A process that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// Name of the program, cut to 15 bytes.
    pub program: String,
    /// Other processes that hold the same listeners, such as a server's workers.
    pub others: Vec<u32>,
}

/// Finds the process that listens on one of `ports` in the calling thread's network namespace; no
/// ports means any port. Of several, it returns the one that has used the most CPU time. It takes a
/// few milliseconds on a machine with a hundred processes: too long for every second.
pub fn listening_process(root: &ProcRoot, ports: &[u16]) -> Fact<Owner> {
    let find = || -> Result<Owner, Unknown> {
        let inodes = inodes(root, ports).into_result()?;
        if inodes.is_empty() {
            return Err(Unknown::new(NAME, Reason::Failed("no process listens there".to_owned())));
        }
        find_holder(root, &inodes)
    };
    find().into()
}

/// A connection that has a port as its source port, so that no server can listen there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortHolder {
    /// Local and remote address: `127.0.0.1:40050 -> 127.0.0.1:7999`.
    pub connection: String,
    /// Process that holds the connection.
    pub owner: Owner,
}

/// Finds the connection that keeps a server from listening on `addr` in the calling thread's
/// network namespace: one that a program other than `except` has opened from its port. It takes as
/// long as [`listening_process`], and also walks all sockets.
pub fn port_holder(root: &ProcRoot, addr: SocketAddr, except: &str) -> Option<PortHolder> {
    let mut found = ListenerReader::default().connections_on(addr.port()).into_result().ok()?;
    // A connection from that very address blocks a listener on it; the others block listeners on
    // all addresses.
    found.sort_by_key(|diag| diag.local.ip() != addr.ip());
    found.into_iter().take(HOLDERS_MAX).find_map(|diag| {
        let owner = find_holder(root, &BTreeSet::from([u64::from(diag.inode)])).ok()?;
        let connection = format!("{} -> {}", diag.local, diag.peer);
        (owner.program != except).then_some(PortHolder { connection, owner })
    })
}

/// Returns the inodes of the listeners on `ports`.
fn inodes(root: &ProcRoot, ports: &[u16]) -> Fact<BTreeSet<u64>> {
    let mine = |port: u16| ports.is_empty() || ports.contains(&port);
    if root.is_live()
        && let Fact::Known(all) = ListenerReader::default().listeners()
    {
        let mine = all.iter().filter(|listener| mine(listener.addr.port()));
        return Fact::Known(mine.map(|listener| u64::from(listener.inode)).collect());
    }
    let read = || -> Result<BTreeSet<u64>, Unknown> {
        let mut found = BTreeSet::new();
        let mut tables = Vec::new();
        for name in ["tcp", "tcp6"] {
            let text = root.head(&format!("proc/thread-self/net/{name}"), TABLE_BYTES_MAX);
            tables.push(text.into_result().and_then(|text| {
                parse_listeners(&text)
                    .map_err(|error| Unknown::new(format!("proc/net/{name}"), error))
            }));
        }
        // Without IPv6 in the kernel, only one of the two exists.
        if tables.iter().all(Result::is_err) {
            tables.swap_remove(0)?;
        }
        for (port, inode) in tables.into_iter().flatten().flatten() {
            if mine(port) {
                found.insert(inode);
            }
        }
        Ok(found)
    };
    read().into()
}

/// Parses port and inode of each listener in `/proc/net/tcp` or `tcp6`. The kernel writes listeners
/// before all other sockets. The text may therefore be cut after a line, and parsing ends at the
/// first other socket.
pub fn parse_listeners(text: &str) -> Result<Vec<(u16, u64)>, ParseFailure> {
    let mut lines = text.lines();
    if !lines.next().is_some_and(|head| head.contains("local_address")) {
        return Err(ParseFailure("a line of titles"));
    }
    let mut found = Vec::new();
    for line in lines {
        let mut words = line.split_ascii_whitespace();
        let local = words.nth(1).ok_or(ParseFailure("a local address"))?;
        match words.nth(1).ok_or(ParseFailure("a state"))? {
            LISTEN => {}
            // Before Linux 4.4, half-open connections follow their listener.
            SYN_RECV => continue,
            _ => break,
        }
        let port = local.rsplit_once(':').and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
        let inode = words.nth(5).and_then(|inode| inode.parse().ok());
        found.push((port.ok_or(ParseFailure("a port"))?, inode.ok_or(ParseFailure("an inode"))?));
    }
    Ok(found)
}

/// Finds the process that holds one of the sockets.
fn find_holder(root: &ProcRoot, inodes: &BTreeSet<u64>) -> Result<Owner, Unknown> {
    let mut refused = false;
    let mut found: Vec<(u64, u32, String)> = Vec::new();
    for name in root.names("proc").into_result()? {
        let Ok(pid) = name.parse::<u32>() else { continue };
        match holds(root, pid, inodes) {
            Ok(true) => {
                let stat = root.read(&format!("proc/{pid}/stat"), parse_stat);
                if let Fact::Known(stat) = stat {
                    found.push((stat.user_us + stat.system_us, pid, stat.name));
                }
            }
            Ok(false) => {}
            Err(why) => refused |= why.reason == Reason::Refused,
        }
    }
    let all: Vec<u32> = found.iter().map(|(_, pid, _)| *pid).collect();
    // Of two that are equally busy, the older one: a parent rather than its child.
    match found.into_iter().max_by_key(|(cpu_us, pid, _)| (*cpu_us, std::cmp::Reverse(*pid))) {
        Some((_, pid, program)) => {
            let others = all.into_iter().filter(|other| *other != pid).collect();
            Ok(Owner { pid, program, others })
        }
        None if refused => Err(Unknown::new("proc/*/fd", Reason::Refused)),
        None => {
            let reason = "no process that is visible here holds the listener";
            Err(Unknown::new("proc/*/fd", Reason::Failed(reason.to_owned())))
        }
    }
}

/// Reports whether a process holds one of the sockets.
fn holds(root: &ProcRoot, pid: u32, inodes: &BTreeSet<u64>) -> Result<bool, Unknown> {
    let shared = fds(root, &format!("proc/{pid}/fd"))?;
    if has_one(root, &format!("proc/{pid}/fd"), &shared, inodes) {
        return Ok(true);
    }
    for thread in root.names(&format!("proc/{pid}/task")).into_result()? {
        let table = format!("proc/{pid}/task/{thread}/fd");
        let Ok(mut own) = fds(root, &table) else { continue };
        if own == shared {
            // Most likely it is the same table. But a thread's own copy can have the same numbers
            // with other files behind them. Its first files are enough to tell: many threads that
            // share a long table must not cost a long search each.
            own.truncate(FDS_COMPARED);
        }
        if has_one(root, &table, &own, inodes) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the lowest [`FDS_MAX`] fds of a table: servers listen before they accept.
fn fds(root: &ProcRoot, table: &str) -> Result<Vec<u32>, Unknown> {
    let names = root.names(table).into_result()?;
    let mut fds: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    fds.sort_unstable();
    fds.truncate(FDS_MAX);
    Ok(fds)
}

/// Reports whether one of these fds is one of the sockets.
fn has_one(root: &ProcRoot, table: &str, fds: &[u32], inodes: &BTreeSet<u64>) -> bool {
    fds.iter().any(|fd| {
        root.link(&format!("{table}/{fd}"))
            .and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
            .is_some_and(|inode: u64| inodes.contains(&inode))
    })
}

/// The most connections whose owners are searched for.
const HOLDERS_MAX: usize = 4;

/// The name of the search as the source of a fact.
const NAME: &str = "listening process";

/// The states in `/proc/net/tcp`.
const LISTEN: &str = "0A";
const SYN_RECV: &str = "03";

/// The bytes of about seven thousand listeners.
const TABLE_BYTES_MAX: usize = 1 << 20;

/// The most fds of one table that are read.
const FDS_MAX: usize = 4096;

/// The most fds that are read of a thread's table with the same numbers as the process's.
const FDS_COMPARED: usize = 64;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const TABLE: &str = "  \
        sl  local_address rem_address   st tx_queue rx_queue tr tm->when \
        retrnsmt   uid  timeout inode
   0: 00000000:15B3 00000000:0000 0A 00000000:00000003 00:00000000 \
        00000000     0        0 7001 1 0000000000000000 100 0 0 10 0
   1: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 \
        00000000     0        0 7002 1 0000000000000000 100 0 0 10 0
   2: 0100007F:15B3 0100007F:C350 01 00000000:00000000 00:00000000 \
        00000000     0        0 7003 1 0000000000000000 20 4 30 10 -1
   3: half a li";

    #[test]
    fn listeners_come_first_and_the_rest_is_not_read() {
        assert_eq!(parse_listeners(TABLE), Ok(vec![(5555, 7001), (22, 7002)]));
        assert!(parse_listeners("").is_err());
        assert!(parse_listeners("sl local_address\n 0: 1:2 3 0A 1 1 1 1 1 x").is_err());
    }

    #[test]
    fn recorded_tables_are_read() {
        let read = |name: &str| {
            parse_listeners(&crate::recorded("linux-6.18", &format!("proc/thread-self/net/{name}")))
        };
        assert_eq!(read("tcp"), Ok(vec![(5555, 83_824_474)]));
        assert_eq!(read("tcp6"), Ok(vec![(9000, 83_824_475)]));
        let old = crate::recorded("linux-3.10", "proc/thread-self/net/tcp");
        assert_eq!(parse_listeners(&old), Ok(vec![(22, 11_702), (80, 11_840)]));
    }

    #[test]
    fn the_process_that_listens_is_found_by_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let found = listening_process(&ProcRoot::default(), &[port]).into_result().unwrap();
        assert_eq!(found.pid, std::process::id());
        assert!(!found.program.is_empty());
        drop(listener);
        let why = listening_process(&ProcRoot::default(), &[port]).into_result().unwrap_err();
        assert!(why.to_string().contains("no process listens"), "{why}");
    }

    #[test]
    fn a_connection_that_has_a_port_as_its_source_is_found_with_its_owner() {
        // An address that no other test uses; its connections are those accepted here.
        let listener = TcpListener::bind("127.83.7.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let client = std::net::TcpStream::connect(addr).unwrap();
        let _accepted = listener.accept().unwrap();
        let found = port_holder(&ProcRoot::default(), addr, "another").expect("it is there");
        assert_eq!(found.owner.pid, std::process::id());
        assert_eq!(found.connection, format!("{addr} -> {}", client.local_addr().unwrap()));
        let others = port_holder(&ProcRoot::default(), addr, &found.owner.program);
        assert!(others.is_none_or(|other| other.owner.pid != found.owner.pid), "it is its own");
    }

    #[test]
    fn where_netlink_is_refused_the_table_of_proc_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let link = |path: &str, to: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(to, path).unwrap();
        };
        write("proc/thread-self/net/tcp", TABLE);
        let third = "  local_address inode\n 0: ::0:0051 ::0:0000 0A 0:0 0:0 0 0 0 7004 1\n";
        write("proc/thread-self/net/tcp6", third);
        // The second thread has a table of its own, with the same numbers.
        link("proc/10/fd/7", "socket:[7009]");
        link("proc/10/task/10/fd/7", "socket:[7009]");
        link("proc/10/task/11/fd/7", "socket:[7001]");
        write("proc/10/stat", "10 (holder) S 1 1 1 0 -1 0 0 0 0 0 11 22 0 0 20 0 2 0 99 0 0");
        // The third thread has one with other numbers.
        link("proc/11/fd/7", "socket:[7009]");
        link("proc/11/task/12/fd/8", "socket:[7004]");
        write("proc/11/stat", "11 (other) S 1 1 1 0 -1 0 0 0 0 0 11 22 0 0 20 0 2 0 99 0 0");
        let root = ProcRoot::new(dir.path());
        let owner = |port| listening_process(&root, &[port]).into_result();
        assert_eq!(owner(5555), Ok(Owner { pid: 10, program: "holder".into(), others: vec![] }));
        assert_eq!(owner(81), Ok(Owner { pid: 11, program: "other".into(), others: vec![] }));
        assert!(owner(22).unwrap_err().to_string().contains("no process"));
        assert!(owner(80).unwrap_err().to_string().contains("no process listens"));
    }
}
