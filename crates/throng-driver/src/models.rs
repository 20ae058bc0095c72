//! Tests of the state that cores share, in every interleaving that loom generates (`make loom`).

use std::collections::VecDeque;

use loom::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use crate::fd_queue::FdQueue;
use crate::mailbox::{Mailbox, Signal};
use crate::{MessagePriority, Permits};

/// Model of an eventfd: a signal before a wait makes the wait return at once.
struct Event {
    is_set: Mutex<bool>,
    set: Condvar,
}

impl Event {
    fn new() -> Self {
        Self { is_set: Mutex::new(false), set: Condvar::new() }
    }

    /// Waits for a signal. Loom reports a missing signal as a deadlock.
    fn wait(&self) {
        let mut is_set = self.is_set.lock().unwrap();
        while !*is_set {
            is_set = self.set.wait(is_set).unwrap();
        }
        *is_set = false;
    }

    /// Clears the signal, if there is one.
    fn clear(&self) {
        *self.is_set.lock().unwrap() = false;
    }
}

impl Signal for Event {
    fn signal(&self) {
        *self.is_set.lock().unwrap() = true;
        self.set.notify_one();
    }
}

impl Signal for Arc<Event> {
    fn signal(&self) {
        (**self).signal();
    }
}

/// Checks a model of three threads. All interleavings would take minutes or hours. Most faults show
/// with two forced switches of a thread; this check allows four.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(model);
}

#[test]
fn no_message_is_left_when_the_owner_sleeps() {
    check(|| {
        let event = Arc::new(Event::new());
        let mailbox = Arc::new(Mailbox::new(10, Arc::clone(&event)));
        let senders: Vec<_> = [1, 2]
            .map(|number| {
                let mailbox = Arc::clone(&mailbox);
                thread::spawn(move || mailbox.push(number, MessagePriority::Control).unwrap())
            })
            .into();
        let mut messages = Vec::new();
        while messages.len() < 2 {
            // A core too sleeps only after it has received all messages.
            event.wait();
            assert!(!mailbox.pop_batch(&mut messages), "a batch is larger");
        }
        messages.sort_unstable();
        assert_eq!(messages, [1, 2]);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
}

#[test]
fn messages_of_one_sender_arrive_in_order() {
    loom::model(|| {
        let event = Arc::new(Event::new());
        let mailbox = Arc::new(Mailbox::new(10, Arc::clone(&event)));
        let sender = {
            let mailbox = Arc::clone(&mailbox);
            thread::spawn(move || {
                for number in [1, 2] {
                    mailbox.push(number, MessagePriority::Bulk).unwrap();
                }
            })
        };
        let mut messages = Vec::new();
        while messages.len() < 2 {
            event.wait();
            mailbox.pop_batch(&mut messages);
        }
        assert_eq!(messages, [1, 2]);
        sender.join().unwrap();
    });
}

/// Cores that each need a permit, where there is only one, as acceptors do it: a core without a
/// permit sleeps until it is woken; a woken core that needs no permit wakes the next core.
struct Cores {
    permits: Permits,
    events: Vec<Event>,
    /// Cores that have had a permit.
    served: AtomicUsize,
}

impl Cores {
    fn new(count: usize) -> Arc<Self> {
        let events = (0..count).map(|_| Event::new()).collect();
        Arc::new(Self { permits: Permits::new(1), events, served: AtomicUsize::new(0) })
    }

    fn release(&self) {
        if let Some(core) = self.permits.release() {
            self.events[core].signal();
        }
    }

    /// Acquires a permit, releases it, and passes wake-ups on until every core has had a permit.
    fn run(&self, core: usize) {
        while !self.permits.acquire_or_register(core) {
            self.events[core].wait();
        }
        assert_eq!(self.permits.in_use(), 1, "there is only one permit");
        let all = self.events.len() - 1;
        let is_last = self.served.fetch_add(1, SeqCst) + 1 == all;
        self.release();
        if is_last {
            self.events.iter().for_each(Event::signal);
        }
        while self.served.load(SeqCst) < all {
            self.events[core].wait();
            if self.permits.has_waiters() && self.permits.try_acquire() {
                self.release();
            }
        }
    }
}

/// Runs `count` cores, and core 0, which has the permit first and needs no other.
fn check_cores(count: usize) {
    let cores = Cores::new(count + 1);
    assert!(cores.permits.acquire_or_register(0));
    let threads: Vec<_> = (1..=count)
        .map(|core| {
            let cores = Arc::clone(&cores);
            thread::spawn(move || cores.run(core))
        })
        .collect();
    cores.release();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(cores.permits.in_use(), 0);
}

#[test]
fn a_waiting_core_is_woken_when_the_permit_is_released() {
    loom::model(|| check_cores(1));
}

#[test]
fn no_core_waits_while_a_permit_is_free() {
    check(|| check_cores(2));
}

#[test]
fn no_socket_is_left_in_the_handoff_queue_after_its_message_was_read() {
    check(|| {
        // A full channel wakes the core as well as a new message; here the channel holds one
        // message.
        let event = Arc::new(Event::new());
        let fd_queue = Arc::new(FdQueue::new());
        let senders: Vec<_> = [1, 2]
            .map(|socket| {
                let (fd_queue, event) = (Arc::clone(&fd_queue), Arc::clone(&event));
                thread::spawn(move || fd_queue.push([socket].into_iter(), || event.signal()))
            })
            .into();
        let mut arrived = VecDeque::new();
        while arrived.len() < 2 {
            event.wait();
            // The wait was for readiness; `drain` reads the messages.
            event.signal();
            fd_queue.drain(|| event.clear(), &mut arrived);
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
}
