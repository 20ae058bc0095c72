//! What cores share, in every interleaving of their threads that loom can think of (`make loom`).

use std::collections::VecDeque;

use loom::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use crate::handoff::Lobby;
use crate::mailbox::{Mailbox, Signal};
use crate::{MailKind, Permits};

/// An eventfd: what was signalled before a wait makes it return at once.
struct Event {
    is_set: Mutex<bool>,
    set: Condvar,
}

impl Event {
    fn new() -> Self {
        Self { is_set: Mutex::new(false), set: Condvar::new() }
    }

    /// Waits for a signal; loom reports one that never comes as a deadlock.
    fn wait(&self) {
        let mut is_set = self.is_set.lock().unwrap();
        while !*is_set {
            is_set = self.set.wait(is_set).unwrap();
        }
        *is_set = false;
    }

    /// Takes the signal back, if there is one.
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

/// Checks a model of three threads. All of their interleavings take minutes or hours; a fault shows,
/// as a rule, with two switches that are forced upon a thread, and here there may be four.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(model);
}

#[test]
fn no_mail_is_left_to_an_owner_that_sleeps() {
    check(|| {
        let event = Arc::new(Event::new());
        let mailbox = Arc::new(Mailbox::new(10, Arc::clone(&event)));
        let senders: Vec<_> = [1, 2]
            .map(|number| {
                let mailbox = Arc::clone(&mailbox);
                thread::spawn(move || mailbox.post(number, MailKind::Control).unwrap())
            })
            .into();
        let mut mail = Vec::new();
        while mail.len() < 2 {
            // As a core does: it sleeps only after it has collected everything.
            event.wait();
            assert!(!mailbox.collect(&mut mail), "a batch is larger");
        }
        mail.sort_unstable();
        assert_eq!(mail, [1, 2]);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
}

#[test]
fn what_one_sender_posts_arrives_in_order() {
    loom::model(|| {
        let event = Arc::new(Event::new());
        let mailbox = Arc::new(Mailbox::new(10, Arc::clone(&event)));
        let sender = {
            let mailbox = Arc::clone(&mailbox);
            thread::spawn(move || {
                for number in [1, 2] {
                    mailbox.post(number, MailKind::Bulk).unwrap();
                }
            })
        };
        let mut mail = Vec::new();
        while mail.len() < 2 {
            event.wait();
            mailbox.collect(&mut mail);
        }
        assert_eq!(mail, [1, 2]);
        sender.join().unwrap();
    });
}

/// Cores that want a permit each, of which there is one, as acceptors do it: a core that was refused
/// sleeps until it is named; a named core that wants none has the next one named.
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

    fn give(&self) {
        if let Some(core) = self.permits.give() {
            self.events[core].signal();
        }
    }

    /// Takes a permit, gives it back, and answers to its name until every core has had one.
    fn run(&self, core: usize) {
        while !self.permits.take(core) {
            self.events[core].wait();
        }
        assert_eq!(self.permits.taken(), 1, "never more than there are");
        let all = self.events.len() - 1;
        let is_last = self.served.fetch_add(1, SeqCst) + 1 == all;
        self.give();
        if is_last {
            self.events.iter().for_each(Event::signal);
        }
        while self.served.load(SeqCst) < all {
            self.events[core].wait();
            if self.permits.anyone_waits() && self.permits.try_take() {
                self.give();
            }
        }
    }
}

/// Runs `count` cores beside one, number 0, that has the permit at first and wants no more.
fn check_cores(count: usize) {
    let cores = Cores::new(count + 1);
    assert!(cores.permits.take(0));
    let threads: Vec<_> = (1..=count)
        .map(|core| {
            let cores = Arc::clone(&cores);
            thread::spawn(move || cores.run(core))
        })
        .collect();
    cores.give();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(cores.permits.taken(), 0);
}

#[test]
fn a_core_that_waits_hears_of_the_permit_that_comes_back() {
    loom::model(|| check_cores(1));
}

#[test]
fn no_core_waits_for_a_permit_that_is_free() {
    check(|| check_cores(2));
}

#[test]
fn no_socket_is_left_in_the_lobby_whose_message_was_read() {
    check(|| {
        // A queue of messages that is full is as good as a message: here one holds no more than one.
        let event = Arc::new(Event::new());
        let handoff = Arc::new(Lobby::new());
        let senders: Vec<_> = [1, 2]
            .map(|socket| {
                let (handoff, event) = (Arc::clone(&handoff), Arc::clone(&event));
                thread::spawn(move || handoff.leave([socket].into_iter(), || event.signal()))
            })
            .into();
        let mut arrived = VecDeque::new();
        while arrived.len() < 2 {
            event.wait();
            // The wait was for readiness; the messages are read by `take`.
            event.signal();
            handoff.take(|| event.clear(), &mut arrived);
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
}
