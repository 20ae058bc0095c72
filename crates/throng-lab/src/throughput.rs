//! What this machine does in a second with both ends on it, measured just before a lab.
//!
//! A lab whose users come, ask and hear at a rate takes its rates from here: a share of what this machine does at most, so
//! that the generator has headroom on a slow machine, and the lab is short on a fast one. A number that suits one machine suits no
//! other.

use std::sync::Arc;
use std::time::Duration;

use throng_load::scenario::Protocol;
use throng_report::render::rate;

use crate::ceiling::{self, CeilingOptions, Traffic};
use crate::error::LabError;
use crate::lab::Lab;
use crate::progress::LabProgress;

/// The most that both ends did together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Throughput {
    /// Connections a second: with the upgrade of a WebSocket, and one join where channels are spoken.
    pub(crate) connects: f64,
    /// Messages a second that were answered.
    pub(crate) messages: f64,
}

impl Throughput {
    /// Measures it, as the row before the lab's own. So few users that any machine takes them at once need no measurement:
    /// of those, and where nothing could be measured, a slow CPU's is taken.
    pub(crate) fn measure(
        lab: &Lab<'_>,
        protocol: Protocol,
        progress: &mut dyn FnMut(LabProgress<'_>),
    ) -> Result<Self, LabError> {
        let slow = Self::assumed(lab.machine.cpus);
        if let Some(users) = lab.options.users {
            lab.check_fits(users)?;
            if users <= FEW_USERS {
                return Ok(slow);
            }
        }
        lab.is_calibrated.set(true);
        progress(LabProgress::Row { name: ROW, number: 1, of: 2, seconds: LENGTH.as_secs() + 1 });
        let options = CeilingOptions {
            length: LENGTH,
            protocol,
            traffic: Traffic::Answered,
            users_most: lab.machine.pairs_most(),
            program: lab.options.program.clone(),
            stop: Arc::clone(&lab.options.stop),
            ..CeilingOptions::default()
        };
        let ceiling = ceiling::measure(&options)?.ceiling;
        let found = Self {
            connects: ceiling.connects_per_s.unwrap_or(slow.connects),
            messages: ceiling.messages_per_s.unwrap_or(slow.messages),
        };
        progress(LabProgress::Note(&format!(
            "with both ends on it, this machine does {} connects and {} messages at most",
            rate(found.connects),
            rate(found.messages)
        )));
        Ok(found)
    }

    /// What any machine with so many CPUs does.
    fn assumed(cpus: u64) -> Self {
        let cpus = cpus as f64;
        Self { connects: CONNECTS_PER_CPU * cpus, messages: MESSAGES_PER_CPU * cpus }
    }

    /// `share` of the connects, at least one a second.
    pub(crate) fn connects_at(&self, share: f64) -> u64 {
        ((self.connects * share) as u64).max(1)
    }

    /// `share` of the messages, at least one a second.
    pub(crate) fn messages_at(&self, share: f64) -> u64 {
        ((self.messages * share) as u64).max(1)
    }
}

const ROW: &str = "calibration";
/// Starting both ends comes on top.
const LENGTH: Duration = Duration::from_secs(2);
/// All of them come within seconds everywhere.
const FEW_USERS: u64 = 2_000;
const CONNECTS_PER_CPU: f64 = 2_000.0;
const MESSAGES_PER_CPU: f64 = 10_000.0;
