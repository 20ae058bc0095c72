//! Arrival times of received bytes.

use throng_base::Instant;

/// Moment at which the last of the received bytes reached this kernel. `None` if the kernel gave no
/// time, or none was requested: then the bytes arrived at some moment before they were read.
pub type Arrival = Option<Instant>;
