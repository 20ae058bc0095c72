//! `/proc/net/dev`: packets, bytes, errors and drops of each interface of a network namespace.

use crate::fact::ParseFailure;
use crate::text::next;

/// The counters of one direction of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Direction {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Packets with an error.
    pub errors: u64,
    /// Dropped packets.
    pub dropped: u64,
}

/// The counters of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetDevice {
    /// Name, such as `lo` or `eth0`.
    pub name: String,
    /// Received packets.
    pub received: Direction,
    /// Sent packets.
    pub sent: Direction,
}

/// Parses all interfaces; the first two lines are a heading.
pub fn parse(text: &str) -> Result<Vec<NetDevice>, ParseFailure> {
    let mut lines = text.lines();
    if !lines.next().is_some_and(|line| line.starts_with("Inter-|")) || lines.next().is_none() {
        return Err(ParseFailure("the heading of two lines"));
    }
    lines.map(device).collect()
}

/// Parses the line of one interface.
fn device(line: &str) -> Result<NetDevice, ParseFailure> {
    // The name may be followed by a number without a space, and may itself hold a colon.
    let (name, numbers) = line.rsplit_once(':').ok_or(ParseFailure("the name of an interface"))?;
    let mut words = numbers.split_ascii_whitespace();
    let mut direction = || -> Result<Direction, ParseFailure> {
        let direction = Direction {
            bytes: next(&mut words)?,
            packets: next(&mut words)?,
            errors: next(&mut words)?,
            dropped: next(&mut words)?,
        };
        // FIFO, frame or collisions, compressed, multicast or carrier.
        for _ in 0..4 {
            next(&mut words)?;
        }
        Ok(direction)
    };
    Ok(NetDevice { name: name.trim().to_owned(), received: direction()?, sent: direction()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;

    #[test]
    fn every_interface_is_read() {
        let devices = parse(&recorded("linux-6.18", "proc/thread-self/net/dev")).unwrap();
        assert_eq!(devices[0].name, "lo");
        assert_eq!(devices[0].received.packets, devices[0].sent.packets, "lo sends to itself");
        // A full backlog of a CPU shows here as well as in softnet_stat.
        assert_eq!((devices[0].received.dropped, devices[0].sent.dropped), (27, 0));
        assert!(devices.iter().any(|device| device.name == "eth0" && device.sent.packets > 0));
    }

    #[test]
    fn a_wide_number_may_touch_the_name() {
        let devices = parse(&recorded("linux-3.10", "proc/thread-self/net/dev")).unwrap();
        let wide = devices.iter().find(|device| device.name == "eth0").unwrap();
        assert_eq!(wide.received.bytes, 4_178_823_764_110);
        assert_eq!((wide.received.dropped, wide.sent.dropped), (17, 4));
        assert!(devices.iter().any(|device| device.name == "eth0:1"));
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in ["", "Inter-|\n", "Inter-| Receive\n face |bytes\n lo: 1 2 3\n", "lo: 1\nx\n"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
