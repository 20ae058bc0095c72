//! How to give a server's listener a longer accept queue.

use throng_measure::Endpoint;

use crate::run_view::RunView;

/// Returns the instruction that makes the server's backlog this long. A throng server has a flag
/// for it; another server passes it to listen(2). If it is not known which of them it is, the
/// instruction names both.
pub(super) fn raise(run: &RunView<'_>, wanted: i64) -> String {
    if run.samples().iter().any(|sample| sample.interval.server.is_some()) {
        return format!("throng serve --backlog {wanted}");
    }
    if !run.has_facts(Endpoint::Server) {
        return format!(
            "throng serve --backlog {wanted}, or raise the backlog of your server's listen()"
        );
    }
    let program = run.server_program().unwrap_or_else(|| "the server".to_owned());
    let now = run.facts(Endpoint::Server).backlog;
    let now = now.map_or_else(String::new, |backlog| format!(", {backlog} now,"));
    format!("raise the backlog{now} that {program} passes to listen(2) to {wanted}")
}

#[cfg(test)]
mod tests {
    use throng_measure::{Metric, RunEvent, RunEventKind, ServerSnapshot};

    use super::super::fixture::Run;
    use super::*;

    fn of(run: &Run) -> String {
        let (history, summary) = run.whole();
        raise(&RunView::new(&history, &summary), 4_096)
    }

    #[test]
    fn a_throng_server_has_a_flag_and_another_calls_listen() {
        let served = Run::quiet().changed(|interval, _| {
            interval.server = Some(ServerSnapshot::default());
        });
        assert_eq!(of(&served), "throng serve --backlog 4096");
        let mut foreign = Run::quiet().with(Metric::LISTENER_BACKLOG, 5);
        let begin = "raise the backlog, 5 now, that ";
        assert_eq!(of(&foreign), format!("{begin}the server passes to listen(2) to 4096"));
        let program = "python3".to_owned();
        let found = RunEventKind::ServerProcess { pid: 7, program, runtime: None };
        foreign.intervals[1].events.push(RunEvent::new(900, found));
        assert_eq!(of(&foreign), format!("{begin}python3 (pid 7) passes to listen(2) to 4096"));
        foreign.header.target_is_here = false;
        assert!(of(&foreign).starts_with("throng serve --backlog 4096, or raise"));
    }
}
