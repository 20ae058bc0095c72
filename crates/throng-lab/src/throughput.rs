//! The machine's throughput with server and generator on it, measured just before a lab.
//!
//! A lab whose users connect and send messages at a rate takes a share of this throughput. So the
//! generator has headroom on a slow machine, and the lab is short on a fast one. No fixed rate
//! suits every machine.

use std::sync::Arc;
use std::time::Duration;

use throng_load::scenario::{Params, Protocol, Quantity};
use throng_report::render::rate;
use throng_run::ceiling::{self, CeilingOptions, Traffic};

use crate::error::LabError;
use crate::lab::Lab;
use crate::progress::LabProgress;

/// The highest rates of server and generator together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Throughput {
    /// Connections per second, including the upgrade of a WebSocket and the join of a channel.
    pub(crate) connects: f64,
    /// Answered messages per second.
    pub(crate) messages: f64,
}

impl Throughput {
    /// Measures the throughput, the first of `rows`. Assumes a slow CPU's throughput for
    /// a few users, which any machine takes at once, and where the calibration measures no rate.
    pub(crate) fn measure(
        lab: &Lab<'_>,
        protocol: Protocol,
        rows: usize,
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
        progress(LabProgress::Row {
            name: ROW,
            number: 1,
            of: rows,
            seconds: LENGTH.as_secs() + 1,
        });
        let options = CeilingOptions {
            length: LENGTH,
            protocol,
            traffic: Traffic::Answered,
            resume: lab.options.over_tls.then_some(1.0),
            users_most: lab.machine.pairs_most(),
            program: lab.options.program.clone(),
            stop: Arc::clone(&lab.options.stop),
            ..CeilingOptions::default()
        };
        let ceiling = ceiling::measure(&options)?.ceiling;
        let found = Self {
            // Users of a lab resume their sessions, as browsers do.
            connects: ceiling.resumed_per_s.or(ceiling.connects_per_s).unwrap_or(slow.connects),
            messages: ceiling.messages_per_s.unwrap_or(slow.messages),
        };
        progress(LabProgress::Note(&format!(
            "with server and generator on it, this machine does at most {} connects{} and {} \
             messages",
            rate(found.connects),
            if lab.options.over_tls { " over TLS" } else { "" },
            rate(found.messages)
        )));
        Ok(found)
    }

    /// Returns the throughput that any machine with `cpus` CPUs has.
    fn assumed(cpus: u64) -> Self {
        let cpus = cpus as f64;
        Self { connects: CONNECTS_PER_CPU * cpus, messages: MESSAGES_PER_CPU * cpus }
    }

    /// Returns the names that a lab's expressions have for the throughput.
    pub(crate) fn params(&self) -> Params {
        let known = [("connects", self.connects), ("messages", self.messages)];
        known.map(|(name, rate)| (name.to_owned(), Quantity::per_second(rate))).into()
    }
}

const ROW: &str = "calibration";
/// The calibration's length, without the start of server and generator.
pub(crate) const LENGTH: Duration = Duration::from_secs(2);
/// The most users that arrive within seconds on any machine.
const FEW_USERS: u64 = 2_000;
const CONNECTS_PER_CPU: f64 = 2_000.0;
const MESSAGES_PER_CPU: f64 = 10_000.0;
