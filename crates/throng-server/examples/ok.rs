//! Answers every packet with `ok` until its standard input ends: `cargo run --release --example ok
//! -- 127.0.0.1:5555`.

use throng_server::{RunningServer, ServerOptions, kinds};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = ServerOptions::default();
    if let Some(listen) = std::env::args().nth(1) {
        options.listen = listen.parse()?;
    }
    if let Some(cores) = std::env::args().nth(2) {
        options.cores = Some(cores.parse()?);
    }
    let server = RunningServer::start(options, |_core| kinds::Ok)?;
    println!("listening on {}", server.addr());
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    println!("{:#?}", server.snapshot());
    Ok(())
}
