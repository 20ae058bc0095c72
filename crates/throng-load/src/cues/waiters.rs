//! The users of one core that wait for a barrier or a cue.

use std::collections::VecDeque;
use std::sync::Arc;

use throng_base::Instant;

use super::{CueArrival, Cues};
use crate::peers::{ALL_USERS, PeerMessage, RemoteCues};

/// Users of one core that wait for one another, or for users of other cores.
#[derive(Debug)]
pub(crate) struct CueWaiters {
    shared: Arc<Cues>,
    /// Waiting users of each cue.
    queues: Vec<CueQueue>,
    /// Number of the last ticket.
    last_ticket: u32,
    /// Groups that users of this core have let go, of which the other cores must hear.
    opened: Vec<GroupOpening>,
    /// Users that may go on.
    ready: VecDeque<ReadyUser>,
    /// What is said to other machines, if there are any: then these decide together who goes on.
    remote: Option<RemoteCues>,
}

/// A group of users that goes on together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupOpening {
    cue: u16,
    group: u32,
    /// Moment at which its last user came, or the cue was raised.
    at: Instant,
}

/// A user that may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadyUser {
    /// Index in the core's table.
    pub(crate) index: u32,
    pub(crate) ticket: u32,
    pub(crate) at: Instant,
}

/// What a user does that has come to a cue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CueAnswer {
    /// It goes on: the signal was given at this moment.
    Passes(Instant),
    /// It goes on with all that wait: it is the last user of a barrier.
    Opens,
    /// It waits with this ticket; so many users wait at the barrier now.
    Waits { ticket: u32, waiting: u32 },
}

/// Waiting users in the order in which they came, and so in the order of ticket and group.
#[derive(Debug, Default)]
struct CueQueue {
    waiters: VecDeque<Waiter>,
    /// Entries of users that have left.
    gone: usize,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    ticket: u32,
    group: u32,
    /// Index in the core's table; [`GONE`] once the user has left.
    index: u32,
}

impl CueWaiters {
    /// Creates the waiting users of a core: none.
    pub(crate) fn new(shared: Arc<Cues>) -> Self {
        let queues = (0..shared.len()).map(|_| CueQueue::default()).collect();
        let (opened, ready) = (Vec::new(), VecDeque::new());
        Self { shared, queues, last_ticket: 0, opened, ready, remote: None }
    }

    /// Creates the waiting users of a core whose users wait for those of other machines, too. It is
    /// number `slot` of all cores.
    pub(crate) fn of_machines(shared: Arc<Cues>, slot: usize) -> Self {
        let remote = Some(RemoteCues::new(slot, shared.len()));
        Self { remote, ..Self::new(shared) }
    }

    /// Adds the user at `index`, which comes to a cue.
    pub(crate) fn arrive(&mut self, cue: u16, index: u32, now: Instant) -> CueAnswer {
        if let Some(remote) = &mut self.remote {
            return match remote.raised_at(cue) {
                Some(at) if at <= now => CueAnswer::Passes(at),
                raised_at => {
                    remote.come(cue);
                    let answer = self.push(cue, index, 0, 0);
                    if let Some(at) = raised_at {
                        self.open_of_machines(cue, ALL_USERS, at);
                    }
                    answer
                }
            };
        }
        let (group, waiting) = match self.shared.arrive(cue) {
            CueArrival::Raised(at) => return CueAnswer::Passes(at),
            CueArrival::Completes { group } => {
                self.open_for_all(GroupOpening { cue, group, at: now });
                return CueAnswer::Opens;
            }
            CueArrival::Waits { group, waiting } => (group, waiting),
        };
        self.push(cue, index, group, waiting)
    }

    fn push(&mut self, cue: u16, index: u32, group: u32, waiting: u32) -> CueAnswer {
        self.last_ticket = self.last_ticket.wrapping_add(1);
        let ticket = self.last_ticket;
        self.queues[usize::from(cue)].waiters.push_back(Waiter { ticket, group, index });
        CueAnswer::Waits { ticket, waiting }
    }

    /// Raises a cue. Returns false if it was raised before.
    pub(crate) fn raise(&mut self, cue: u16, now: Instant) -> bool {
        if let Some(remote) = &mut self.remote {
            return remote.raise(cue);
        }
        let is_first = self.shared.raise(cue, now);
        if is_first {
            self.open_for_all(GroupOpening { cue, group: 0, at: now });
        }
        is_first
    }

