//! A real NATS server for a test, on a free port of this machine.

use std::io::{Write, stderr};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use throng_bus::{NatsBus, NatsOptions};

/// A running server. It ends when it is dropped.
pub(crate) struct NatsServer {
    process: Child,
    port: u16,
    options: Vec<String>,
}

impl NatsServer {
    /// Starts a server; `None` if `make clients` did not find one.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts a server with these options.
    pub(crate) fn start_with(options: &[&str]) -> Option<Self> {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let port = free_port();
        let process = spawn(port, &options)?;
        let server = Self { process, port, options };
        server.wait_until_it_listens();
        Some(server)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn connect(&self) -> NatsBus {
        let address = format!("nats://127.0.0.1:{}", self.port);
        let options = NatsOptions { address, name: "test".into(), ..NatsOptions::default() };
        NatsBus::connect(&options).expect("the server listens")
    }

    pub(crate) fn stop(&mut self) {
        self.process.kill().expect("a running server");
        self.process.wait().expect("its end");
    }

    pub(crate) fn start_again(&mut self) {
        self.process = spawn(self.port, &self.options).expect("it was there before");
        self.wait_until_it_listens();
    }

    fn wait_until_it_listens(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            assert!(Instant::now() < deadline, "nats-server does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

fn spawn(port: u16, options: &[String]) -> Option<Child> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients/nats-server");
    let mut command = Command::new(own);
    command.args(["--addr", "127.0.0.1", "--port", &port.to_string()]).args(options);
    match command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
        Ok(process) => Some(process),
        Err(error) => {
            let test = std::thread::current().name().unwrap_or_default().to_owned();
            // Past the capture of the test's output: a skipped test does not pass silently.
            _ = writeln!(stderr(), "skipped: {test}: nats-server: {error}: run `make clients`");
            None
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}
