//! The server, as an echo, against the fuzzing client.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use throng_proto::websocket::{Deflater, ServerEvent, WebSocketServer};

use crate::conformance::kosoku::Kosoku;
use crate::conformance::wire::{LIMITS, NextStep, drive};

/// Runs the cases against a server of this process.
pub(super) fn run(kosoku: &Kosoku, cases: &[&str], folder: &Path) -> Result<(), String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    // It accepts connections until the process ends.
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    let mut command = kosoku.command("fuzzingclient", &format!("ws://{address}"), cases, folder);
    // The report contains everything that the exit code says.
    command.args(["--parallelism", "4"]).status().map_err(|error| error.to_string())?;
    Ok(())
}

fn serve(mut stream: TcpStream) {
    let mut deflater = Deflater::always();
    let mut server = WebSocketServer::new(throng_base::Instant::ZERO, &LIMITS);
    // The fuzzing client judges a case that ends in a reset.
    let _ = drive(&mut stream, &mut server, Vec::new(), |server, event, out| {
        match event {
            ServerEvent::Request(request) => match server.check_upgrade(&request) {
                Ok(upgrade) => server.accept(&upgrade, None, &[("server", "throng")], true, out),
                Err(refusal) => {
                    if !server.refuse(&refusal, out) {
                        return NextStep::Close;
                    }
                }
            },
            ServerEvent::Text(text) => server.text(text, Some(&mut deflater), out),
            ServerEvent::Binary(bytes) => server.binary(bytes, Some(&mut deflater), out),
            ServerEvent::Ping(_) | ServerEvent::Pong(_) => {}
            ServerEvent::Closed { .. } | ServerEvent::Failed(_) => return NextStep::Close,
        }
        NextStep::Continue
    });
}
