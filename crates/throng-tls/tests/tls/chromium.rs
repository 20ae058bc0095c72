//! Chromium as the client: a page that makes one connection after the other.

use std::net::TcpListener;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use throng_tls::{HandshakeReport, TicketKeys, TlsHandshakeKind, TlsServerConfig};

use crate::certificates::{Options, VERSIONS};
use crate::end::{End, Ours};
use crate::program::{Program, is_here};
use crate::socket::Socket;

const PAGE: &str = include_str!("../peers/chromium/page.html");

#[test]
fn chromium_talks_and_resumes() {
    if !is_here("chromium", &["--version"]) {
        return;
    }
    for version in VERSIONS {
        let mut options = Options::new();
        (options.server.min, options.server.max) = (version, version);
        options.server.tickets = Some(TicketKeys::new([1; 32]));
        options.server.alpn = vec![b"http/1.1".to_vec()];
        let config = options.server();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
        let (reports, of_connections) = channel();
        // It accepts connections until the process ends.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, reports) = (config.clone(), reports.clone());
                thread::spawn(move || serve(&config, stream, &reports));
            }
        });
        let place = tempfile::tempdir().unwrap();
        let profile = format!("--user-data-dir={}", place.path().display());
        let mut browser = Program::start(
            "chromium",
            &[
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--ignore-certificate-errors",
                &profile,
                "--dump-dom",
                &url,
            ],
            place.path(),
        );
        browser.expect("answer to hello /1, answer to hello /2, answer to hello /3</p>");
        let reports: Vec<HandshakeReport> = of_connections.try_iter().collect();
        assert!(reports.iter().all(|report| report.suite.version() == version));
        assert!(reports.iter().all(|report| report.alpn.as_deref() == Some(b"http/1.1")));
        let resumed = reports.iter().filter(|report| report.kind == TlsHandshakeKind::Resumed);
        assert!(resumed.count() >= 1, "{version:?}: {reports:?}");
    }
}

/// Answers one request, and closes. A browser may open connections that it does not use.
fn serve(config: &TlsServerConfig, stream: std::net::TcpStream, reports: &Sender<HandshakeReport>) {
    let mut socket = Socket::new(Ours::server(config), stream);
    socket.until("handshake", |end| end.is_open());
    let report = socket.end.established.clone().expect("the handshake is complete");
    let _ = reports.send(report);
    socket.until("request", |end| {
        let text = String::from_utf8_lossy(&end.plain);
        text.starts_with("GET") && text.contains("\r\n\r\n") || text.contains("hello /")
    });
    let request = String::from_utf8(socket.end.take_plain()).expect("a request is text");
    let answer = match request.split_once("hello /") {
        Some((_, number)) => format!("answer to hello /{number}"),
        None if request.starts_with("GET / ") => PAGE.to_owned(),
        None => String::new(),
    };
    socket.write(&format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{answer}",
        answer.len()
    ));
    socket.end.close();
    socket.flush();
}
