//! `--exit-with-parent`: ends the process in order when its parent has ended.

use std::io::{self, Read};
use std::thread;

use crate::interrupt::{By, Interrupt};

/// Reads standard input on a separate thread until it ends, which happens when the parent closes
/// its side of the pipe or dies for any reason.
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
        interrupt.request(By::Parent);
    };
    let builder = thread::Builder::new().name("parent".to_owned()).stack_size(STACK_BYTES);
    builder.spawn(until_the_end).expect("a thread that waits for the parent's end");
}

const STACK_BYTES: usize = 64 << 10;