    /// Removes a user that waits. Returns false if it has left before, or if its group goes on with
    /// it: then the core lets it go on, or will hear that it may.
    pub(crate) fn leave(&mut self, cue: u16, ticket: u32) -> bool {
        let queue = &mut self.queues[usize::from(cue)];
        let Some(waiter) = queue.find(ticket) else { return false };
        match &mut self.remote {
            Some(remote) => remote.leave(cue),
            None if !self.shared.leave(cue, waiter.group) => return false,
            None => {}
        }
        waiter.index = GONE;
        queue.gone += 1;
        queue.compact();
        true
    }

    /// Lets the users of this core go on that wait in a group.
    pub(crate) fn open(&mut self, opened: GroupOpening) {
        let GroupOpening { cue, group, at } = opened;
        let queue = &mut self.queues[usize::from(cue)];
        for Waiter { ticket, index, .. } in queue.take(group) {
            self.ready.push_back(ReadyUser { index, ticket, at });
        }
    }

    /// Lets users go on at the moment `at`, as all machines have decided: so many, or all that wait
    /// and will come if that is [`ALL_USERS`].
    pub(crate) fn open_of_machines(&mut self, cue: u16, users: u64, at: Instant) {
        let Some(remote) = &mut self.remote else { return };
        let queue = &mut self.queues[usize::from(cue)];
        let mut gone_on = 0;
        while gone_on < users
            && let Some(Waiter { ticket, index, .. }) = queue.waiters.pop_front()
        {
            if index == GONE {
                queue.gone -= 1;
            } else {
                gone_on += 1;
                self.ready.push_back(ReadyUser { index, ticket, at });
            }
        }
        let is_signal = users == ALL_USERS;
        if is_signal {
            remote.raised(cue, at);
        }
        remote.gone_on(cue, gone_on, if is_signal { 0 } else { users - gone_on });
        if queue.waiters.is_empty() {
            // A large group leaves no memory behind.
            queue.waiters = VecDeque::new();
        }
    }

    /// Returns what other machines must hear.
    pub(crate) fn take_peer_messages(&mut self) -> Vec<PeerMessage> {
        self.remote.as_mut().map(RemoteCues::take_messages).unwrap_or_default()
    }

    /// Returns when users may go on or other cores must hear so; [`Instant::FAR`] for never.
    pub(crate) fn due(&self) -> Instant {
        let has_news = self.remote.as_ref().is_some_and(RemoteCues::has_messages);
        match self.ready.front() {
            _ if has_news || !self.opened.is_empty() => Instant::ZERO,
            Some(ReadyUser { at, .. }) if self.remote.is_some() => *at,
            Some(_) => Instant::ZERO,
            None => Instant::FAR,
        }
    }

    /// Returns the groups that the other cores must let go, if there are any.
    pub(crate) fn take_opened(&mut self) -> Option<Arc<[GroupOpening]>> {
        (!self.opened.is_empty()).then(|| std::mem::take(&mut self.opened).into())
    }

    /// Returns a user that may go on now. It may have left meanwhile: its ticket tells.
    pub(crate) fn next_ready(&mut self, now: Instant) -> Option<ReadyUser> {
        let is_early = self.remote.is_some() && self.ready.front()?.at > now;
        let next = if is_early { None } else { self.ready.pop_front() }?;
        if self.ready.is_empty() {
            // A large group leaves no memory behind.
            self.ready = VecDeque::new();
        }
        Some(next)
    }

    fn open_for_all(&mut self, opened: GroupOpening) {
        self.open(opened);
        self.opened.push(opened);
    }
}

impl CueQueue {
    fn find(&mut self, ticket: u32) -> Option<&mut Waiter> {
        let first = self.waiters.front()?.ticket;
        let place = |ticket: u32| ticket.wrapping_sub(first);
        let at = self.waiters.binary_search_by_key(&place(ticket), |it| place(it.ticket)).ok()?;
        self.waiters.get_mut(at).filter(|waiter| waiter.index != GONE)
    }

    /// Removes the users of a group and returns them.
    fn take(&mut self, group: u32) -> Vec<Waiter> {
        let Some(first) = self.waiters.front().map(|waiter| waiter.group) else {
            return Vec::new();
        };
        let place = |group: u32| group.wrapping_sub(first);
        let begin = self.waiters.partition_point(|it| place(it.group) < place(group));
        let end = self.waiters.partition_point(|it| place(it.group) <= place(group));
        let mut taken: Vec<_> = self.waiters.drain(begin..end).collect();
        let all = taken.len();
        taken.retain(|waiter| waiter.index != GONE);
        self.gone -= all - taken.len();
        if self.waiters.is_empty() {
            self.waiters = VecDeque::new();
        }
        taken
    }

    /// Drops the entries of users that have left, once they are more than half.
    fn compact(&mut self) {
        if self.gone > GONE_MIN && self.gone * 2 > self.waiters.len() {
            self.waiters.retain(|waiter| waiter.index != GONE);
            self.waiters.shrink_to(self.waiters.len() * 2);
            self.gone = 0;
        }
    }
}

