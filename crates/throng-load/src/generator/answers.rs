//! What arrives, and the step that waits for it.

use std::time::Duration;

use throng_base::Instant;
use throng_driver::Driver;
use throng_engine::{Conn, Deadline};

use super::steps::Step;
use super::user::{Doing, Inbox, User};
use super::{ErrorKind, Generator, Mail, Stage};
use crate::program::{Fed, Matcher, Op};

impl Generator {
    /// The step `expect` begins.
    pub(super) fn expect<D: Driver<Mail = Mail>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        matcher: u32,
        timeout: Duration,
    ) -> Step {
        let now = conn.now();
        let is_open = conn.is_open();
        let user = conn.state();
        let inbox = user.inbox.take();
        if !is_open && inbox.is_none() {
            return self.not_connected(conn);
        }
        user.matched = 0;
        user.doing = Doing::Expecting;
        conn.set_deadline(Deadline::Coarse(now + timeout));
        let Some(mut inbox) = inbox else { return Step::Wait };
        // What arrived early is the beginning of the answer, or all of it and more.
        match feed(self.config.program.matcher(matcher), conn.state(), &inbox.bytes) {
            Fed::NeedMore if is_open => Step::Wait,
            Fed::NeedMore => {
                conn.set_deadline(Deadline::Never);
                self.not_connected(conn)
            }
            Fed::Matched { consumed } => {
                let whole_at = inbox.at;
                inbox.bytes.drain(..consumed);
                if !inbox.bytes.is_empty() {
                    conn.state().inbox = Some(inbox);
                }
                self.answered(conn, whole_at);
                Step::Next
            }
            Fed::Mismatch { .. } => {
                self.show_mismatch(conn, &inbox.bytes);
                self.fail(conn, ErrorKind::ExpectMismatch);
                Step::Wait
            }
        }
    }

    /// Bytes have arrived.
    pub(super) fn received<D: Driver<Mail = Mail>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        bytes: &[u8],
    ) {
        let mut rest = bytes;
        while !rest.is_empty() && conn.state().doing == Doing::Expecting {
            let Op::Expect { matcher, .. } = self.config.program.op(conn.state().pc) else { break };
            match feed(self.config.program.matcher(matcher), conn.state(), rest) {
                Fed::NeedMore => return,
                Fed::Matched { consumed } => {
                    rest = &rest[consumed..];
                    // What follows waits for the next `expect`, which may be the next step.
                    if !rest.is_empty() {
                        return self.answered_with_more(conn, rest);
                    }
                    let now = conn.now();
                    self.answered(conn, now);
                    self.advance(conn);
                }
                Fed::Mismatch { .. } => {
                    self.show_mismatch(conn, rest);
                    return self.fail(conn, ErrorKind::ExpectMismatch);
                }
            }
        }
        if !rest.is_empty() {
            self.keep(conn, rest);
        }
    }

    fn answered_with_more<D: Driver<Mail = Mail>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        rest: &[u8],
    ) {
        let now = conn.now();
        self.answered(conn, now);
        self.keep(conn, rest);
        if conn.state().doing == Doing::Expecting {
            self.advance(conn);
        }
    }

    /// The answer that the present step waits for was whole at `whole_at`: now, or before the step began.
    pub(super) fn answered<D: Driver<Mail = Mail>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        whole_at: Instant,
    ) {
        let now = conn.now();
        let user = conn.state();
        let from = user.answer_counts_from();
        self.slate.incidents.answered(whole_at, from);
        // Messages that were sent in a row are answered in a row.
        user.answering = true;
        user.unanswered = user.unanswered.saturating_sub(1);
        if user.unanswered == 0 {
            user.message_from = Instant::FAR;
        }
        user.intended = now;
        user.pc += 1;
        let measured = self.stage != Stage::Leaving;
        self.slate.answered(measured.then(|| whole_at.micros_since(from)), user.class);
        conn.set_deadline(Deadline::Never);
    }

    /// Keeps what nobody waits for yet, if any step of the class may.
    fn keep<D: Driver<Mail = Mail>>(&mut self, conn: &mut Conn<'_, D, Self>, bytes: &[u8]) {
        let now = conn.now();
        let user = conn.state();
        if !self.is_wanted(user) {
            return;
        }
        let inbox = user.inbox.get_or_insert_with(|| Box::new(Inbox::new(now)));
        if inbox.bytes.len() + bytes.len() <= INBOX_BYTES_MAX {
            inbox.bytes.extend_from_slice(bytes);
            inbox.at = now;
            return;
        }
        user.inbox = None;
        self.inbox_overflows(conn);
    }

    /// Whether a step may still wait for what comes now.
    pub(super) fn is_wanted(&self, user: &User) -> bool {
        !matches!(user.doing, Doing::Staying | Doing::Closing | Doing::Failing | Doing::Stopping)
            && self.expects[usize::from(user.class)]
    }
}

fn feed(matcher: &Matcher, user: &mut User, bytes: &[u8]) -> Fed {
    matcher.feed(&mut user.matched, bytes)
}

/// Bytes kept for one user that no step waits for yet.
pub(super) const INBOX_BYTES_MAX: usize = 64 << 10;
