//! Flags with units, parsed as scenarios are: `64KiB`, `15m`, `100k`.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use throng_base::units;
use throng_driver::fdtable::CORES_MAX;

/// Parses the size of a socket's buffer, which the kernel counts in 31 bits.
pub(crate) fn socket_bytes(text: &str) -> Result<u32, String> {
    let bytes = units::parse_bytes(text).map_err(|error| error.to_string())?;
    match u32::try_from(bytes) {
        Ok(bytes) if bytes > 0 && i32::try_from(bytes).is_ok() => Ok(bytes),
        _ => Err("a socket buffer is between 1 byte and 2 GiB".to_owned()),
    }
}

/// Parses a duration above zero.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match units::parse_duration(text) {
        Ok(Duration::ZERO) => Err("the duration must be above zero".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses the time between two reports: at least 100 ms, so that reporting costs nothing.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        short if short < INTERVAL_LEAST => Err("an interval is at least 100ms".to_owned()),
        interval => Ok(interval),
    }
}

const INTERVAL_LEAST: Duration = Duration::from_millis(100);

/// Parses the length of a calibration: long enough for a measurement, short enough to wait for.
pub(crate) fn calibration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        length if CALIBRATION.contains(&length) => Ok(length),
        _ => Err("a calibration takes between 1s and 1m".to_owned()),
    }
}

const CALIBRATION: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(60);

/// Parses an address and a port to listen on.
pub(crate) fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected an IP address and a port, such as 127.0.0.1:5555, 0.0.0.0:5555 for every \
         address, or [::1]:5555"
            .to_owned()
    })
}

/// Parses an address to listen on; a port alone (`8080`, `:8080`, `localhost:8080`) is on this
/// machine only.
pub(crate) fn local_listen(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':')).unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| {
        "expected a port of this machine, such as 9464, or an IP address and a port, such as \
         10.0.0.7:9464; port 0 is any free one"
            .to_owned()
    })
}

/// Parses whole seconds above zero, without a unit.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0 => Ok(seconds),
        _ => Err("expected a whole number of seconds from 1, without a unit".to_owned()),
    }
}

/// Parses a number of users.
pub(crate) fn users(text: &str) -> Result<u32, String> {
    let count = units::parse_count(text).map_err(|error| error.to_string())?;
    u32::try_from(count).ok().filter(|count| *count > 0).ok_or_else(|| {
        let most = units::show_count(u32::MAX.into());
        format!("expected a number of users from 1 to {most}")
    })
}

/// Parses a rate above zero, per second.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    match units::parse_rate(text) {
        Ok(rate) if rate > 0.0 && rate <= RATE_MAX => Ok(rate),
        Ok(_) => Err("expected a rate above zero, at most 1G/s".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

const RATE_MAX: f64 = 1e9;

/// Parses a count above zero.
pub(crate) fn count(text: &str) -> Result<usize, String> {
    let count = units::parse_count(text).map_err(|error| error.to_string())?;
    match usize::try_from(count) {
        Ok(0) => Err("the number must be at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err("the number is too large".to_owned()),
    }
}

/// Parses a rate per second: `50k` or `50k/s`.
pub(crate) fn per_s(text: &str) -> Result<f64, String> {
    let per_s = if text.contains('/') {
        units::parse_rate(text)
    } else {
        units::parse_count(text).map(|count| count as f64)
    };
    match per_s {
        Ok(per_s) if per_s > 0.0 => Ok(per_s),
        Ok(_) => Err("the rate must be above zero".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses the size of a message, which may be zero.
pub(crate) fn message_bytes(text: &str) -> Result<u64, String> {
    match units::parse_bytes(text).map_err(|error| error.to_string())? {
        bytes if bytes > MESSAGE_BYTES_MAX => Err("a message has at most 1 GiB".to_owned()),
        bytes => Ok(bytes),
    }
}

const MESSAGE_BYTES_MAX: u64 = 1 << 30;

/// Parses the memory of a machine.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    match units::parse_bytes(text).map_err(|error| error.to_string())? {
        bytes if bytes < MEMORY_LEAST => Err("a machine has at least 64MiB".to_owned()),
        bytes => Ok(bytes),
    }
}

const MEMORY_LEAST: u64 = 64 << 20;

/// Parses a bit rate above zero.
pub(crate) fn bit_rate(text: &str) -> Result<f64, String> {
    match units::parse_bit_rate(text) {
        Ok(per_s) if per_s > 0.0 => Ok(per_s),
        Ok(_) => Err("the rate must be above zero".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses the number of cores of a process: threads, and fd tables.
pub(crate) fn cores(text: &str) -> Result<usize, String> {
    match count(text)? {
        cores if cores > CORES_MAX => Err(format!("a process has at most {CORES_MAX} cores")),
        cores => Ok(cores),
    }
}

/// Parses a listen backlog, 1 to 2^31.
pub(crate) fn backlog(text: &str) -> Result<u32, String> {
    let backlog = count(text)?;
    i32::try_from(backlog)
        .map(|backlog| backlog as u32)
        .map_err(|_| "the number is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_units_and_limits() {
        assert_eq!(socket_bytes("64KiB"), Ok(65_536));
        assert!(socket_bytes("3GiB").unwrap_err().contains("2 GiB"));
        assert_eq!(interval("0.5s"), Ok(Duration::from_millis(500)));
        assert!(interval("10ms").unwrap_err().contains("100ms"));
        assert!(duration("5").unwrap_err().contains("unit"));
        assert_eq!(calibration("1500ms"), Ok(Duration::from_millis(1_500)));
        assert!(calibration("0.5s").is_err() && calibration("2m").unwrap_err().contains("1m"));
        assert_eq!([per_s("50k"), per_s("50k/s")], [Ok(50_000.0), Ok(50_000.0)]);
        assert!(per_s("0").is_err() && bit_rate("0bit").is_err());
        assert!(memory("1kB").is_err() && message_bytes("0") == Ok(0));
        assert_eq!(count("100k"), Ok(100_000));
        assert!(
            listen("[::1]:80").is_ok() && listen("5555").unwrap_err().contains("127.0.0.1:5555")
        );
        for (text, addr) in [
            ("127.0.0.1:0", Some("127.0.0.1:0")),
            ("[::1]:8080", Some("[::1]:8080")),
            ("0.0.0.0:80", Some("0.0.0.0:80")),
            ("8080", Some("127.0.0.1:8080")),
            (":8080", Some("127.0.0.1:8080")),
            ("localhost:8080", Some("127.0.0.1:8080")),
            ("localhost", None),
            ("localhost::8080", None),
            ("scenario.yaml", None),
            ("70000", None),
        ] {
            let expected = addr.map(|addr| addr.parse().unwrap());
            assert_eq!(local_listen(text).ok(), expected, "{text}");
        }
        assert_eq!(seconds("5"), Ok(5));
        assert!(seconds("0").is_err() && seconds("5s").unwrap_err().contains("without a unit"));
        assert!(count("0").is_err() && cores("2k").is_err() && backlog("4G").is_err());
    }
}