/// The index of a user that has left.
const GONE: u32 = u32::MAX;
/// Entries of users that have left which are kept without a look.
const GONE_MIN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Cue, CueKind};

    /// The users of `cores` cores that come to one barrier for `users` users.
    fn barrier(users: u32, cores: usize) -> Vec<CueWaiters> {
        let cue = Cue { name: "start".into(), line: 1, kind: CueKind::Barrier { users } };
        let shared = Arc::new(Cues::new(&[cue]));
        (0..cores).map(|_| CueWaiters::new(Arc::clone(&shared))).collect()
    }

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[track_caller]
    fn ticket(answer: CueAnswer) -> u32 {
        let CueAnswer::Waits { ticket, .. } = answer else { panic!("{answer:?}") };
        ticket
    }

    /// Returns the indexes of the users that may go on.
    fn ready(waiters: &mut CueWaiters) -> Vec<u32> {
        std::iter::from_fn(|| waiters.next_ready(Instant::FAR)).map(|user| user.index).collect()
    }

    #[test]
    fn a_group_over_two_cores_goes_on_when_its_last_user_has_come() {
        let mut cores = barrier(3, 2);
        ticket(cores[0].arrive(0, 10, at(1)));
        ticket(cores[1].arrive(0, 20, at(2)));
        assert_eq!(cores[0].arrive(0, 11, at(3)), CueAnswer::Opens);
        // This user is of the next group.
        ticket(cores[1].arrive(0, 21, at(4)));
        let opened = cores[0].take_opened().expect("the other core must hear of it");
        opened.iter().for_each(|group| cores[1].open(*group));
        assert_eq!((ready(&mut cores[0]), ready(&mut cores[1])), (vec![10], vec![20]));
        assert!(cores.iter().all(|core| core.due() == Instant::FAR));
    }

    #[test]
    fn groups_of_which_a_core_hears_in_another_order_stay_apart() {
        let mut cores = barrier(2, 2);
        let mut opened = Vec::new();
        for group in 0..2 {
            ticket(cores[0].arrive(0, group, at(1)));
            assert_eq!(cores[1].arrive(0, 9, at(2)), CueAnswer::Opens);
            opened.extend(cores[1].take_opened().expect("a group is complete").iter().copied());
        }
        cores[0].open(opened[1]);
        assert_eq!(ready(&mut cores[0]), [1]);
        cores[0].open(opened[0]);
        assert_eq!(ready(&mut cores[0]), [0]);
    }

    #[test]
    fn a_user_that_leaves_makes_room_for_another() {
        let mut cores = barrier(2, 1);
        let first = ticket(cores[0].arrive(0, 1, at(1)));
        assert!(cores[0].leave(0, first) && !cores[0].leave(0, first));
        let second = ticket(cores[0].arrive(0, 2, at(2)));
        assert_eq!(cores[0].arrive(0, 3, at(3)), CueAnswer::Opens);
        assert!(!cores[0].leave(0, second));
        assert_eq!(ready(&mut cores[0]), [2]);
    }

    #[test]
    fn a_user_cannot_leave_a_group_that_another_core_has_completed() {
        let mut cores = barrier(2, 2);
        let waits = ticket(cores[0].arrive(0, 1, at(1)));
        assert_eq!(cores[1].arrive(0, 2, at(2)), CueAnswer::Opens);
        // The first core has not heard of it.
        assert!(!cores[0].leave(0, waits));
        let opened = cores[1].take_opened().expect("the other core must hear of it");
        opened.iter().for_each(|group| cores[0].open(*group));
        assert_eq!(ready(&mut cores[0]), [1]);
    }

    #[test]
    fn users_that_come_and_leave_again_and_again_leave_no_memory_behind() {
        let mut cores = barrier(3, 1);
        let stays = ticket(cores[0].arrive(0, 0, at(0)));
        for user in 1..10_000 {
            let ticket = ticket(cores[0].arrive(0, user, at(1)));
            cores[0].leave(0, ticket);
        }
        assert!(cores[0].queues[0].waiters.len() <= 2 * GONE_MIN + 2);
        ticket(cores[0].arrive(0, 10_000, at(2)));
        cores[0].arrive(0, 10_001, at(3));
        assert_eq!(ready(&mut cores[0]), [0, 10_000]);
        assert!(!cores[0].leave(0, stays));
    }

    #[test]
    fn a_user_that_waits_takes_few_bytes() {
        assert_eq!((size_of::<Waiter>(), size_of::<ReadyUser>()), (12, 16));
    }
}
