//! The place of one connection: what the connection waits for, and since when.

use std::time::{Duration, Instant};

use super::limits::HttpLimits;

/// What is known of a connection that has a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlaceState {
    limits: HttpLimits,
    /// When the head that has not arrived whole began. A connection begins with it.
    head_since: Option<Instant>,
    /// When the body that has not arrived whole began: with the end of its head.
    body_since: Option<Instant>,
    /// When the last byte was sent or received.
    moved: Instant,
    /// Whether the server works at an answer.
    is_answering: bool,
    /// Whether the client does not take what the server sends.
    is_blocked: bool,
    /// Whether the server has let a request of the connection in.
    is_let_in: bool,
}

impl PlaceState {
    pub(super) fn new(limits: HttpLimits, now: Instant) -> Self {
        Self {
            limits,
            head_since: Some(now),
            body_since: None,
            moved: now,
            is_answering: false,
            is_blocked: false,
            is_let_in: false,
        }
    }

    /// Notes bytes from the client.
    pub(super) fn received(&mut self, now: Instant) {
        self.moved = now;
        if !self.is_answering {
            self.head_since.get_or_insert(now);
        }
    }

    /// Notes bytes that the client's side has taken.
    pub(super) fn sent(&mut self, now: Instant) {
        self.moved = now;
        self.is_blocked = false;
    }

    /// Notes that the client takes no more for now.
    pub(super) fn blocked(&mut self) {
        self.is_blocked = true;
    }

    /// Notes that a head is whole: the server answers it.
    pub(super) fn begin_answer(&mut self) {
        self.head_since = None;
        self.is_answering = true;
    }

    /// Notes that the body of the request has not arrived whole: the server waits for the client.
    pub(super) fn begin_body(&mut self, now: Instant) {
        self.body_since = Some(now);
    }

    /// Notes that the body is whole, or that the server does not want it.
    pub(super) fn end_body(&mut self) {
        self.body_since = None;
    }

    /// Notes that all of an answer is made, or that nothing more of it is needed.
    pub(super) fn end_answer(&mut self, now: Instant) {
        self.moved = now;
        self.is_answering = false;
    }

    /// Notes that the server has let a request in: it had the token, where one is asked for.
    pub(super) fn let_in(&mut self) {
        self.is_let_in = true;
    }

    /// Returns the rank in which connections give their places to new ones: the least first. `None`
    /// for a connection that waits for the server, which keeps its place.
    pub(super) fn rank(&self) -> Option<(bool, Instant)> {
        let since = match self.is_answering {
            true => self.body_since.or_else(|| self.is_blocked.then_some(self.moved)),
            false => Some(self.head_since.unwrap_or(self.moved)),
        };
        since.map(|since| (self.is_let_in, since))
    }

    /// Returns how long the connection may go on as it is; no time if it must be closed. The state
    /// must be looked at again after that time.
    pub(super) fn time_left(&self, now: Instant) -> Duration {
        let HttpLimits { head_timeout, body_timeout, idle_timeout, .. } = self.limits;
        let head = self.head_since.map(|since| since + head_timeout);
        let body = self.body_since.map(|since| since + body_timeout);
        let idle = self.rank().map(|_| self.moved + idle_timeout);
        let deadline = [head, body, idle].into_iter().flatten().min();
        let left = deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(now));
        // A head or a body that begins meanwhile has at least this time.
        left.min(head_timeout).min(body_timeout).min(idle_timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HttpLimits = HttpLimits {
        connections_max: 1,
        head_timeout: Duration::from_secs(5),
        body_timeout: Duration::from_secs(10),
        idle_timeout: Duration::from_secs(30),
    };

    /// The course of a connection, by the second.
    struct Course {
        began: Instant,
        state: PlaceState,
    }

    impl Course {
        fn begin() -> Self {
            let began = Instant::now();
            Self { began, state: PlaceState::new(LIMITS, began) }
        }

        fn at(&self, second: u64) -> Instant {
            self.began + Duration::from_secs(second)
        }

        #[track_caller]
        fn is_closed_at(&self, second: u64) {
            let left = |second| self.state.time_left(self.at(second)).as_secs();
            assert_ne!(left(second - 1), 0, "{:?}", self.state);
            assert_eq!(left(second), 0, "{:?}", self.state);
        }
    }

    #[test]
    fn a_head_has_its_time_from_its_first_byte_however_slowly_it_arrives() {
        let mut course = Course::begin();
        course.is_closed_at(5);
        for second in 1..5 {
            course.state.received(course.at(second));
        }
        course.is_closed_at(5);
        course.state.begin_answer();
        course.state.end_answer(course.at(4));
        course.state.received(course.at(20));
        course.state.received(course.at(24));
        course.is_closed_at(25);
    }

    #[test]
    fn a_connection_between_two_requests_has_the_idle_time() {
        let mut course = Course::begin();
        course.state.begin_answer();
        course.state.end_answer(course.at(3));
        course.is_closed_at(33);
    }

    #[test]
    fn an_answer_takes_as_long_as_the_server_needs() {
        let mut course = Course::begin();
        course.state.begin_answer();
        course.state.sent(course.at(1));
        assert!(course.state.rank().is_none());
        assert_eq!(course.state.time_left(course.at(10_000)), LIMITS.head_timeout);
    }

    #[test]
    fn a_body_has_its_time_from_its_head_however_slowly_it_arrives() {
        let mut course = Course::begin();
        course.state.begin_answer();
        course.state.let_in();
        course.state.begin_body(course.at(1));
        for second in 2..11 {
            course.state.received(course.at(second));
            assert!(course.state.rank().is_some(), "the server waits for the client");
        }
        course.is_closed_at(11);
        course.state.end_body();
        assert!(course.state.rank().is_none());
    }

    #[test]
    fn a_client_that_does_not_take_its_answer_has_the_idle_time() {
        let mut course = Course::begin();
        course.state.begin_answer();
        course.state.sent(course.at(1));
        course.state.blocked();
        course.is_closed_at(31);
        course.state.sent(course.at(20));
        assert!(course.state.rank().is_none());
        // The same after the server has made all of it.
        course.state.end_answer(course.at(21));
        course.state.blocked();
        course.is_closed_at(51);
    }

    #[test]
    fn the_client_that_was_never_let_in_and_waits_longest_gives_its_place_first() {
        let [mut silent, mut idle, mut served] = [0; 3].map(|_| Course::begin());
        for course in [&mut idle, &mut served] {
            course.state.begin_answer();
            course.state.let_in();
        }
        idle.state.end_answer(idle.at(1));
        silent.state.received(silent.at(9));
        assert!(silent.state.rank() < idle.state.rank());
        assert!(silent.state.rank().is_some());
        assert!(served.state.rank().is_none());
        let mut later = Course::begin();
        later.state = PlaceState::new(LIMITS, silent.at(1));
        assert!(silent.state.rank() < later.state.rank());
    }
}
