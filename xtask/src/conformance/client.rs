//! The client, as an echo, against the fuzzing server.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use throng_base::Prng;
use throng_proto::websocket::{
    ClientEvent, ClientHandshake, DeflateOffer, Deflater, WebSocketClient,
};

use crate::conformance::kosoku::Kosoku;
use crate::conformance::wire::{NextStep, drive};

/// Runs the cases of a fuzzing server, [`THREADS`] at a time.
pub(super) fn run(kosoku: &Kosoku, cases: &[&str], folder: &Path) -> Result<(), String> {
    let mut child = kosoku
        .command("fuzzingserver", "127.0.0.1:0", cases, folder)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let outcome = match child.stderr.take() {
        Some(stderr) => drive_all(BufReader::new(stderr)),
        None => Err("kosoku has no standard error".to_owned()),
    };
    if outcome.is_err() {
        let _ = child.kill();
    }
    // The report contains everything that the exit code says.
    child.wait().map_err(|error| error.to_string())?;
    outcome
}

fn drive_all(mut stderr: impl BufRead + Send + 'static) -> Result<(), String> {
    let mut line = String::new();
    stderr.read_line(&mut line).map_err(|error| error.to_string())?;
    let (_, address) =
        line.trim().split_once("ws://").ok_or_else(|| format!("kosoku says: {line}"))?;
    // Further output must not fill the pipe.
    thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    let count = read_text(address, "/getCaseCount")?
        .parse::<usize>()
        .map_err(|_| "kosoku does not report the number of cases".to_owned())?;
    let next = AtomicUsize::new(1);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let case = next.fetch_add(1, Ordering::Relaxed);
                    if case > count {
                        return;
                    }
                    // The fuzzing server judges a case that ends in a reset.
                    let _ = run_case(address, case);
                }
            });
        }
    });
    read_text(address, "/updateReports?agent=throng").map(drop)
}

const THREADS: usize = 4;

/// Returns the text that the server sends on a connection of its own; empty for none.
fn read_text(address: &str, path_and_query: &str) -> Result<String, String> {
    let mut answer = String::new();
    run_connection(address, path_and_query, 0, |_, event, _| {
        if let ClientEvent::Text(text) = event {
            text.clone_into(&mut answer);
        }
    })?;
    Ok(answer)
}

/// Runs one case as an echo to its end.
fn run_case(address: &str, case: usize) -> Result<(), String> {
    let mut random = Prng::derive(9, case as u64);
    let mut deflater = Deflater::always();
    run_connection(
        address,
        &format!("/runCase?case={case}&agent=throng"),
        case,
        |client, event, out| {
            let mask = (random.bits() as u32).to_ne_bytes();
            match event {
                ClientEvent::Text(text) => client.text(text, mask, Some(&mut deflater), out),
                ClientEvent::Binary(bytes) => client.binary(bytes, mask, Some(&mut deflater), out),
                _ => {}
            }
        },
    )
}

/// Runs one connection to its end.
fn run_connection(
    address: &str,
    path_and_query: &str,
    seed: usize,
    mut on_event: impl FnMut(&mut WebSocketClient, ClientEvent<'_>, &mut Vec<u8>),
) -> Result<(), String> {
    let mut stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
    let mut key = [0; 16];
    Prng::derive(7, seed as u64).fill(&mut key);
    let (mut client, mut out) = (WebSocketClient::new(), Vec::new());
    let handshake = ClientHandshake {
        host: address,
        path_and_query,
        headers: &[("user-agent", "throng")],
        subprotocols: &[],
        deflate: &OFFERS,
        key,
    };
    client.begin(&handshake, &mut out);
    drive(&mut stream, &mut client, out, |client, event, out| {
        on_event(client, event, out);
        match event {
            ClientEvent::Closed { .. } => NextStep::AwaitClose,
            ClientEvent::Refused(_) | ClientEvent::Failed(_) => NextStep::Close,
            _ => NextStep::Continue,
        }
    })
    .map_err(|error| error.to_string())
}

/// The offer of browsers, and one that agrees to all that a case may ask for.
const OFFERS: [DeflateOffer; 2] = [
    DeflateOffer::BROWSER,
    DeflateOffer {
        server_no_context_takeover: true,
        client_no_context_takeover: true,
        ..DeflateOffer::BROWSER
    },
];
