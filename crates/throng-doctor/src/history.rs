//! A run as far as it has come, in the form in which the doctor keeps it: every interval, without its histograms.

use throng_report::runfile::{Header, RunFile};
use throng_report::{Histogram, Interval, LoadInterval};

/// What was to be run, and what became of it second by second. An hour of it takes some tens of megabytes.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The first line of the run file.
    pub header: Header,
    moments: Vec<Moment>,
}

/// An interval whose histograms have become a few numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moment {
    /// Everything but the histograms, which are empty.
    pub interval: Interval,
    /// How late the generator was.
    pub lag: Spread,
    /// From the intended moment of a connect until it was established.
    pub connect: Spread,
    /// The part of that until TCP was established, of WebSockets.
    pub tcp: Spread,
    /// From the intended moment of a message until its answer.
    pub message: Spread,
    /// The same of a push to a channel.
    pub push: Spread,
    /// From the intended moment of a probe until a user had it.
    pub broadcast: Spread,
}

/// A histogram in four numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// How many values there were.
    pub count: u64,
    /// Half of them were at most this, in microseconds.
    pub p50_us: u64,
    /// 99 % of them were at most this.
    pub p99_us: u64,
    /// The largest.
    pub max_us: u64,
}

impl History {
    /// Before the first interval.
    pub fn new(header: Header) -> Self {
        Self { header, moments: Vec::new() }
    }

    /// A run that is over.
    pub fn of(file: &RunFile) -> Self {
        let mut history = Self::new(file.header.clone());
        file.intervals.iter().for_each(|interval| history.add(interval));
        history
    }

    /// Adds the next interval.
    pub fn add(&mut self, interval: &Interval) {
        self.moments.push(Moment::of(interval));
    }

    /// What there is of it, the oldest first.
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }
}

impl Moment {
    fn of(interval: &Interval) -> Self {
        let spread = |of: fn(&LoadInterval) -> &Histogram| {
            interval.load.as_ref().map_or_else(Spread::default, |load| Spread::of(of(load)))
        };
        Self {
            lag: spread(|load| &load.lag),
            connect: spread(|load| &load.connect),
            tcp: spread(|load| &load.tcp),
            message: spread(|load| &load.message),
            push: spread(|load| &load.push),
            broadcast: spread(|load| &load.broadcast),
            interval: Interval {
                at_ms: interval.at_ms,
                span_ms: interval.span_ms,
                load: interval.load.as_ref().map(LoadInterval::without_measured),
                server: interval.server.clone(),
                machine: interval.machine.clone(),
                kernel: interval.kernel.clone(),
                server_kernel: interval.server_kernel.clone(),
                server_machine: interval.server_machine.clone(),
                unseen: interval.unseen.clone(),
                events: interval.events.clone(),
            },
        }
    }

    /// The generator's share, which every interval of a sound file has.
    pub fn load(&self) -> Option<&LoadInterval> {
        self.interval.load.as_ref()
    }
}

impl Spread {
    fn of(histogram: &Histogram) -> Self {
        Self {
            count: histogram.count(),
            p50_us: histogram.percentile(50.0),
            p99_us: histogram.percentile(99.0),
            max_us: histogram.max(),
        }
    }
}
