//! Foreign servers, each with one fault.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Starts a server in the calling thread's namespace. It runs `each` for each connection, on a
/// thread for each. It ends with the test: no client can connect to it after its namespace is gone.
pub(crate) fn server(each: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let each = each.clone();
            thread::spawn(move || each(connection));
        }
    });
    addr
}

/// Responds to every request with this status, and closes.
pub(crate) fn refuses(status: &'static str) -> impl Fn(TcpStream) + Clone + Send + 'static {
    move |mut connection| {
        let mut request = [0; 4096];
        let _ = connection.read(&mut request);
        let _ = write!(
            connection,
            "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
    }
}

/// Closes every accepted connection.
pub(crate) fn closes() -> impl Fn(TcpStream) + Clone + Send + 'static {
    drop
}

/// Echoes all bytes, and uses this much CPU time before each answer.
pub(crate) fn answers_at_a_cost(cost: Duration) -> impl Fn(TcpStream) + Clone + Send + 'static {
    move |mut connection| {
        let mut question = [0; 4096];
        while let Ok(length @ 1..) = connection.read(&mut question) {
            compute(cost);
            if connection.write_all(&question[..length]).is_err() {
                return;
            }
        }
    }
}

/// Starts a server that does the work of all connections on one thread. Each connection has its own
/// reader thread.
pub(crate) fn dispatcher(cost: Duration) -> SocketAddr {
    let (questions, asked) = mpsc::channel::<(TcpStream, Vec<u8>)>();
    thread::spawn(move || {
        for (mut connection, question) in asked {
            compute(cost);
            let _ = connection.write_all(&question);
        }
    });
    server(move |mut connection| {
        let mut question = [0; 4096];
        while let Ok(length @ 1..) = connection.read(&mut question) {
            let Ok(writer) = connection.try_clone() else { return };
            let _ = questions.send((writer, question[..length].to_vec()));
        }
    })
}

/// Keeps a CPU busy for this much CPU time of the thread.
fn compute(cost: Duration) {
    let spent = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let until = spent() + cost;
    while spent() < until {
        std::hint::spin_loop();
    }
}

/// Answers all input with `ok`, after a delay.
pub(crate) fn answers_after(delay: Duration) -> impl Fn(TcpStream) + Clone + Send + 'static {
    move |mut connection| {
        let mut question = [0; 4096];
        while connection.read(&mut question).is_ok_and(|n| n > 0) {
            thread::sleep(delay);
            if connection.write_all(b"ok").is_err() {
                return;
            }
        }
    }
}
