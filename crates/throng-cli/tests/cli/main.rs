//! Tests of the `throng` command as its users see it: real processes on loopback, their exit codes,
//! their output.

mod broadcast;
mod calibrate;
mod compare;
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
