//! The `throng` command as its users meet it: real processes on loopback, their exit codes, their output.

mod broadcast;
mod calibrate;
mod end;
mod help;
mod hostile;
mod plan;
mod process;
mod refuse;
mod run;
mod serve;
mod steer;
mod watch;
