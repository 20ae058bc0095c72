//! The constructs of Stressgrid that need no code.

use crate::row::{Row, approximated, not_needed, not_supported};

/// Functions, and words that begin a block.
pub(super) const CALLS: &[Row] = &[
    not_needed(
        "inc_counter",
        "throng counts what each kind of step does; a step with a `name` has a row of its own",
        "device.ex:do_inc_counter",
    ),
    not_needed("IO.puts", "`throng try` shows what a user does", ""),
    not_needed("IO.inspect", "`throng try` shows what a user does", ""),
    not_needed("random_bits", "its value is not used", "device_context.ex:random_bits"),
    not_needed("random_bytes", "its value is not used", "device_context.ex:random_bytes"),
    approximated("start_timing", OTHER_TIMING, "device.ex:do_start_timing"),
    approximated("stop_timing", OTHER_TIMING, "device.ex:do_stop_timing"),
    approximated("stop_start_timing", OTHER_TIMING, "device.ex:do_stop_timing"),
    not_supported(
        "init_second_connection",
        "a user has one connection: make a class of users for the other",
        "child_gun_device.ex",
    ),
    not_supported("if", IF, ""),
    not_supported("unless", IF, ""),
    not_supported("for", "write `repeat: {times, do}`, or `foreach: {name, in, do}` by hand", ""),
    not_supported(
        "Enum.each",
        "only `1..10 |> Enum.each(fn _ -> ... end)` is read: write `repeat: {times, do}`, or \
         `foreach: {name, in, do}` for a value that changes",
        "",
    ),
    not_supported(
        "ws_send",
        "write `ws_send_text`, `ws_send_binary` or `ws_send_json`",
        "gun_device.ex:ws_send",
    ),
    not_supported(
        "ws_receive",
        "write `ws_receive_text` or `ws_receive_json`",
        "gun_device.ex:ws_receive",
    ),
    not_supported(
        "ws_receive_binary",
        "write what must come: `expect: {binary: de ad}`, or how much: `expect: {bytes: 4}`",
        "gun_device.ex:ws_receive",
    ),
];

/// Protocols.
pub(super) const PROTOCOLS: &[Row] = &[
    approximated(
        "protocol http10",
        "throng speaks HTTP/1.1, and keeps connections open",
        "gun_device.ex:open",
    ),
    not_supported("protocol https", NO_TLS, "gun_device.ex:open"),
    not_supported("protocol http10s", NO_TLS, "gun_device.ex:open"),
    not_supported("protocol http2", NO_TLS, "gun_device.ex:open"),
    not_supported("protocol http2s", NO_TLS, "gun_device.ex:open"),
];

const OTHER_TIMING: &str = "its other end is in another list of statements, or the times overlap: \
                            left out; write a `transaction`";

const IF: &str = "write `if: {condition, do, else}` by hand: it compares texts and numbers";

const NO_TLS: &str = "throng speaks HTTP/1.1 without TLS: load a port behind the TLS terminator";
