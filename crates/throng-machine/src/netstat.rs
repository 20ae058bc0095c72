//! `/proc/net/netstat` and `/proc/net/snmp`: pairs of lines, names above values.
//!
//! Every kernel has its own set of names. A counter is therefore looked up by name, and one that
//! this kernel does not have is absent, not zero. The counters belong to one network namespace.

use std::collections::BTreeMap;

use crate::fact::ParseFailure;

/// The counters of one file, by group (`TcpExt`, `Tcp`) and name (`ListenOverflows`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetCounters<'a>(BTreeMap<(&'a str, &'a str), u64>);

impl NetCounters<'_> {
    /// Returns a counter, or `None` if this kernel does not have it. A negative value
    /// (`Tcp.MaxConn` is -1 for "no limit") is also `None`.
    pub fn get(&self, group: &str, name: &str) -> Option<u64> {
        self.0.get(&(group, name)).copied()
    }

    /// Returns the number of counters.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Reports whether there are no counters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Parses either file.
pub fn parse(text: &str) -> Result<NetCounters<'_>, ParseFailure> {
    let mut counters = BTreeMap::new();
    let mut lines = text.lines().filter(|line| !line.is_empty());
    while let Some(names) = lines.next() {
        let values = lines.next().ok_or(ParseFailure("a line of values"))?;
        let (group, names) = names.split_once(':').ok_or(ParseFailure("a group of counters"))?;
        let (same, values) = values.split_once(':').ok_or(ParseFailure("a group of counters"))?;
        if group != same {
            return Err(ParseFailure("values below their names"));
        }
        let mut values = values.split_ascii_whitespace();
        for name in names.split_ascii_whitespace() {
            let value = values.next().ok_or(ParseFailure("as many values as names"))?;
            match value.parse() {
                Ok(value) => drop(counters.insert((group, name), value)),
                Err(_) if value.parse::<i64>().is_ok() => {}
                Err(_) => return Err(ParseFailure("a number")),
            }
        }
        if values.next().is_some() {
            return Err(ParseFailure("as many values as names"));
        }
    }
    if counters.is_empty() { Err(ParseFailure("counters")) } else { Ok(NetCounters(counters)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;

    #[test]
    fn counters_are_found_by_name_in_every_kernel() {
        for (kernel, overflows, syn_retrans) in
            [("linux-6.18", 0, Some(0)), ("linux-4.19", 311, Some(57)), ("linux-3.10", 12, None)]
        {
            let text = recorded(kernel, "proc/thread-self/net/netstat");
            let counters = parse(&text).unwrap();
            assert_eq!(counters.get("TcpExt", "ListenOverflows"), Some(overflows), "{kernel}");
            assert_eq!(counters.get("TcpExt", "TCPSynRetrans"), syn_retrans, "{kernel}");
            assert!(counters.get("IpExt", "InOctets").is_some(), "{kernel}");
        }
    }

    #[test]
    fn a_newer_kernel_has_more_counters() {
        let text = recorded("linux-6.18", "proc/thread-self/net/netstat");
        let counters = parse(&text).unwrap();
        assert!(counters.len() > 150, "{}", counters.len());
        assert_eq!(counters.get("TcpExt", "TCPReqQFullDrop"), Some(0));
    }

    #[test]
    fn a_limit_of_minus_one_is_no_number_of_connections() {
        let text = recorded("linux-6.18", "proc/thread-self/net/snmp");
        let counters = parse(&text).unwrap();
        assert_eq!(counters.get("Tcp", "MaxConn"), None);
        assert_eq!(counters.get("Tcp", "RtoMin"), Some(200));
        assert!(counters.get("Tcp", "InSegs").unwrap() > 0);
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in [
            "",
            "Tcp: A B\n",
            "Tcp: A B\nTcp: 1\n",
            "Tcp: A\nTcp: 1 2\n",
            "Tcp: A\nIp: 1\n",
            "Tcp: A\nTcp: x\n",
            "no colon\nnone\n",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
