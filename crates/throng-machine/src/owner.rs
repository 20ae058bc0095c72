//! The process that listens: the search goes from the listener's inode to the fd table that holds
//! it.
//!
//! The kernel lists listeners by `sock_diag`; if that is refused, the first lines of
//! `/proc/net/tcp` have them. The search covers the fd tables of every process that this user may
//! read, and those of its threads: a thread can have a table of its own.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use throng_driver::netlink::ListenerState;

use crate::fact::{Fact, ParseFailure, Reason, Unknown};
use crate::listener_scope::ListenerScope;
use crate::listeners::ListenerReader;
use crate::proc_root::ProcRoot;
use crate::process::parse_stat;

/// A process that listens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// Name of the program, cut to 15 bytes.
    pub program: String,
    /// Other processes of the same server, such as workers that share its listeners.
    pub others: Vec<u32>,
    /// Addresses of the listeners that these processes hold, of those that were searched for.
    pub listens_at: Vec<SocketAddr>,
    /// Other servers on the same ports, at other addresses.
    pub beside: Vec<OtherServer>,
}

/// A process that listens at another address than the server, on the same port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherServer {
    /// Process id.
    pub pid: u32,
    /// Name of the program, cut to 15 bytes.
    pub program: String,
    /// Addresses of its listeners.
    pub listens_at: Vec<SocketAddr>,
}

/// Finds the process that holds a listener in `scope`, in the calling thread's network namespace.
/// Of several, it returns the one that has used the most CPU time. All processes that hold a
/// listener of the targets are the server; of a scope of ports, only those that listen at the same
/// addresses. It takes a few milliseconds on a machine with a hundred processes: too long for every
/// second.
pub fn listening_process(root: &ProcRoot, scope: &ListenerScope) -> Fact<Owner> {
    let find = || -> Result<Owner, Unknown> {
        let listeners = scope.select(&all_listeners(root).into_result()?);
        if listeners.is_empty() {
            return Err(Unknown::new(NAME, Reason::Failed("no process listens there".to_owned())));
        }
        let found = holders(root, &listeners)?;
        Ok(choose(found, &listeners, matches!(scope, ListenerScope::Targets(_))))
    };
    find().into()
}

/// Returns the process `pid` as the owner of those listeners in `scope` that it holds, with the
/// processes that share them.
pub fn process_as_owner(root: &ProcRoot, pid: u32, scope: &ListenerScope) -> Fact<Owner> {
    root.read(&format!("proc/{pid}/stat"), parse_stat).map(|stat| {
        let alone = Owner { pid, program: stat.name, ..Owner::default() };
        let listeners = all_listeners(root).map(|all| scope.select(&all));
        let listeners = listeners.into_result().unwrap_or_default();
        let held = held(root, pid, &inodes(&listeners)).unwrap_or_default();
        let listeners: Vec<_> =
            listeners.into_iter().filter(|one| held.contains(&u64::from(one.inode))).collect();
        let others = holders(root, &listeners).unwrap_or_default();
        let others = others.iter().map(|other| other.pid).filter(|other| *other != pid).collect();
        Owner { others, listens_at: addresses(&listeners), ..alone }
    })
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
        let holders = holders_of(root, &BTreeSet::from([u64::from(diag.inode)])).ok()?;
        let owner = choose(holders, &[], true);
        let connection = format!("{} -> {}", diag.local, diag.peer);
        (owner.program != except).then_some(PortHolder { connection, owner })
    })
}

/// Returns all listeners. Those of `/proc` have only an address and an inode.
fn all_listeners(root: &ProcRoot) -> Fact<Vec<ListenerState>> {
    if root.is_live()
        && let Fact::Known(all) = ListenerReader::default().listeners()
    {
        return Fact::Known(all);
    }
    let read = || -> Result<Vec<ListenerState>, Unknown> {
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
        Ok(tables.into_iter().flatten().flatten().collect())
    };
    read().into()
}

