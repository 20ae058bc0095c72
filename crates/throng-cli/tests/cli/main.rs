//! Tests of the `throng` command as its users see it: real processes on loopback, their exit codes,
//! their output.

mod answers;
mod broadcast;
mod calibrate;
mod class_loads;
mod compare;
mod cookbook;
mod displays;
mod end;
mod export;
// The tests of the endpoint use the rest.
#[allow(dead_code)]
#[path = "../../../throng-view/tests/view/exposition.rs"]
mod exposition;
mod find;
mod fleet;
mod help;
mod hostile;
mod import;
mod import_log;
mod init;
mod key_log;
mod metrics;
mod named;
// The tests of the bus use the rest.
#[allow(dead_code)]
#[path = "../../../throng-bus/tests/bus/nats_server.rs"]
mod nats_server;
mod observer;
mod plan;
mod process;
mod recipes;
mod refuse;
mod resume;
mod run;
mod serve;
mod serve_alerts;
mod serve_tls;
mod serve_tls_files;
mod setup;
mod statuses;
mod steer;
mod top;
mod trial;
mod watch;
