//! `--exit-with-parent`: end in order when whoever started this process is gone.

use std::io::{self, Read};
use std::thread;

use crate::interrupt::{By, Interrupt};

/// Reads standard input on a thread of its own until its end, which comes when the parent closes its
/// side of the pipe or dies of whatever it may be.
pub(crate) fn watch(interrupt: Interrupt) {
    let until_the_end = move || {
        let mut stdin = io::stdin().lock();
        let mut ignored = [0; 64];
        loop {
            match stdin.read(&mut ignored) {
                Ok(0) => break,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
                _ => {}
            }
        }
        interrupt.ask(By::Parent);
    };
    let builder = thread::Builder::new().name("parent".to_owned()).stack_size(STACK_BYTES);
    builder.spawn(until_the_end).expect("a thread that waits for the parent's end");
}

const STACK_BYTES: usize = 64 << 10;
