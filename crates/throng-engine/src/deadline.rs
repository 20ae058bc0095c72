//! Deadlines of entries.

use throng_base::Instant;

/// Time of an entry's next [`App::deadline`](crate::App::deadline) callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// No callback.
    Never,
    /// Within one [`TICK`](throng_base::wheel::TICK) after this moment: for time-outs and
    /// heartbeats.
    Coarse(Instant),
    /// At this moment: for pacing.
    Exact(Instant),
}

impl Deadline {
    /// Returns the moment; [`Instant::FAR`] for [`Self::Never`].
    pub const fn moment(self) -> Instant {
        match self {
            Self::Never => Instant::FAR,
            Self::Coarse(moment) | Self::Exact(moment) => moment,
        }
    }
}

/// Deadline in eight bytes: the highest bit is set for a coarse one, the other bits hold the
/// moment. These bits hold 292 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedDeadline(u64);

impl PackedDeadline {
    pub(crate) const NEVER: Self = Self(u64::MAX);
    const COARSE: u64 = 1 << 63;
    /// Latest moment that differs from [`Self::NEVER`], with [`Self::COARSE`] and without.
    const LAST: u64 = Self::COARSE - 2;

    pub(crate) fn get(self) -> Deadline {
        let moment = Instant::from_nanos(self.0 & !Self::COARSE);
        match self {
            Self::NEVER => Deadline::Never,
            Self(bits) if bits & Self::COARSE != 0 => Deadline::Coarse(moment),
            Self(_) => Deadline::Exact(moment),
        }
    }
}

impl From<Deadline> for PackedDeadline {
    fn from(deadline: Deadline) -> Self {
        match deadline {
            Deadline::Never | Deadline::Coarse(Instant::FAR) | Deadline::Exact(Instant::FAR) => {
                Self::NEVER
            }
            Deadline::Coarse(moment) => Self(moment.as_nanos().min(Self::LAST) | Self::COARSE),
            Deadline::Exact(moment) => Self(moment.as_nanos().min(Self::LAST)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_deadline_is_the_deadline() {
        let late = Instant::from_nanos(PackedDeadline::LAST);
        for moment in [Instant::ZERO, Instant::from_nanos(1_234_567_890_123), late] {
            for deadline in [Deadline::Coarse(moment), Deadline::Exact(moment)] {
                assert_eq!(PackedDeadline::from(deadline).get(), deadline);
            }
        }
        for never in
            [Deadline::Never, Deadline::Coarse(Instant::FAR), Deadline::Exact(Instant::FAR)]
        {
            assert_eq!(PackedDeadline::from(never).get(), Deadline::Never);
        }
    }
}
