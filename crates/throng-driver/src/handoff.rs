//! Handoff of sockets from one core's fd table to another's.
//!
//! Every core has a seqpacket socket pair, opened before the cores get their own fd tables: all
//! cores write to one end, and the owner reads from the other. A message carries up to 32 sockets
//! (SCM_RIGHTS): a message costs 3.3 us, and further sockets in it cost next to nothing.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::core_set::CoreSlot;
use crate::tables::{SharedFd, Tables};
use crate::{Blame, CoreId, Errno};

/// Socket pair through which one core receives sockets. Both ends have the same numbers in every
/// core's fd table.
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

/// Sockets that one core passes to other cores, and sockets that it has received.
pub(crate) struct FdHandoff {
    outgoing: Vec<Vec<OwnedFd>>,
    outgoing_count: usize,
    incoming: VecDeque<OwnedFd>,
    listeners: VecDeque<OwnedFd>,
    /// All cores share one fd table. Then a socket is handed off by its number, and needs no second
    /// fd, for which a full table would have no room.
    shares_table: bool,
    pub(crate) failures: u64,
}

impl FdHandoff {
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

    /// Returns how many sockets of this core's table wait to be sent or to be taken.
    pub(crate) fn fds_held(&self) -> usize {
        self.outgoing_count + self.incoming.len()
    }

    /// Reports whether sockets wait that the last flush could not send.
    pub(crate) fn has_outgoing(&self) -> bool {
        self.outgoing_count > 0
    }

    /// Queues a socket for the core `to`. [`Self::flush`] sends it.
    pub(crate) fn enqueue(&mut self, fd: OwnedFd, to: CoreId) {
        self.outgoing[to].push(fd);
        self.outgoing_count += 1;
    }

