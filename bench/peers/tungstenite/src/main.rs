//! A chat on tokio-tungstenite: every text message goes to all clients, the sender included.
//!
//!     throng-bench-tungstenite PORT THREADS
//!
//! A task for each connection, which waits for its peer and for tokio's broadcast channel at once.
//! The text is shared by all receivers; each frames it for itself, as the library has it.

use futures_util::{SinkExt, StreamExt};
use socket2::{Domain, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast::{self, Receiver, Sender, error::RecvError};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

/// The capacity of the channel; a slow reader loses older messages.
const MESSAGES_MAX: usize = 1024;
/// The read buffer. The library's default of 128 KiB for each connection would stay unused here.
const READ_BUFFER_BYTES: usize = 4096;

fn main() -> std::io::Result<()> {
    let arguments: Vec<usize> = std::env::args().skip(1).flat_map(|a| a.parse()).collect();
    let [port, threads] = arguments[..] else { panic!("PORT and THREADS") };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_io().build()?;
    runtime.block_on(async {
        let (sender, _) = broadcast::channel(MESSAGES_MAX);
        // The runtime's main thread is not a worker: an accept there would cost a handoff for each
        // connection.
        tokio::spawn(accept(listener(port as u16)?, sender)).await?;
        Ok(())
    })
}

fn listener(port: u16) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    socket.listen(4096)?;
    TcpListener::from_std(socket.into())
}

async fn accept(listener: TcpListener, sender: Sender<Utf8Bytes>) {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            let (sender, receiver) = (sender.clone(), sender.subscribe());
            // The reason for the end of a connection does not matter here.
            tokio::spawn(async move { _ = serve(stream, sender, receiver).await });
        }
    }
}

async fn serve(
    stream: TcpStream,
    sender: Sender<Utf8Bytes>,
    mut messages: Receiver<Utf8Bytes>,
) -> Result<(), Error> {
    let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER_BYTES);
    let mut socket = tokio_tungstenite::accept_async_with_config(stream, Some(config)).await?;
    loop {
        tokio::select! {
            message = messages.recv() => match message {
                Ok(text) => socket.send(Message::Text(text)).await?,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Ok(()),
            },
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => _ = sender.send(text),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            },
        }
    }
}
