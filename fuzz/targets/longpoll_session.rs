#![no_main]

#[path = "../src/longpoll_session.rs"]
mod longpoll_session;
#[path = "../../crates/throng-server/tests/server/channels/world.rs"]
#[allow(dead_code, reason = "the server's tests use the rest of it")]
mod world;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| longpoll_session::check(bytes));
