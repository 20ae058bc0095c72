//! Arrival times of received bytes.

use throng_base::Instant;

/// Moment at which the bytes of an event reached this kernel, as far as the kernel reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrival {
    /// The kernel reported no time, or none was requested.
    #[default]
    Unknown,
    /// They arrived at this moment.
    At(Instant),
    /// They arrived at this moment or before it. Later bytes were read with them, and the kernel
    /// reports the arrival of the last byte of a receive.
    By(Instant),
}

impl Arrival {
    /// Returns the moment, which is an upper bound for [`Self::By`].
    pub const fn moment(self) -> Option<Instant> {
        match self {
            Self::Unknown => None,
            Self::At(at) | Self::By(at) => Some(at),
        }
    }

    /// Returns the arrival of bytes that were read before those of `self`, by the same receive.
    pub(crate) const fn of_earlier_bytes(self) -> Self {
        match self {
            Self::At(at) => Self::By(at),
            unknown => unknown,
        }
    }
}

impl From<Option<Instant>> for Arrival {
    fn from(stamp: Option<Instant>) -> Self {
        stamp.map_or(Self::Unknown, Self::At)
    }
}
