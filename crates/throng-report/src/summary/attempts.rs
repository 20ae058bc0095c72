//! How much users attempted: what errors and costs are divided by.

use throng_measure::Operation;

use super::Summary;

impl Summary {
    /// Reports whether the log of another tool has requests and does not say how they connected.
    pub(crate) fn is_of_requests_alone(&self) -> bool {
        let is_imported = self.run.imported.is_some() && self.connect.intended == 0;
        let http = self.http.as_ref().map_or(0, |http| http.started);
        let others = self.users.iterations + self.message.sent + self.message.received;
        is_imported && http.saturating_add(others) > 0
    }

    /// Returns the number of connects, messages, joins, pushes and HTTP requests that were
    /// attempted. A connect for an HTTP request is a part of the request.
    pub fn attempts(&self) -> u64 {
        let plain = self.plain.iter().filter_map(|(_, of)| Some(of.as_ref()?.started));
        let messages = self.message.sent.max(self.message.expected).max(self.message.answered);
        let requests = plain.sum::<u64>() + self.http_requests();
        self.connect_steps() + messages + self.message.sends_waiting + requests
    }

    /// Returns the number of connects of `connect` steps.
    pub fn connect_steps(&self) -> u64 {
        let all = self.connect.ok + self.connect.failed.total() + self.connect.waiting;
        let for_requests = self
            .http
            .as_ref()
            .map_or(0, |http| http.connects + http.connects_failed + http.connects_waiting);
        all.saturating_sub(for_requests)
    }

    /// Returns the number of HTTP requests that were begun.
    pub fn http_requests(&self) -> u64 {
        self.http.as_ref().map_or(0, |http| http.started)
    }

    /// Returns the number of connections that `connect` steps established.
    pub fn connect_steps_ok(&self) -> u64 {
        let for_requests = self.http.as_ref().map_or(0, |http| http.connects);
        self.connect.ok.saturating_sub(for_requests)
    }

    /// Returns what `messages` are in costs and rates: a request, if users sent HTTP requests
    /// alone.
    pub fn unit_of_work(&self) -> &'static str {
        let is_silent = self.message.sent == 0 && self.message.answered == 0;
        let is_http = self.http.is_some() && self.plain[Operation::Push].is_none() && is_silent;
        if is_http { "request" } else { "message" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::HttpSummary;
    use throng_measure::ErrorKind;

    /// A run in which each of 20 users logs in and opens a WebSocket, which the server refuses to
    /// half of them.
    fn logins() -> Summary {
        let mut summary = Summary::default();
        summary.connect.ok = 30;
        summary.connect.failed.add(ErrorKind::UpgradeStatus.with(401), 10);
        let http = HttpSummary { started: 20, connects: 20, ..Default::default() };
        summary.http = Some(http);
        summary
    }

    #[test]
    fn a_connect_for_a_request_is_a_part_of_it() {
        let summary = logins();
        assert_eq!((summary.connect_steps_ok(), summary.connect_steps()), (10, 20));
        assert_eq!(summary.attempts(), 40);
        assert_eq!(summary.http_requests(), 20);
    }

    #[test]
    fn a_connect_for_a_request_that_waits_at_the_end_is_a_part_of_it() {
        let mut summary = Summary::default();
        summary.connect.waiting = 100;
        let http =
            HttpSummary { started: 100, waiting: 100, connects_waiting: 100, ..Default::default() };
        summary.http = Some(http);
        assert_eq!((summary.connect_steps(), summary.attempts()), (0, 100));
    }

    #[test]
    fn work_is_requests_where_there_is_nothing_else() {
        let mut summary = logins();
        assert_eq!(summary.unit_of_work(), "request");
        summary.message.sent = 1;
        assert_eq!(summary.unit_of_work(), "message");
        assert_eq!(Summary::default().unit_of_work(), "message");
    }
}
