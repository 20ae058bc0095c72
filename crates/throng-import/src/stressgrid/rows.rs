//! The constructs of Stressgrid that need no code.

use crate::row::Row;

/// Functions, and words that begin a block.
pub(super) const CALLS: &[Row] = rows! {
    "inc_counter" NotNeeded "device.ex:do_inc_counter" =>
        "throng counts what each kind of step does; a step with a `name` has a row of its own";
    "IO.puts" "IO.inspect" NotNeeded "" => "`throng try` shows what a user does";
    "random_bits" NotNeeded "device_context.ex:random_bits" => "its value is not used";
    "random_bytes" NotNeeded "device_context.ex:random_bytes" => "its value is not used";
    "start_timing" Approximated "device.ex:do_start_timing" => OTHER_TIMING;
    "stop_timing" "stop_start_timing" Approximated "device.ex:do_stop_timing" => OTHER_TIMING;
    "init_second_connection" NotSupported "child_gun_device.ex" =>
        "a user has one connection: make a class of users for the other";
    "if" "unless" NotSupported "" => IF;
    "for" NotSupported "" => "write `repeat: {times, do}`, or `foreach: {name, in, do}` by hand";
    "Enum.each" NotSupported "" =>
        "only `1..10 |> Enum.each(fn _ -> ... end)` is read: write `repeat: {times, do}`, or \
         `foreach: {name, in, do}` for a value that changes";
    "ws_send" NotSupported "gun_device.ex:ws_send" =>
        "write `ws_send_text`, `ws_send_binary` or `ws_send_json`";
    "ws_receive" NotSupported "gun_device.ex:ws_receive" =>
        "write `ws_receive_text` or `ws_receive_json`";
    "ws_receive_binary" NotSupported "gun_device.ex:ws_receive" =>
        "write what must come: `expect: {binary: de ad}`, or how much: `expect: {bytes: 4}`";
};

/// Protocols.
pub(super) const PROTOCOLS: &[Row] = rows! {
    "protocol http10" Approximated "gun_device.ex:open" =>
        "throng speaks HTTP/1.1, and keeps connections open";
    "protocol http10s" Approximated "gun_device.ex:open" =>
        "throng speaks HTTP/1.1 over TLS, and keeps connections open";
    "protocol http2" "protocol http2s" NotSupported "gun_device.ex:open" =>
        "throng speaks HTTP/1.1: load a port that does, with `http` or `https`";
};

const OTHER_TIMING: &str = "its other end is in another list of statements, or the times overlap: \
                            left out; write a `transaction`";

const IF: &str = "write `if: {condition, do, else}` by hand: it compares texts and numbers";
