//! Sockets on their way from one core's fd table to another's.
//!
//! Every core has a seqpacket pair, made before the tables part: all cores write to one end, the
//! owner reads the other. A message carries up to 32 sockets (SCM_RIGHTS), since one socket a message costs
//! 3.3 us and 32 of them next to nothing.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::cores::CoreSlot;
use crate::tables::{SharedFd, Tables};
use crate::{Blame, CoreId, Errno};

/// Both ends of one core's pair. The fds are open under the same numbers in every core's table.
pub(crate) struct FdChannel {
    pub(crate) write_end: SharedFd,
    pub(crate) read_end: SharedFd,
}

impl FdChannel {
    pub(crate) fn new(tables: Tables) -> Result<Self, Errno> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (into, out) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok(Self { write_end: SharedFd::new(into, tables), read_end: SharedFd::new(out, tables) })
    }
}

/// One core's sockets that wait to leave, and those that have arrived.
pub(crate) struct FdPassing {
    outgoing: Vec<Vec<OwnedFd>>,
    outgoing_count: usize,
    incoming: VecDeque<OwnedFd>,
    listeners: VecDeque<OwnedFd>,
    /// Whether all cores share one fd table: then a socket is handed over by its number, and needs no second one, which
    /// a full table would not have.
    shares_table: bool,
    pub(crate) failures: u64,
}

impl FdPassing {
    pub(crate) fn new(cores: usize, is_one_table: bool) -> Self {
        Self {
            outgoing: (0..cores).map(|_| Vec::new()).collect(),
            outgoing_count: 0,
            incoming: VecDeque::new(),
            listeners: VecDeque::new(),
            shares_table: is_one_table,
            failures: 0,
        }
    }

    /// How many sockets of this table wait to leave or to be taken.
    pub(crate) fn fds_held(&self) -> usize {
        self.outgoing_count + self.incoming.len()
    }

    /// Whether sockets wait that the last flush could not send.
    pub(crate) fn has_outgoing(&self) -> bool {
        self.outgoing_count > 0
    }

    pub(crate) fn enqueue(&mut self, fd: OwnedFd, to: CoreId) {
        self.outgoing[to].push(fd);
        self.outgoing_count += 1;
    }

    /// Sends what waits, 32 sockets a message. What a full fd channel does not take stays for the next time.
    pub(crate) fn flush(&mut self, slots: &[CoreSlot]) {
        if self.outgoing_count == 0 {
            return;
        }
        for (to, leaving) in self.outgoing.iter_mut().enumerate() {
            if self.shares_table && !leaving.is_empty() {
                self.outgoing_count -= leaving.len();
                let CoreSlot { handoff, channel, .. } = &slots[to];
                handoff.push(leaving.drain(..), || {
                    // A full fd channel is as good: there is something in it that makes the other core look.
                    let _ = send(channel, std::iter::empty(), LOOK_INTO_THE_LOBBY);
                });
            }
            while !leaving.is_empty() {
                let count = leaving.len().min(BATCH);
                let sockets = leaving[..count].iter().map(AsFd::as_fd);
                match send(&slots[to].channel, sockets, count as u8) {
                    Ok(()) => {}
                    Err(errno) if errno == Errno::AGAIN || errno.blame() == Blame::Limit => break,
                    Err(_) => self.failures += count as u64,
                }
                // Sent, the other table has its own reference; failed, the connection ends here.
                leaving.drain(..count);
                self.outgoing_count -= count;
            }
        }
    }

    /// Receives at most `room` sockets' worth of messages, so that none is lost to a full table.
    pub(crate) fn receive(&mut self, own: &CoreSlot, room: usize) {
        if self.shares_table {
            let mut in_lobby = VecDeque::new();
            own.handoff.drain(|| self.read_messages(own, room), &mut in_lobby);
            self.incoming.append(&mut in_lobby);
        } else {
            self.read_messages(own, room);
        }
    }

    fn read_messages(&mut self, own: &CoreSlot, room: usize) {
        for _ in 0..room / BATCH {
            match receive(own.channel.read_end.as_fd(), &mut self.incoming, &mut self.listeners) {
                Ok(lost) => self.failures += u64::from(lost),
                Err(_) => break,
            }
        }
    }

    pub(crate) fn pop(&mut self) -> Option<OwnedFd> {
        self.incoming.pop_front()
    }

    pub(crate) fn pop_listener(&mut self) -> Option<OwnedFd> {
        self.listeners.pop_front()
    }
}

/// Sends another reference to a listener; this core keeps its own.
pub(crate) fn share(listener: BorrowedFd<'_>, to: &FdChannel) -> Result<(), Errno> {
    send(to, std::iter::once(listener), A_LISTENER)
}

/// Sockets a message.
pub(crate) const BATCH: usize = 32;
/// What a message says instead of a number of connections when it carries one listener.
const A_LISTENER: u8 = u8::MAX;
/// What a message says that carries nothing: sockets wait in the handoff queue of the core's slot.
const LOOK_INTO_THE_LOBBY: u8 = 0;

