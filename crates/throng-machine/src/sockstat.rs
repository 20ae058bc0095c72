//! `/proc/net/sockstat` and `/proc/net/sockstat6`: the number of sockets, and the pages in TCP's
//! buffers.

use crate::fact::ParseFailure;
use crate::text::{after, named};

/// The sockets of one network namespace; some fields are of the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sockstat {
    /// Sockets of every kind that processes hold.
    pub sockets_used: u64,
    /// TCP sockets of IPv4 in the hash tables: listening or connected.
    pub tcp_in_use: u64,
    /// TCP sockets that no process holds and that still have data to send; of the whole machine.
    pub tcp_orphan: u64,
    /// Connections in TIME-WAIT, with those of IPv6.
    pub tcp_time_wait: u64,
    /// TCP sockets in any state; of the whole machine.
    pub tcp_alloc: u64,
    /// Pages in TCP's buffers; of the whole machine.
    pub tcp_mem_pages: u64,
}

/// Parses `sockstat`.
pub fn parse(text: &str) -> Result<Sockstat, ParseFailure> {
    let sockets = after(text, "sockets: ").ok_or(ParseFailure("a line of sockets"))?;
    let tcp = after(text, "TCP: ").ok_or(ParseFailure("a line of TCP"))?;
    let get = |line, name| named(line, name).ok_or(ParseFailure("a number of sockets"));
    Ok(Sockstat {
        sockets_used: get(sockets, "used")?,
        tcp_in_use: get(tcp, "inuse")?,
        tcp_orphan: get(tcp, "orphan")?,
        tcp_time_wait: get(tcp, "tw")?,
        tcp_alloc: get(tcp, "alloc")?,
        tcp_mem_pages: get(tcp, "mem")?,
    })
}

/// Parses `sockstat6`: TCP sockets of IPv6 in the hash tables.
pub fn parse6(text: &str) -> Result<u64, ParseFailure> {
    let tcp = after(text, "TCP6: ").ok_or(ParseFailure("a line of TCP6"))?;
    named(tcp, "inuse").ok_or(ParseFailure("a number of sockets"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;

    #[test]
    fn sockets_are_counted_by_state() {
        let found = parse(&recorded("linux-4.19", "proc/thread-self/net/sockstat")).unwrap();
        assert_eq!(
            found,
            Sockstat {
                sockets_used: 200_412,
                tcp_in_use: 200_007,
                tcp_orphan: 3,
                tcp_time_wait: 1_204,
                tcp_alloc: 200_019,
                tcp_mem_pages: 5_310,
            }
        );
        assert!(parse(&recorded("linux-6.18", "proc/thread-self/net/sockstat")).is_ok());
        assert_eq!(parse6(&recorded("linux-6.18", "proc/thread-self/net/sockstat6")), Ok(0));
    }

    #[test]
    fn a_missing_field_is_not_zero() {
        assert!(parse("sockets: used 3\nTCP: inuse 1 orphan 0 tw 0 alloc 2\n").is_err());
        assert!(parse("TCP: inuse 1 orphan 0 tw 0 alloc 2 mem 0\n").is_err());
        assert!(parse6("UDP6: inuse 0\n").is_err());
    }
}
