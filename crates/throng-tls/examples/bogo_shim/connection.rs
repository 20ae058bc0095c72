//! A connection to the runner.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, TcpStream};
use std::time::{Duration, SystemTime};

use throng_base::Instant;
use throng_tls::{
    HandshakeReport, TlsClientConfig, TlsHandshakeKind, TlsKey, TlsServerConfig, TlsStatus,
    TlsTable, TlsVersion,
};

use super::flags::Options;

/// The program's end of TLS.
#[derive(Clone)]
pub(crate) enum Role {
    Client(TlsClientConfig),
    Server(TlsServerConfig),
}

/// A connection with its socket.
pub(crate) struct Connection<'a> {
    table: &'a mut TlsTable,
    key: TlsKey,
    options: &'a Options,
    is_later: bool,
    stream: TcpStream,
    now: Instant,
    /// Bytes for the runner.
    out: Vec<u8>,
}

/// Returns a table whose clock begins now.
pub(crate) fn table() -> TlsTable {
    TlsTable::new(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

impl<'a> Connection<'a> {
    /// Connects to the runner. `is_later` is for a connection that should resume a session.
    pub(crate) fn new(
        table: &'a mut TlsTable,
        role: &Role,
        options: &'a Options,
        is_later: bool,
    ) -> Result<Self, String> {
        let stream = match options.is_ipv6 {
            true => TcpStream::connect((Ipv6Addr::LOCALHOST, options.port)),
            false => TcpStream::connect((Ipv4Addr::LOCALHOST, options.port)),
        };
        let mut stream = stream.map_err(|error| error.to_string())?;
        stream.write_all(&options.shim_id.to_le_bytes()).map_err(|error| error.to_string())?;
        let delay = if is_later { options.resumption_delay_secs } else { 0 };
        let now = Instant::ZERO + Duration::from_secs(delay);
        let mut out = Vec::new();
        let key = match role {
            Role::Client(config) => table.connect(config, true, now, &mut out),
            Role::Server(config) => table.accept(config),
        };
        Ok(Self { table, key, options, is_later, stream, now, out })
    }

    /// Runs the connection to its end.
    pub(crate) fn run(mut self) -> Result<(), String> {
        let (mut buffer, mut input) = (vec![0; 1 << 14], Vec::new());
        let piece = if self.options.is_async { 1 } else { buffer.len() };
        loop {
            self.flush();
            let length = match self.stream.read(&mut buffer) {
                Ok(length) => length,
                // A runner that ends with unread bytes resets its connection.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
                Err(error) => return Err(error.to_string()),
            };
            if length == 0 {
                return self.end();
            }
            for bytes in buffer[..length].chunks(piece) {
                input.extend_from_slice(bytes);
                if self.receive(&mut input)? {
                    return self.close();
                }
            }
        }
    }

    /// Reads `input`, and leaves an incomplete record in it. Returns whether the connection is
    /// over.
    fn receive(&mut self, input: &mut Vec<u8>) -> Result<bool, String> {
        let opened = self.table.open(self.key, self.now, input, &mut self.out);
        if let Some(report) = &opened.established {
            self.check(report)?;
            self.greet()?;
        }
        if opened.plain_bytes > 0 && !self.options.shuts_down {
            if self.options.updates_keys {
                self.update_keys()?;
            }
            let answer: Vec<u8> = input[..opened.plain_bytes].iter().map(|byte| !byte).collect();
            self.write(&answer)?;
            if self.options.updates_before_read {
                self.update_keys()?;
            }
        }
        input.drain(..input.len() - opened.incomplete_bytes);
        match self.table.status(self.key) {
            TlsStatus::Opening | TlsStatus::Open => {
                let is_over = opened.established.is_some()
                    && (self.options.writes_sizes
                        || self.options.shuts_down && !self.options.checks_close);
                Ok(is_over)
            }
            TlsStatus::Finished => Ok(true),
            TlsStatus::Failed(error) => {
                let error = format!("{}: {error}", error.name());
                self.close()?;
                Err(error)
            }
        }
    }

    /// Compares what was agreed with what the runner expects.
    fn check(&self, report: &HandshakeReport) -> Result<(), String> {
        let options = self.options;
        let version = if report.suite.version() == TlsVersion::V13 { 0x0304 } else { 0x0303 };
        let is_retried = report.kind == TlsHandshakeKind::Retried;
        let is_resumed = report.kind == TlsHandshakeKind::Resumed;
        let alpn = report.alpn.as_deref();
        let failed = [
            ("version", options.expects_version.is_some_and(|expected| expected != version)),
            (
                "ALPN",
                options
                    .expects_alpn
                    .as_deref()
                    .is_some_and(|expected| alpn.unwrap_or_default() != expected.as_bytes()),
            ),
            ("retry", options.expects_retry.is_some_and(|it| it != is_retried && !is_resumed)),
            ("resumption", is_resumed != (self.is_later && !options.expects_full)),
        ];
        match failed.iter().find(|(_, has_failed)| *has_failed) {
            Some((what, _)) => Err(format!("the {what} is not the expected one: {report:?}")),
            None => Ok(()),
        }
    }

    /// Sends what the runner wants at the beginning.
    fn greet(&mut self) -> Result<(), String> {
        if self.options.writes_sizes {
            for length in [0, 1, 255, 256, 257, 16_383, 16_384, 16_385, 32_767, 32_768, 32_769] {
                self.write(&vec![0x42; length])?;
            }
        } else if self.options.writes_first {
            self.write(b"hello")?;
        }
        if self.options.updates_before_read {
            self.update_keys()?;
        }
        if self.options.shuts_down {
            self.table.finish(self.key, &mut self.out);
        }
        Ok(())
    }

    fn write(&mut self, data: &[u8]) -> Result<(), String> {
        // The runner may have sent its key update, or `close_notify`, behind the data.
        self.table.seal(self.key, [data], &mut self.out).map_err(|error| error.to_string())
    }

    fn update_keys(&mut self) -> Result<(), String> {
        let updated = self.table.update_keys(self.key, false, &mut self.out);
        updated.map_err(|error| error.to_string())
    }

    /// The runner's stream ended.
    fn end(self) -> Result<(), String> {
        match self.table.status(self.key) {
            TlsStatus::Opening => Err("the runner closed in the handshake".into()),
            _ if self.options.checks_close => Err("the runner closed without close_notify".into()),
            _ => Ok(()),
        }
    }

    /// Says the last words, and waits until the runner has read them: the kernel resets a
    /// connection that is closed with unread bytes.
    fn close(&mut self) -> Result<(), String> {
        self.table.finish(self.key, &mut self.out);
        self.flush();
        let _ = self.stream.shutdown(Shutdown::Write);
        let _ = self.stream.set_read_timeout(Some(Duration::from_secs(1)));
        let _ = std::io::copy(&mut self.stream, &mut std::io::sink());
        self.table.forget(self.key);
        Ok(())
    }

    fn flush(&mut self) {
        // A runner that has what it wants does not read the rest.
        let _ = self.stream.write_all(&self.out);
        self.out.clear();
    }
}