    /// Sends the queued sockets, 32 in a message. Sockets that a full channel does not take wait
    /// for the next flush.
    pub(crate) fn flush(&mut self, slots: &[CoreSlot]) {
        if self.outgoing_count == 0 {
            return;
        }
        for (to, leaving) in self.outgoing.iter_mut().enumerate() {
            if self.shares_table && !leaving.is_empty() {
                self.outgoing_count -= leaving.len();
                let CoreSlot { fd_queue, channel, .. } = &slots[to];
                fd_queue.push(leaving.drain(..), || {
                    // An error means that the channel is full; its messages wake the core as well.
                    let _ = send(channel, std::iter::empty(), HANDOFF);
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
                // After a send the other table has its own reference; after a failure the
                // connection ends here.
                leaving.drain(..count);
                self.outgoing_count -= count;
            }
        }
    }

    /// Receives messages with at most `room` sockets, so that a full table loses none.
    pub(crate) fn receive(&mut self, own: &CoreSlot, room: usize) {
        if self.shares_table {
            let mut handed_off = VecDeque::new();
            own.fd_queue.drain(|| self.read_messages(own, room), &mut handed_off);
            self.incoming.append(&mut handed_off);
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

    /// Takes the next received connection.
    pub(crate) fn pop(&mut self) -> Option<OwnedFd> {
        self.incoming.pop_front()
    }

    /// Takes the next received listener.
    pub(crate) fn pop_listener(&mut self) -> Option<OwnedFd> {
        self.listeners.pop_front()
    }
}

/// Sends another core a reference to a listener. This core keeps its own.
pub(crate) fn share(listener: BorrowedFd<'_>, to: &FdChannel) -> Result<(), Errno> {
    send(to, std::iter::once(listener), LISTENER)
}

/// Most sockets in a message.
pub(crate) const BATCH: usize = 32;
/// Content of a message that carries one listener, in place of the number of connections.
const LISTENER: u8 = u8::MAX;
/// Content of a message without sockets: sockets wait in the core's fd queue.
const HANDOFF: u8 = 0;

fn send<'fd>(
    channel: &FdChannel,
    sockets: impl Iterator<Item = BorrowedFd<'fd>>,
    content: u8,
) -> Result<(), Errno> {
    let borrowed: Vec<BorrowedFd<'_>> = sockets.collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() {
        let pushed = control.push(SendAncillaryMessage::ScmRights(&borrowed));
        debug_assert!(pushed, "the space is large enough for a whole batch");
    }
    sendmsg(&channel.write_end, &[IoSlice::new(&[content])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one message. Returns how many of its connections were lost because the table was full.
fn receive(
    channel: BorrowedFd<'_>,
    connections: &mut VecDeque<OwnedFd>,
    listeners: &mut VecDeque<OwnedFd>,
) -> Result<u32, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut content = [0u8];
    let received = recvmsg(
        channel,
        &mut [IoSliceMut::new(&mut content)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if received.bytes == 0 {
        return Err(Errno::AGAIN);
    }
    let is_listener = content[0] == LISTENER;
    let into = if is_listener { listeners } else { connections };
    let before = into.len();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            into.extend(fds);
        }
    }
    let lost = u32::from(content[0]).saturating_sub((into.len() - before) as u32);
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
        let mut from = FdHandoff::new(2, false);
        let mut pipes = Vec::new();
        for _ in 0..50 {
            let (read, write) = std::io::pipe().unwrap();
            from.enqueue(write.into(), 1);
            pipes.push(read);
        }
        from.flush(&slots);
        assert_eq!((from.fds_held(), from.failures), (0, 0));

        let mut to = FdHandoff::new(2, false);
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
        let mut from = FdHandoff::new(2, false);
        from.enqueue(std::io::pipe().unwrap().0.into(), 1);
        from.flush(&slots);
        share(listener.as_fd(), &slots[1].channel).unwrap();

        let mut to = FdHandoff::new(2, false);
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
        let (mut from, mut to) = (FdHandoff::new(2, true), FdHandoff::new(2, true));
        let pipes: Vec<_> = (0..40).map(|_| OwnedFd::from(std::io::pipe().unwrap().0)).collect();
        let numbers: Vec<_> = pipes.iter().map(AsRawFd::as_raw_fd).collect();
        pipes.into_iter().for_each(|pipe| from.enqueue(pipe, 1));
        from.flush(&slots);
        assert_eq!((from.fds_held(), from.failures), (0, 0));
        to.receive(&slots[1], 1_000);
        let arrived: Vec<_> = std::iter::from_fn(|| to.pop()).collect();
        assert_eq!(arrived.iter().map(AsRawFd::as_raw_fd).collect::<Vec<_>>(), numbers);
        to.receive(&slots[1], 1_000);
        assert!(to.pop().is_none(), "the channel is empty too");
    }

    #[test]
    fn in_one_table_no_socket_is_left_whose_message_was_read() {
        let slots = slots();
        let (sent, arrived) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut from = FdHandoff::new(2, true);
                let begun = Instant::now();
                while sent.load(SeqCst) < SOCKETS_MAX && begun.elapsed() < ENOUGH {
                    from.enqueue(std::io::pipe().unwrap().0.into(), 1);
                    from.flush(&slots);
                    sent.fetch_add(1, SeqCst);
                    // The next socket leaves while the other core checks for one.
                    let mut spins = 0;
                    while arrived.load(SeqCst) < sent.load(SeqCst) && begun.elapsed() < ENOUGH {
                        spins += 1;
                        // If the cores share a CPU, the other core needs this one to yield.
                        if spins > 10_000 {
                            std::thread::yield_now();
                        } else {
                            std::hint::spin_loop();
                        }
                    }
                }
                is_over.store(true, SeqCst);
            });
            let mut to = FdHandoff::new(2, true);
            while !is_over.load(SeqCst) || arrived.load(SeqCst) < sent.load(SeqCst) {
                let on_its_way = sent.load(SeqCst);
                let wait = Timespec { tv_sec: 1, tv_nsec: 0 };
                let channel = &mut [PollFd::new(&slots[1].channel.read_end, PollFlags::IN)];
                let is_readable = poll(channel, Some(&wait)).unwrap() > 0;
                assert!(
                    is_readable || arrived.load(SeqCst) >= on_its_way,
                    "no notification for the sockets after {arrived:?}"
                );
                to.receive(&slots[1], 1_000);
                while to.pop().is_some() {
                    arrived.fetch_add(1, SeqCst);
                    to.receive(&slots[1], 1_000);
                }
            }
        });
    }

    /// The test ends after this many sockets, or after [`ENOUGH`].
    const SOCKETS_MAX: usize = 20_000;
    const ENOUGH: Duration = Duration::from_secs(5);
}
