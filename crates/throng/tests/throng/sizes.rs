//! What an idle connection costs, as ARCHITECTURE.md says it.

use std::fs;

use throng_driver::EpollDriver;
use throng_engine::Core;
use throng_load::generator::{Generator, GeneratorMessage};
use throng_server::channels::ChannelHandler;
use throng_server::{
    BytesHandler, CoreMessage, Handler, Message, Peer, ServerApp, WebSocketHandler, WebSockets,
};

struct Silent;

impl WebSocketHandler for Silent {
    type State = ();

    fn message(&mut self, _: &mut Peer<'_, Self>, _: Message<'_>) {}
}

type ServerCore<H> = Core<ServerDriver<H>, ServerApp<H, ServerDriver<H>>>;
type ServerDriver<H> = EpollDriver<CoreMessage<<H as Handler>::Message>>;

#[test]
fn an_idle_connection_has_the_size_that_the_document_says() {
    let tcp = ServerCore::<BytesHandler>::ENTRY_BYTES;
    let web_socket = ServerCore::<WebSockets<Silent>>::ENTRY_BYTES;
    let channels = ServerCore::<ChannelHandler>::ENTRY_BYTES;
    let user = Core::<EpollDriver<GeneratorMessage>, Generator>::ENTRY_BYTES;
    let sizes = format!(
        "An idle connection of a server is an entry of {tcp} bytes over raw TCP, {web_socket} as \
         a WebSocket and {channels} where channels are served"
    );
    let user = format!("A user of the generator is an entry of {user}.");

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ARCHITECTURE.md");
    let document = fs::read_to_string(path).unwrap();
    let document = document.split_whitespace().collect::<Vec<_>>().join(" ");
    for claim in [sizes, user] {
        assert!(document.contains(&claim), "ARCHITECTURE.md should say: {claim}");
    }
}
