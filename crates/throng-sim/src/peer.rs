//! Connections that a test makes itself, call by call, to a core of the world.

use std::cell::RefCell;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::{ConnectSpec, Errno, SocketClose, Sockets};
use throng_proto::{SocketTransport, TransportKey, TransportRole, TransportStatus};

use crate::Sim;
use crate::driver::{SimDriver, SimFd};

/// Client sockets without a core, over the world's transport if it has one. Its handshake goes on
/// in each call.
pub struct SimPeers {
    driver: SimDriver<()>,
    transport: Option<Box<dyn SocketTransport>>,
}

/// Socket of [`SimPeers`].
pub struct PeerSocket {
    fd: SimFd,
    records: Option<RefCell<PeerRecords>>,
}

/// Records of a socket on their way.
struct PeerRecords {
    key: TransportKey,
    unsent: Vec<u8>,
    /// A record that has arrived in part.
    part: Vec<u8>,
    plain: Vec<u8>,
}

impl SimPeers {
    pub(crate) fn new(driver: SimDriver<()>, transport: Option<Box<dyn SocketTransport>>) -> Self {
        Self { driver, transport }
    }

    /// Begins to connect.
    pub fn connect(&mut self, spec: &ConnectSpec) -> Result<PeerSocket, Errno> {
        let fd = self.driver.connect(spec)?;
        let records = self.transport.as_mut().map(|transport| {
            let mut unsent = Vec::new();
            let key = transport.begin(TransportRole::Client, self.driver.now(), &mut unsent);
            RefCell::new(PeerRecords { key, unsent, part: Vec::new(), plain: Vec::new() })
        });
        Ok(PeerSocket { fd, records })
    }

    /// Connects, and runs the world until the transport is open. A plain socket has none, and is
    /// returned at once.
    ///
    /// # Panics
    /// If it does not open in ten seconds.
    pub fn open(&mut self, sim: &mut Sim, spec: &ConnectSpec) -> Result<PeerSocket, Errno> {
        let socket = self.connect(spec)?;
        for _ in 0..10_000 {
            let (Some(transport), Some(records)) = (&mut self.transport, &socket.records) else {
                return Ok(socket);
            };
            let records = &mut *records.borrow_mut();
            if transport.status(records.key) != TransportStatus::Opening {
                break;
            }
            sim.run_for(Duration::from_millis(1));
            let _ = records.flush(&mut self.driver, &socket.fd);
            let _ = records.receive(&mut self.driver, &mut **transport, &socket.fd, 1);
            let _ = records.flush(&mut self.driver, &socket.fd);
        }
        let records = socket.records.as_ref().expect("it has a transport").borrow().key;
        let status = self.transport.as_ref().map(|transport| transport.status(records));
        assert_eq!(status, Some(TransportStatus::Open), "the handshake does not end");
        Ok(socket)
    }

    /// Sends as much of `bytes` as the socket takes. Records are taken whole.
    pub fn send(&mut self, socket: &PeerSocket, bytes: &[u8]) -> Result<usize, Errno> {
        let (Some(transport), Some(records)) = (&mut self.transport, &socket.records) else {
            return self.driver.send(&socket.fd, bytes);
        };
        let records = &mut *records.borrow_mut();
        if transport.status(records.key) == TransportStatus::Opening {
            let _ = records.receive(&mut self.driver, &mut **transport, &socket.fd, 4_096);
        }
        records.flush(&mut self.driver, &socket.fd)?;
        if transport.status(records.key) == TransportStatus::Opening || !records.unsent.is_empty() {
            return Err(Errno::AGAIN);
        }
        transport.seal(records.key, bytes, &mut records.unsent);
        records.flush(&mut self.driver, &socket.fd)?;
        Ok(bytes.len())
    }

    /// Receives plaintext. Zero means that the peer has finished sending.
    ///
    /// # Panics
    /// If the transport fails: what a core sends is always right.
    pub fn recv(&mut self, socket: &PeerSocket, buffer: &mut [u8]) -> Result<usize, Errno> {
        let (Some(transport), Some(records)) = (&mut self.transport, &socket.records) else {
            return self.driver.recv(&socket.fd, buffer);
        };
        let records = &mut *records.borrow_mut();
        records.flush(&mut self.driver, &socket.fd)?;
        while records.plain.is_empty() {
            match transport.status(records.key) {
                TransportStatus::Opening | TransportStatus::Open => {}
                TransportStatus::Finished => return Ok(0),
                TransportStatus::Failed(error) => panic!("a core sent a wrong record: {error}"),
            }
            let length = buffer.len().max(1);
            let received =
                records.receive(&mut self.driver, &mut **transport, &socket.fd, length)?;
            records.flush(&mut self.driver, &socket.fd)?;
            if received == 0 {
                return Ok(0);
            }
        }
        let count = buffer.len().min(records.plain.len());
        buffer[..count].copy_from_slice(&records.plain[..count]);
        records.plain.drain(..count);
        Ok(count)
    }

    /// Says over the transport that this peer sends no more.
    ///
    /// # Panics
    /// If the world has no transport.
    pub fn finish(&mut self, socket: &PeerSocket) -> Result<(), Errno> {
        let records = socket.records.as_ref().expect("the world has a transport");
        let records = &mut *records.borrow_mut();
        let transport = self.transport.as_mut().expect("the world has a transport");
        transport.finish(records.key, &mut records.unsent);
        records.flush(&mut self.driver, &socket.fd)
    }

    /// Sends bytes as they are, below the transport.
    pub fn send_raw(&mut self, socket: &PeerSocket, bytes: &[u8]) -> Result<usize, Errno> {
        self.driver.send(&socket.fd, bytes)
    }

    /// Receives bytes as they are, below the transport.
    pub fn recv_raw(&mut self, socket: &PeerSocket, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.driver.recv(&socket.fd, buffer)
    }

    /// Returns the records of `plain`, which it does not send.
    ///
    /// # Panics
    /// If the world has no transport.
    pub fn seal(&mut self, socket: &PeerSocket, plain: &[u8]) -> Vec<u8> {
        let records = socket.records.as_ref().expect("the world has a transport").borrow();
        let transport = self.transport.as_mut().expect("the world has a transport");
        let mut sealed = Vec::new();
        transport.seal(records.key, plain, &mut sealed);
        sealed
    }

    /// Closes the socket.
    pub fn close(&mut self, socket: PeerSocket, how: SocketClose) {
        self.driver.close(socket.fd, how);
    }
}

impl PeerRecords {
    /// Sends what is sealed, as far as the socket takes it.
    fn flush(&mut self, driver: &mut SimDriver<()>, fd: &SimFd) -> Result<(), Errno> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        match driver.send(fd, &self.unsent) {
            Ok(taken) => {
                self.unsent.drain(..taken);
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Receives at most `length` bytes, and opens the records that are complete.
    fn receive(
        &mut self,
        driver: &mut SimDriver<()>,
        transport: &mut dyn SocketTransport,
        fd: &SimFd,
        length: usize,
    ) -> Result<usize, Errno> {
        let mut input = std::mem::take(&mut self.part);
        let kept = input.len();
        input.resize(kept + length, 0);
        let received = driver.recv(fd, &mut input[kept..]);
        input.truncate(kept + received.as_ref().map_or(0, |received| *received));
        let opened = transport.open(self.key, Instant::ZERO, &mut input, &mut self.unsent);
        self.plain.extend(&input[..opened.plain_bytes]);
        self.part = input.split_off(input.len() - opened.incomplete_bytes);
        received
    }
}
