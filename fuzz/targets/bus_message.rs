#![no_main]

#[path = "../src/bus_message.rs"]
mod bus_message;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bus_message::check(bytes));
