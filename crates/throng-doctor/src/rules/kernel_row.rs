//! Rules that are a row: a kernel dropped something at a limit, counted it, and the run felt it.

use throng_measure::{Endpoint, EndpointFacts, Finding, Limit, Metric, Severity, Side};
use throng_report::render::count;

use super::listen_backlog;
use super::retransmission::{self, Symptom};
use crate::counted::times;
use crate::kernels::{Kernel, kernels};
use crate::run_view::RunView;

/// What one such rule looks for, and says. A row names what differs from [`KernelRow::ANY`].
pub(super) struct KernelRow {
    /// Counters of the drops: the first that grew counts.
    pub(super) counters: &'static [Metric],
    /// Counter of what the server's own listeners dropped, for any reason. If it is known, the row
    /// counts no more drops than these: the other counters are those of all listeners.
    pub(super) own: Option<Metric>,
    /// True if only the server's kernel counts, and the cause is the server's.
    pub(super) at_server: bool,
    /// The fewest drops that count: fewer are the tail of something else.
    pub(super) at_least: u64,
    /// Counter of all that may be dropped, and the smallest share of drops: one in so many.
    pub(super) share: Option<(Metric, u64)>,
    /// True if closed connections are dropped: more than the run closed are another program's.
    pub(super) of_closed: bool,
    /// Reports whether the drops have a cause of another rule.
    pub(super) is_other: fn(&RunView<'_>, &Kernel) -> bool,
    /// The limit.
    pub(super) limit: fn(&EndpointFacts) -> Option<i64>,
    /// Gauge of what the limit is for.
    pub(super) gauge: Option<Metric>,
    /// The share of the limit that the gauge must have reached.
    pub(super) full: Option<f64>,
    /// Another counter that shows it.
    pub(super) also: Option<Metric>,
    /// Returns the symptom in the run.
    pub(super) symptom: fn(&RunView<'_>) -> Option<Symptom>,
    /// The severity and the confidence without a symptom; `None` for no finding.
    pub(super) without_symptom: Option<(Severity, f64)>,
    /// The conclusion. `{whose}` stands for the machine, `{drops}` for their number, `{times}` for
    /// it with its word, `{all}` for all that might have been dropped, `{closed}` for the
    /// connections that the run closed. `{limit}` is a space and the limit, `{room}` says that so
    /// many fit: both are empty if it is unknown.
    pub(super) text: &'static str,
    /// Returns a further sentence, with a space before it.
    pub(super) more: fn(&RunView<'_>, &Kernel) -> String,
    /// What to do. `{wanted}` stands for a limit that is high enough: four times as high, and at
    /// least the two numbers below. `{raise}` stands for the command that sets `raises` to it,
    /// `{listen}` for the way to raise the server's backlog to it.
    pub(super) remedy: &'static str,
    pub(super) raises: Option<Limit>,
    pub(super) wanted_min: i64,
    pub(super) wanted_each_user: i64,
}

impl KernelRow {
    pub(super) const ANY: Self = Self {
        counters: &[],
        own: None,
        at_server: false,
        at_least: 0,
        share: None,
        of_closed: false,
        is_other: |_, _| false,
        limit: |_| None,
        gauge: None,
        full: None,
        also: None,
        symptom: retransmission::by_anything,
        without_symptom: Some((Severity::Noted, 1.0)),
        text: "",
        more: |_, _| String::new(),
        remedy: "",
        raises: None,
        wanted_min: 0,
        wanted_each_user: 0,
    };

    /// Looks for the row in each kernel that was sampled.
    pub(super) fn find(&self, id: &str, run: &RunView<'_>) -> Option<Finding> {
        let server = [Kernel { endpoint: Endpoint::Server, side: Side::Server, whose: "" }];
        let kernels = if self.at_server { server.into() } else { kernels(run) };
        kernels.iter().find_map(|kernel| self.of_kernel(id, run, kernel))
    }

    fn of_kernel(&self, id: &str, run: &RunView<'_>, kernel: &Kernel) -> Option<Finding> {
        let end = kernel.endpoint;
        let growth = self.counters.iter().find_map(|counter| run.growth(end, *counter))?;
        let own = self.own.and_then(|own| run.growth(end, own));
        let growth = own.filter(|own| own.by() < growth.by()).unwrap_or(growth);
        let drops = growth.by();
        let all = self.share.and_then(|(all, _)| run.growth(end, all)).map_or(0, |all| all.by());
        let is_few = drops < self.at_least
            || self.share.is_some_and(|(_, one_in)| drops.saturating_mul(one_in) < all);
        let load = run.samples().last()?.load().map(|load| &load.counters);
        let closed = load.map(|load| load.connects_ok.saturating_sub(load.connected));
        if self.of_closed && closed.is_none() {
            return None;
        }
        let closed = closed.unwrap_or(0);
        let is_others = self.of_closed && drops > closed.saturating_mul(SOCKETS_EACH);
        let limit = (self.limit)(run.facts(end));
        let gauge = self.gauge.and_then(|gauge| run.peak(end, gauge));
        let is_full = self.full.is_none_or(|share| {
            let known = gauge.as_ref().zip(limit);
            known.is_some_and(|(gauge, limit)| gauge.value as f64 >= share * limit as f64)
        });
        if is_few || is_others || !is_full || (self.is_other)(run, kernel) {
            return None;
        }
        let symptom = (self.symptom)(run);
        let felt = symptom.as_ref().map(|symptom| (symptom.severity, 1.0));
        let (severity, confidence) = felt.or(self.without_symptom)?;
        let shown = limit.map(|limit| count(limit as f64));
        let show = |before, after| {
            shown.as_ref().map_or_else(String::new, |limit| format!("{before}{limit}{after}"))
        };
        let text = self
            .text
            .replace("{whose}", kernel.whose)
            .replace("{times}", &times(drops))
            .replace("{drops}", &count(drops as f64))
            .replace("{all}", &count((all + drops) as f64))
            .replace("{closed}", &count(closed as f64))
            .replace("{limit}", &show(" ", ""))
            .replace("{room}", &show(", which holds ", ","));
        let users = i64::try_from(run.header.users_planned).unwrap_or(i64::MAX);
        let wanted = limit.unwrap_or(0).saturating_mul(4).max(self.wanted_min);
        let wanted = wanted.max(users.saturating_mul(self.wanted_each_user));
        let raise = self.raises.map_or_else(String::new, |limit| limit.raise(wanted));
        let remedy = self.remedy.replace("{raise}", &raise);
        let remedy = remedy.replace("{listen}", &listen_backlog::raise(run, wanted));
        let finding = Finding::new(id, kernel.side, text + &(self.more)(run, kernel))
            .with_severity(severity)
            .with_confidence(confidence)
            .with_evidence([growth])
            .with_evidence(self.also.and_then(|also| run.growth(end, also)))
            .with_evidence(gauge.filter(|gauge| gauge.value > 0))
            .with_evidence(symptom)
            .remedied_by(remedy.replace("{wanted}", &wanted.to_string()));
        Some(finding)
    }
}

/// Client and server of a connection may be in one kernel, and both may be closed at once.
const SOCKETS_EACH: u64 = 2;
