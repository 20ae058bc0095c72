//! Suspend, resume, drain and stop, on real sockets.

use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::*;
use throng_driver::Errno;
use throng_measure::RunEventKind;
use throng_server::{AcceptTopology, RunningServer, ServerOptions, StartError, kinds};

#[test]
fn a_suspended_server_refuses_connects_and_serves_those_it_has() {
    for accept in TOPOLOGIES {
        let server = RunningServer::start(options(accept, 3), |_| kinds::Ok).unwrap();
        let mut open: Vec<_> = (0..30).map(|_| connect(server.addr())).collect();
        open.iter_mut().for_each(ask);
        server.suspend();
        for _ in 0..20 {
            // Every reference in every fd table is closed: no connect succeeds.
            assert!(TcpStream::connect(server.addr()).is_err(), "{accept}");
        }
        open.iter_mut().for_each(ask);
        for _ in 0..3 {
            server.resume().unwrap();
            let mut again: Vec<_> = (0..30).map(|_| connect(server.addr())).collect();
            again.iter_mut().for_each(ask);
            server.suspend();
            assert!(TcpStream::connect(server.addr()).is_err(), "{accept}");
            again.iter_mut().for_each(ask);
        }
        open.iter_mut().for_each(ask);
        assert!(server.stop());
    }
}

#[test]
fn what_has_connected_before_the_suspension_is_accepted() {
    let server =
        RunningServer::start(options(AcceptTopology::Reuseport, 2), |_| kinds::Ok).unwrap();
    for _ in 0..20 {
        let mut streams: Vec<_> = (0..20).map(|_| connect(server.addr())).collect();
        server.suspend();
        streams.iter_mut().for_each(ask);
        server.resume().unwrap();
    }
}

#[test]
fn a_drain_lets_connections_end_and_closes_the_rest() {
    for accept in TOPOLOGIES {
        let server = RunningServer::start(options(accept, 2), |_| kinds::Ok).unwrap();
        let mut stays = connect(server.addr());
        let mut goes = connect(server.addr());
        ask(&mut stays);
        ask(&mut goes);
        drop(goes);
        assert!(!server.drain(Duration::from_millis(100)), "{accept}: one had to be closed");
        assert!(is_closed_by_peer(&mut stays));
        assert_eq!(server.open(), 0);
        let draining = [1, 2].map(|open| RunEventKind::Draining { open });
        assert!(matches!(&server.events()[..], [event] if draining.contains(&event.kind)));

        server.resume().unwrap();
        let mut last = connect(server.addr());
        ask(&mut last);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                drop(last);
            });
            let begun = Instant::now();
            assert!(server.drain(PATIENCE), "{accept}: all ended by themselves");
            assert!(begun.elapsed() < PATIENCE / 2);
        });
    }
}

#[test]
fn connections_end_with_their_server() {
    let server = RunningServer::start(options(AcceptTopology::Shared, 3), |_| kinds::Ok).unwrap();
    let mut clients: Vec<_> = (0..30).map(|_| connect(server.addr())).collect();
    clients.iter_mut().for_each(ask);
    let addr = server.addr();
    drop(server);
    assert!(clients.iter_mut().all(is_closed_by_peer));
    assert!(TcpStream::connect(addr).is_err());
}

#[test]
fn an_address_that_is_taken_is_an_error() {
    for accept in TOPOLOGIES {
        let first = RunningServer::start(options(accept, 2), |_| kinds::Ok).unwrap();
        let options = ServerOptions { listen: first.addr(), ..options(accept, 2) };
        match RunningServer::start(options, |_| kinds::Ok) {
            Err(StartError::Listen(addr, Errno::ADDR_IN_USE)) => assert_eq!(addr, first.addr()),
            Err(other) => panic!("{accept}: {other}"),
            Ok(_) => panic!("{accept}: two servers listen on one address"),
        }
        ask(&mut connect(first.addr()));
    }
}

#[test]
fn a_core_that_stalls_is_reported_as_it_was_last() {
    /// A handler that reports that it stalls, and stalls until it is released.
    struct Stall(Sender<()>, Arc<Mutex<Receiver<()>>>);
    impl throng_server::Handler for Stall {
        type Session = throng_server::Raw;
        type State = ();
        type Message = std::convert::Infallible;
        fn event(&mut self, _conn: &mut throng_server::Connection<'_, Self>, _bytes: &[u8]) {
            let _ = self.0.send(());
            let _ = self.1.lock().unwrap().recv_timeout(PATIENCE);
        }
    }
    let (tell, told) = channel();
    let (go_on, is_over) = channel();
    let is_over = Arc::new(Mutex::new(is_over));
    let stall = move |_| Stall(tell.clone(), Arc::clone(&is_over));
    let server = RunningServer::start(options(AcceptTopology::Dispatch, 2), stall).unwrap();
    let mut clients: Vec<_> = (0..2).map(|_| connect(server.addr())).collect();
    assert!(server.wait_until(|open| open == 2, PATIENCE));
    clients[0].write_all(b"x").unwrap();
    told.recv_timeout(PATIENCE).unwrap();
    // The stalled core is not waited for: its handler continues only after this report.
    eventually("the other core answers", || server.snapshot().cores_silent == 1);
    assert_eq!(server.snapshot().open_per_core, [1, 1]);
    go_on.send(()).unwrap();
    eventually("the core answers again", || server.snapshot().cores_silent == 0);
}
