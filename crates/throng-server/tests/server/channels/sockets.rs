//! Channels on real sockets, and messages from other threads.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use throng_server::channels::{
    Address, Channel, ChannelHandler, Channels, ConnectGrant, Info, JoinRefusal, Joining,
    PhoenixPayload, Reference, Socket, demo,
};
use throng_server::{RunningServer, ServerOptions};

use super::world::{Got, Received, TEXT, frame, upgrade};

/// A channel whose requests a worker on a thread of its own answers.
struct Clerk {
    jobs: Sender<Job>,
}

type Job = (Address, Reference, String);

impl Channel for Clerk {
    fn join(joining: &mut Joining<'_>) -> Result<Self, JoinRefusal> {
        let jobs = joining.assigns::<Sender<Job>>().cloned();
        jobs.map(|jobs| Self { jobs }).ok_or_else(|| JoinRefusal::because("there is no worker"))
    }

    fn handle_in(&mut self, _event: &str, payload: PhoenixPayload<'_>, socket: &mut Socket<'_>) {
        let PhoenixPayload::Json(json) = payload else { return };
        self.jobs.send((socket.address(), socket.reference(), json.to_owned())).unwrap();
    }

    fn handle_info(&mut self, info: Info, socket: &mut Socket<'_>) {
        let (reference, response) = *info.downcast::<(Reference, String)>().unwrap();
        socket.reply_to(&reference, "ok", PhoenixPayload::Json(&response));
    }
}

struct Client {
    stream: TcpStream,
    received: Received,
}

impl Client {
    fn open(server: &RunningServer<ChannelHandler>, path: &str) -> Self {
        let mut stream = TcpStream::connect(server.addr()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(upgrade(path, "").replace('\n', "\r\n").as_bytes()).unwrap();
        let mut client = Self { stream, received: Received::default() };
        assert!(matches!(client.next(), Got::Answer(head, _) if head.starts_with("HTTP/1.1 101 ")));
        client
    }

    fn text(&mut self, text: &str) {
        self.stream.write_all(&frame(TEXT, text.as_bytes())).unwrap();
    }

    fn next(&mut self) -> Got {
        let mut buffer = [0; 4_096];
        loop {
            if let Some(got) = self.received.take() {
                return got;
            }
            match self.stream.read(&mut buffer).expect("the server answers") {
                0 => return Got::End,
                count => self.received.push(&buffer[..count]),
            }
        }
    }

    #[track_caller]
    fn expect(&mut self, text: &str) {
        assert_eq!(self.next(), Got::Text(text.to_owned()));
    }
}

fn start(channels: Channels, cores: usize) -> RunningServer<ChannelHandler> {
    let options = ServerOptions { cores: Some(cores), ..ServerOptions::default() };
    RunningServer::start(options, move |core| channels.handler(core)).unwrap()
}

#[test]
fn a_worker_on_another_thread_answers_later() {
    let (jobs, to_do) = channel::<Job>();
    let jobs = Mutex::new(jobs);
    let channels = Channels::new("/socket")
        .channel::<Clerk>("work:*")
        .unwrap()
        .connect(move |_| Ok(ConnectGrant::default().with_assigns(jobs.lock().unwrap().clone())));
    let server = start(channels, 2);
    let handle = server.handle();
    let worker = std::thread::spawn(move || {
        let first: Vec<_> = to_do.iter().take(2).collect();
        // The last one first.
        for (address, reference, json) in first.into_iter().rev() {
            let info = Box::new((reference, format!(r#"{{"done":{json}}}"#)));
            assert!(handle.send_info(&address, info).is_ok());
        }
    });
    let mut client = Client::open(&server, "/socket/websocket?vsn=2.0.0");
    client.text(r#"["1","1","work:a","phx_join",{}]"#);
    client.expect(r#"["1","1","work:a","phx_reply",{"status":"ok","response":{}}]"#);
    client.text(r#"["1","2","work:a","do",1]"#);
    client.text(r#"["1","3","work:a","do",2]"#);
    client.expect(r#"["1","3","work:a","phx_reply",{"status":"ok","response":{"done":2}}]"#);
    client.expect(r#"["1","2","work:a","phx_reply",{"status":"ok","response":{"done":1}}]"#);
    worker.join().unwrap();
}

#[test]
fn another_thread_broadcasts_and_disconnects() {
    let channels = demo().connect(|connect| {
        Ok(ConnectGrant::default()
            .with_id(format!("user:{}", connect.param("id").unwrap_or_default())))
    });
    let server = start(channels, 3);
    let mut clients: Vec<_> = (0..9)
        .map(|n| Client::open(&server, &format!("/socket/websocket?vsn=2.0.0&id={}", n % 3)))
        .collect();
    for client in &mut clients {
        client.text(r#"["1","1","rooms:a","phx_join",{}]"#);
        client.expect(r#"["1","1","rooms:a","phx_reply",{"status":"ok","response":{}}]"#);
    }
    let handle = Arc::new(server.handle());
    let outside = Arc::clone(&handle);
    std::thread::spawn(move || {
        assert!(outside.broadcast("rooms:a", "news", PhoenixPayload::Json(r#"{"n":1}"#)));
        assert!(outside.broadcast("rooms:a", "news", PhoenixPayload::Json(r#"{"n":2}"#)));
    })
    .join()
    .unwrap();
    for client in &mut clients {
        client.expect(r#"[null,null,"rooms:a","news",{"n":1}]"#);
        client.expect(r#"[null,null,"rooms:a","news",{"n":2}]"#);
    }
    assert!(handle.broadcast("user:1", "disconnect", PhoenixPayload::EMPTY));
    for client in clients.iter_mut().skip(1).step_by(3) {
        assert_eq!(client.next(), Got::Close(Some(1001)));
    }
    clients[0].text(r#"["1","2","rooms:a","echo",{}]"#);
    clients[0].expect(r#"["1","2","rooms:a","phx_reply",{"status":"ok","response":{}}]"#);
}

#[test]
fn a_client_that_sends_too_much_gets_the_close_frame_and_its_channels_end_at_once() {
    let server = start(demo(), 1);
    let mut loud = Client::open(&server, "/socket/websocket?vsn=2.0.0");
    loud.text(r#"["1","1","rooms:a","phx_join",{}]"#);
    loud.expect(r#"["1","1","rooms:a","phx_reply",{"status":"ok","response":{}}]"#);
    // All of it is sent before anything is read.
    loud.stream.write_all(&frame(TEXT, &[b'x'; 16 << 20])).expect("the server takes it");
    assert_eq!(loud.next(), Got::Close(Some(1009)));
    assert_eq!(loud.next(), Got::End);
    let counters = server.snapshot().counters;
    assert_eq!((counters.open, counters.channels, counters.memberships), (1, 0, 0));
    assert_eq!(counters.resets, 0);
}

#[test]
fn a_server_that_drains_ends_once_its_clients_have_answered() {
    let server = start(demo(), 2);
    let clients: Vec<_> =
        (0..50).map(|_| Client::open(&server, "/socket/websocket?vsn=2.0.0")).collect();
    let answering = std::thread::spawn(move || {
        for mut client in clients {
            assert_eq!(client.next(), Got::Close(Some(1012)));
            client.stream.write_all(&frame(8, &1012u16.to_be_bytes())).unwrap();
            assert_eq!(client.next(), Got::End);
        }
    });
    assert!(server.drain(Duration::from_secs(30)), "all of them have ended by themselves");
    answering.join().unwrap();
}
