//! What cannot run says what is wrong, and where.

use throng::{Error, Load, Server};

#[test]
fn a_scenario_with_a_mistake_is_shown_with_its_line() {
    let load = Load::new("target: tcp://127.0.0.1:1\nload: [{hold: {for: 1s}}]\nuser: [conect]\n");
    let error = load.run().unwrap_err().to_string();
    assert!(error.contains("conect") && error.contains('3'), "{error}");
}

#[test]
fn a_target_that_belongs_to_others_is_refused() {
    // An address for documentation (RFC 5737): it is refused before anything is sent.
    let load = Load::new(SCENARIO).target("tcp://192.0.2.1:5555");
    let error = load.run().unwrap_err();
    assert!(matches!(error, Error::Forbidden(_)), "{error}");
    assert!(error.to_string().contains("i_am_allowed"), "{error}");
}

#[test]
fn a_target_that_makes_no_sense_is_shown() {
    let error = Load::new(SCENARIO).target("smtp://127.0.0.1").run().unwrap_err().to_string();
    assert!(error.contains("smtp://127.0.0.1"), "{error}");
}

#[test]
fn a_scenario_file_that_is_missing_is_named() {
    let error = Load::from_file("no-such.yaml").run().unwrap_err().to_string();
    assert!(error.contains("no-such.yaml"), "{error}");
}

#[test]
fn an_address_without_a_port_is_refused_when_the_server_starts() {
    let error = Server::bind("127.0.0.1").on_bytes(|_, _| ()).start().err().unwrap().to_string();
    assert!(error.contains("127.0.0.1") && error.contains("HOST:PORT"), "{error}");
}

#[test]
fn an_address_that_is_taken_is_named() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap();
    let error = Server::bind(taken).on_bytes(|_, _| ()).start().err().unwrap().to_string();
    assert!(error.contains(&taken.to_string()), "{error}");
}

const SCENARIO: &str =
    "target: tcp://127.0.0.1:1\nload: [{ramp: {to: 1, over: 1s}}]\nuser: [connect]\n";