/// Parses address and inode of each listener in `/proc/net/tcp` or `tcp6`. The kernel writes
/// listeners before all other sockets. The text may therefore be cut after a line, and parsing ends
/// at the first other socket.
pub fn parse_listeners(text: &str) -> Result<Vec<ListenerState>, ParseFailure> {
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
        let addr = parse_address(local).ok_or(ParseFailure("an address"))?;
        let inode = words.nth(5).and_then(|inode| inode.parse().ok());
        found.push(ListenerState {
            addr,
            inode: inode.ok_or(ParseFailure("an inode"))?,
            accept_queue: 0,
            backlog: 0,
            uid: 0,
            drops: None,
            v6_only: None,
        });
    }
    Ok(found)
}

/// Parses an address of `/proc/net/tcp`: `0100007F:15B3`. The kernel prints each 32 bits of the
/// address as a number in the machine's byte order.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match ip.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            IpAddr::from(<[u8; 16]>::try_from(words.as_flattened()).ok()?)
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// A process that holds some of the sockets that were searched for.
struct Holder {
    pid: u32,
    program: String,
    cpu_us: u64,
    inodes: BTreeSet<u64>,
}

/// Returns the processes that hold one of the listeners, at least one.
fn holders(root: &ProcRoot, listeners: &[ListenerState]) -> Result<Vec<Holder>, Unknown> {
    holders_of(root, &inodes(listeners))
}

