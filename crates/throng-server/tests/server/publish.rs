//! Publications from a thread that is not a core.

use std::io::{Read, Write};
use std::sync::Arc;

use crate::support::{connect, eventually, options};
use throng_server::pubsub::{Dialect, Publication, Subscription};
use throng_server::{AcceptTopology, Connection, Handler, Raw, RunningServer};

/// A handler that subscribes a connection at its first byte.
struct Listeners;

impl Handler for Listeners {
    type Session = Raw;
    type State = ();
    type Message = std::convert::Infallible;

    fn event(&mut self, conn: &mut Connection<'_, Self>, _bytes: &[u8]) {
        conn.subscribe("news", Subscription::default());
    }

    fn render(&mut self, publication: &Publication, _dialect: Dialect, out: &mut Vec<u8>) {
        let number: &u32 = publication.body().expect("numbers are published");
        assert!(*number != PANICS_AT, "this is the test's own panic");
        out.extend(number.to_be_bytes());
    }
}

const COUNT: u32 = 500;
const PANICS_AT: u32 = 250;

#[test]
fn what_another_thread_publishes_reaches_all_cores_in_order() {
    let server =
        RunningServer::start(options(AcceptTopology::Reuseport, 3), |_| Listeners).unwrap();
    let mut members: Vec<_> = (0..12).map(|_| connect(server.addr())).collect();
    for member in &mut members {
        member.write_all(b"?").unwrap();
    }
    eventually("all are members", || server.snapshot().counters.memberships == 12);
    let sender = server.handle();
    for number in 0..COUNT {
        assert!(sender.publish(Arc::new(Publication::new("news", number))).is_ok());
        assert!(sender.publish(Publication::new("rumours", number)).is_ok());
    }
    // A publication that cannot be rendered reaches no connection and ends none.
    for member in &mut members {
        for number in (0..COUNT).filter(|&number| number != PANICS_AT) {
            let mut bytes = [0; 4];
            member.read_exact(&mut bytes).unwrap();
            assert_eq!(u32::from_be_bytes(bytes), number);
        }
    }
    let snapshot = server.snapshot();
    assert_eq!(snapshot.counters.published, 2 * u64::from(COUNT));
    assert_eq!(snapshot.counters.publishes_dropped, 0);
    assert!((1..=3).contains(&snapshot.core.panics), "once a core at most");
    assert_eq!(snapshot.counters.open, 12);
}
