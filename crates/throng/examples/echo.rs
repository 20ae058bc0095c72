//! A server of plain TCP that sends back what it receives:
//! `cargo run --example echo -- 127.0.0.1:5555`.

use throng::Server;

fn main() -> throng::Result {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:5555".into());
    Server::bind(address)
        .on_bytes(|conn, bytes| conn.send(bytes))
        .on_listening(|address| println!("listening on {address}"))
        .run()
}
