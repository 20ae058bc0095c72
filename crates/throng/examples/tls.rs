//! An echo server over TLS that takes renewed certificates while it runs:
//! `cargo run --example tls -- 127.0.0.1:5555 chain.pem key.pem`.
//!
//! Each line on standard input makes it read both files again. It ends with its input.

use std::path::Path;

use throng::Server;
use throng::tls::{CertifiedPair, TicketKeys, TlsServerOptions};

fn main() -> throng::Result {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or(default.into());
    let (address, chain, key) = (next("127.0.0.1:5555"), next("chain.pem"), next("key.pem"));
    let pair = || CertifiedPair::read(Path::new(&chain), Path::new(&key));

    let mut tls = TlsServerOptions::new(vec![pair()?]);
    tls.tickets = TicketKeys::random(); // clients that return resume their sessions
    let server = Server::bind(address).tls(tls).on_bytes(|conn, bytes| conn.send(bytes)).start()?;
    println!("listening on {}", server.addr());

    for _line in std::io::stdin().lines() {
        let Some(mut tls) = server.tls() else { break };
        let reloaded = pair().map_err(throng::Error::from).and_then(|pair| {
            tls.pairs = vec![pair];
            Ok(server.reload_tls(tls)?)
        });
        match reloaded {
            Ok(()) => println!("new connections have the new certificate"),
            Err(error) => println!("the old certificate stays: {error}"),
        }
    }
    Ok(())
}