/// Returns the processes that hold one of the sockets, at least one.
fn holders_of(root: &ProcRoot, inodes: &BTreeSet<u64>) -> Result<Vec<Holder>, Unknown> {
    let mut refused = false;
    let mut found = Vec::new();
    for name in root.names("proc").into_result()? {
        let Ok(pid) = name.parse::<u32>() else { continue };
        match held(root, pid, inodes) {
            Ok(held) if !held.is_empty() => {
                let stat = root.read(&format!("proc/{pid}/stat"), parse_stat);
                if let Fact::Known(stat) = stat {
                    let cpu_us = stat.cpu_us();
                    found.push(Holder { pid, program: stat.name, cpu_us, inodes: held });
                }
            }
            Ok(_) => {}
            Err(why) => refused |= why.reason == Reason::Refused,
        }
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let reason = match refused {
        true => Reason::Refused,
        false => Reason::Failed("no process that is visible here holds the listener".to_owned()),
    };
    Err(Unknown::new("proc/*/fd", reason))
}

/// Returns the owner among the holders of `listeners`: the process that has used the most CPU time,
/// with those of the same server. Each other server is named by its busiest process. With
/// `is_one`, all holders are one server.
fn choose(mut holders: Vec<Holder>, listeners: &[ListenerState], is_one: bool) -> Owner {
    // Of two that are equally busy, the older one: a parent rather than its child.
    holders.sort_by_key(|holder| (std::cmp::Reverse(holder.cpu_us), holder.pid));
    let mut servers = Vec::new();
    while !holders.is_empty() {
        servers.push(take_server(&mut holders, listeners, is_one));
    }
    let mut servers = servers.into_iter();
    let owner = servers.next().unwrap_or_default();
    let other = |Owner { pid, program, listens_at, .. }| OtherServer { pid, program, listens_at };
    Owner { beside: servers.map(other).collect(), ..owner }
}

/// Takes the first process with all that share an address with it, or with one of those: together
/// they are a server.
fn take_server(holders: &mut Vec<Holder>, listeners: &[ListenerState], is_one: bool) -> Owner {
    let held_by = |holder: &Holder| {
        let is_held = |one: &&ListenerState| holder.inodes.contains(&u64::from(one.inode));
        listeners.iter().filter(is_held).map(|one| one.addr).collect::<BTreeSet<_>>()
    };
    let first = holders.remove(0);
    let (mut listens_at, mut others) = (held_by(&first), Vec::new());
    let joins = |holder: &Holder, listens_at: &BTreeSet<SocketAddr>| {
        is_one || !held_by(holder).is_disjoint(listens_at)
    };
    while let Some(at) = holders.iter().position(|holder| joins(holder, &listens_at)) {
        let holder = holders.remove(at);
        listens_at.extend(held_by(&holder));
        others.push(holder.pid);
    }
    others.sort_unstable();
    let Holder { pid, program, .. } = first;
    let listens_at = listens_at.into_iter().collect();
    Owner { pid, program, others, listens_at, beside: Vec::new() }
}

/// Returns the addresses of listeners, each once.
fn addresses(listeners: &[ListenerState]) -> Vec<SocketAddr> {
    let all: BTreeSet<_> = listeners.iter().map(|listener| listener.addr).collect();
    all.into_iter().collect()
}

fn inodes(listeners: &[ListenerState]) -> BTreeSet<u64> {
    listeners.iter().map(|listener| u64::from(listener.inode)).collect()
}

/// Returns those of the sockets that a process holds.
fn held(root: &ProcRoot, pid: u32, inodes: &BTreeSet<u64>) -> Result<BTreeSet<u64>, Unknown> {
    let shared = fds(root, &format!("proc/{pid}/fd"))?;
    let mut held = held_in(root, &format!("proc/{pid}/fd"), &shared, inodes);
    for thread in root.names(&format!("proc/{pid}/task")).into_result()? {
        if held.len() == inodes.len() {
            break;
        }
        let table = format!("proc/{pid}/task/{thread}/fd");
        let Ok(mut own) = fds(root, &table) else { continue };
        if own == shared {
            // Most likely it is the same table. But a thread's own copy can have the same numbers
            // with other files behind them. Its first files are enough to tell: many threads that
            // share a long table must not cost a long search each.
            own.truncate(FDS_COMPARED);
        }
        held.extend(held_in(root, &table, &own, inodes));
    }
    Ok(held)
}

/// Reports whether a process holds one of the sockets, among its first few fds.
pub(crate) fn holds_one(root: &ProcRoot, pid: u32, inodes: &BTreeSet<u64>) -> bool {
    let table = format!("proc/{pid}/fd");
    let mut first = fds(root, &table).unwrap_or_default();
    first.truncate(FDS_FIRST);
    !inodes.is_empty() && !held_in(root, &table, &first, inodes).is_empty()
}

/// Returns the lowest [`FDS_MAX`] fds of a table: servers listen before they accept.
fn fds(root: &ProcRoot, table: &str) -> Result<Vec<u32>, Unknown> {
    let names = root.names(table).into_result()?;
    let mut fds: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    fds.sort_unstable();
    fds.truncate(FDS_MAX);
    Ok(fds)
}

/// Returns those of the sockets that these fds are.
fn held_in(root: &ProcRoot, table: &str, fds: &[u32], inodes: &BTreeSet<u64>) -> BTreeSet<u64> {
    let inode = |fd: &u32| -> Option<u64> {
        let link = root.link(&format!("{table}/{fd}"))?;
        link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    fds.iter().filter_map(inode).filter(|inode| inodes.contains(inode)).take(inodes.len()).collect()
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

/// The number of fds among which a worker has its listener.
const FDS_FIRST: usize = 256;

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

    fn read(table: &str) -> Vec<(SocketAddr, u32)> {
        let all = parse_listeners(table).unwrap();
        all.iter().map(|listener| (listener.addr, listener.inode)).collect()
    }

    fn known((addr, inode): (&str, u32)) -> (SocketAddr, u32) {
        (addr.parse().unwrap(), inode)
    }

    fn on_port(port: u16) -> Fact<Owner> {
        listening_process(&ProcRoot::default(), &ListenerScope::Ports(vec![port]))
    }

    #[test]
    fn listeners_come_first_and_the_rest_is_not_read() {
        assert_eq!(read(TABLE), [("0.0.0.0:5555", 7001), ("127.0.0.1:22", 7002)].map(known));
        assert!(parse_listeners("").is_err());
        assert!(parse_listeners("sl local_address\n 0: 1:2 3 0A 1 1 1 1 1 x").is_err());
    }

    #[test]
    fn recorded_tables_are_read() {
        let recorded = |kernel: &str, name: &str| {
            read(&crate::recorded(kernel, &format!("proc/thread-self/net/{name}")))
        };
        assert_eq!(recorded("linux-6.18", "tcp"), [known(("127.0.0.1:5555", 83_824_474))]);
        assert_eq!(recorded("linux-6.18", "tcp6"), [known(("[::]:9000", 83_824_475))]);
        let old = [known(("0.0.0.0:22", 11_702)), known(("0.0.0.0:80", 11_840))];
        assert_eq!(recorded("linux-3.10", "tcp"), old);
    }

    #[test]
    fn the_process_that_listens_is_found_by_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let found = on_port(port).into_result().unwrap();
        assert_eq!(found.pid, std::process::id());
        assert!(!found.program.is_empty());
        assert_eq!(found.listens_at, [listener.local_addr().unwrap()]);
        drop(listener);
        let why = on_port(port).into_result().unwrap_err();
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
        let third = "  local_address inode\n 0: 00000000000000000000000001000000:0051 0:0 0A 0:0 \
                     0:0 0 0 0 7004 1\n";
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
        let owner = |port| {
            let found = listening_process(&root, &ListenerScope::Ports(vec![port]));
            found.into_result().map(|owner| (owner.pid, owner.program, owner.listens_at))
        };
        let holds = |pid, program: &str, addr: &str| {
            Ok((pid, program.to_owned(), vec![addr.parse().unwrap()]))
        };
        assert_eq!(owner(5555), holds(10, "holder", "0.0.0.0:5555"));
        assert_eq!(owner(81), holds(11, "other", "[::1]:81"));
        assert!(owner(22).unwrap_err().to_string().contains("no process"));
        assert!(owner(80).unwrap_err().to_string().contains("no process listens"));
    }

    /// A process that holds these sockets and has used this CPU time.
    fn holder(pid: u32, cpu_us: u64, inodes: &[u64]) -> Holder {
        let inodes = inodes.iter().copied().collect();
        Holder { pid, program: format!("p{pid}"), cpu_us, inodes }
    }

    fn listens(addr: &str, inode: u32) -> ListenerState {
        let addr = addr.parse().unwrap();
        let (accept_queue, backlog, uid) = (0, 1, 0);
        ListenerState { addr, accept_queue, backlog, inode, uid, drops: None, v6_only: None }
    }

    #[test]
    fn a_server_is_all_processes_that_share_its_addresses_and_no_other() {
        let all = [
            listens("127.0.0.1:80", 1),
            // Workers with a socket each (SO_REUSEPORT).
            listens("127.0.0.2:80", 2),
            listens("127.0.0.2:80", 3),
            listens("[::1]:80", 3),
        ];
        let holders = || {
            vec![
                holder(7, 500, &[1]),
                holder(8, 100, &[2, 3]),
                holder(9, 900, &[2]),
                holder(6, 100, &[3]),
                holder(5, 400, &[1]),
            ]
        };
        let owner = choose(holders(), &all, false);
        assert_eq!((owner.pid, &owner.others[..]), (9, &[6, 8][..]), "{owner:?}");
        assert_eq!(owner.listens_at, ["127.0.0.2:80", "[::1]:80"].map(|at| at.parse().unwrap()));
        let [beside] = &owner.beside[..] else { panic!("{owner:?}") };
        assert_eq!((beside.pid, &beside.listens_at[..]), (7, &[all[0].addr][..]));
        let of_targets = choose(holders(), &all, true);
        assert_eq!((of_targets.others, of_targets.beside), (vec![5, 6, 7, 8], vec![]));
    }

    #[test]
    fn processes_are_one_server_whichever_of_them_is_the_busiest() {
        let all = ["127.0.0.1:80", "127.0.0.2:80", "127.0.0.3:80", "127.0.0.4:80"];
        let all: Vec<_> = all.into_iter().zip(1..).map(|(at, inode)| listens(at, inode)).collect();
        // 2 shares an address with 1, and another one with 3.
        for order in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] {
            let cpu_us = |pid| 10 - order.iter().position(|other| *other == pid).unwrap() as u64;
            let holders = vec![
                holder(1, cpu_us(1), &[1]),
                holder(2, cpu_us(2), &[1, 2]),
                holder(3, cpu_us(3), &[2, 3]),
                holder(4, 1, &[4]),
            ];
            let owner = choose(holders, &all, false);
            let mut pids = [&[owner.pid], &owner.others[..]].concat();
            pids.sort_unstable();
            assert_eq!((owner.pid, &pids[..]), (order[0], &[1, 2, 3][..]), "{owner:?}");
            assert_eq!((owner.listens_at.len(), owner.beside.len()), (3, 1), "{owner:?}");
        }
    }
}