fn send<'fd>(
    channel: &FdChannel,
    sockets: impl Iterator<Item = BorrowedFd<'fd>>,
    what: u8,
) -> Result<(), Errno> {
    let borrowed: Vec<BorrowedFd<'_>> = sockets.collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() {
        let pushed = control.push(SendAncillaryMessage::ScmRights(&borrowed));
        debug_assert!(pushed, "the space is made for a whole batch");
    }
    sendmsg(&channel.write_end, &[IoSlice::new(&[what])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one message; says how many of its connections the table had no room for.
fn receive(
    channel: BorrowedFd<'_>,
    connections: &mut VecDeque<OwnedFd>,
    listeners: &mut VecDeque<OwnedFd>,
) -> Result<u32, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut what = [0u8];
    let received =
        recvmsg(channel, &mut [IoSliceMut::new(&mut what)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Err(Errno::AGAIN);
    }
    let is_listener = what[0] == A_LISTENER;
    let into = if is_listener { listeners } else { connections };
    let before = into.len();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            into.extend(fds);
        }
    }
    let lost = u32::from(what[0]).saturating_sub((into.len() - before) as u32);
    Ok(if is_listener { 0 } else { lost })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn slots() -> [CoreSlot; 2] {
        let tables = Tables::for_new_cores();
        [CoreSlot::new(tables).unwrap(), CoreSlot::new(tables).unwrap()]
    }

    #[test]
    fn sockets_cross_in_order_and_beyond_a_batch() {
        let slots = slots();
        let mut from = FdPassing::new(2, false);
        let mut pipes = Vec::new();
        for _ in 0..50 {
            let (read, write) = std::io::pipe().unwrap();
            from.enqueue(write.into(), 1);
            pipes.push(read);
        }
        from.flush(&slots);
        assert_eq!((from.fds_held(), from.failures), (0, 0));

        let mut to = FdPassing::new(2, false);
        to.receive(&slots[1], 1_000);
        for (n, mut read) in pipes.into_iter().enumerate() {
            let write = to.pop().expect("all of them arrive");
            rustix::io::write(&write, &[n as u8]).unwrap();
            drop(write);
            let mut byte = Vec::new();
            std::io::Read::read_to_end(&mut read, &mut byte).unwrap();
            assert_eq!(byte, [n as u8]);
        }
        assert!(to.pop().is_none());
    }

    #[test]
    fn a_shared_listener_is_told_apart_from_connections_and_kept_by_its_owner() {
        let slots = slots();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut from = FdPassing::new(2, false);
        from.enqueue(std::io::pipe().unwrap().0.into(), 1);
        from.flush(&slots);
        share(listener.as_fd(), &slots[1].channel).unwrap();

        let mut to = FdPassing::new(2, false);
        to.receive(&slots[1], 1_000);
        assert!(to.pop().is_some() && to.pop().is_none());
        let copy = to.pop_listener().expect("the listener arrives");
        let copy = std::net::TcpListener::from(copy);
        assert_eq!(copy.local_addr().unwrap(), listener.local_addr().unwrap());
        assert_eq!(to.failures, 0);
    }

    #[test]
    fn in_one_table_a_socket_keeps_its_number() {
        let slots = slots();
        let (mut from, mut to) = (FdPassing::new(2, true), FdPassing::new(2, true));
        let pipes: Vec<_> = (0..40).map(|_| OwnedFd::from(std::io::pipe().unwrap().0)).collect();
        let numbers: Vec<_> = pipes.iter().map(AsRawFd::as_raw_fd).collect();
        pipes.into_iter().for_each(|pipe| from.enqueue(pipe, 1));
        from.flush(&slots);
        assert_eq!((from.fds_held(), from.failures), (0, 0));
        to.receive(&slots[1], 1_000);
        let arrived: Vec<_> = std::iter::from_fn(|| to.pop()).collect();
        assert_eq!(arrived.iter().map(AsRawFd::as_raw_fd).collect::<Vec<_>>(), numbers);
        to.receive(&slots[1], 1_000);
        assert!(to.pop().is_none(), "the hatch is empty too");
    }

    #[test]
    fn in_one_table_no_socket_is_left_whose_message_was_read() {
        let slots = slots();
        let (sent, arrived) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut from = FdPassing::new(2, true);
                let begun = Instant::now();
                while sent.load(SeqCst) < SOCKETS_MAX && begun.elapsed() < ENOUGH {
                    from.enqueue(std::io::pipe().unwrap().0.into(), 1);
                    from.flush(&slots);
                    sent.fetch_add(1, SeqCst);
                    // The next one leaves while the other core looks whether there is one.
                    let mut spins = 0;
                    while arrived.load(SeqCst) < sent.load(SeqCst) && begun.elapsed() < ENOUGH {
                        spins += 1;
                        // Where the cores share a CPU, the other one waits for this one's.
                        match spins > 10_000 {
                            true => std::thread::yield_now(),
                            false => std::hint::spin_loop(),
                        }
                    }
                }
                is_over.store(true, SeqCst);
            });
            let mut to = FdPassing::new(2, true);
            while !is_over.load(SeqCst) || arrived.load(SeqCst) < sent.load(SeqCst) {
                let on_its_way = sent.load(SeqCst);
                let wait = Timespec { tv_sec: 1, tv_nsec: 0 };
                let channel = &mut [PollFd::new(&slots[1].channel.read_end, PollFlags::IN)];
                let is_told = poll(channel, Some(&wait)).unwrap() > 0;
                assert!(
                    is_told || arrived.load(SeqCst) >= on_its_way,
                    "nothing tells of those after {arrived:?}"
                );
                to.receive(&slots[1], 1_000);
                while to.pop().is_some() {
                    arrived.fetch_add(1, SeqCst);
                    to.receive(&slots[1], 1_000);
                }
            }
        });
    }

    /// No more than these, and no longer than that.
    const SOCKETS_MAX: usize = 20_000;
    const ENOUGH: Duration = Duration::from_secs(5);
}
