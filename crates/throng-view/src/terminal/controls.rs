//! What the keys of a view do.

use throng_control::{ControlRequest, Verb};

use super::key::TerminalKey as Key;
use super::model::{Dialog, TerminalModel};

/// What a key asks for, beyond another view of the same run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewCommand {
    /// A request to the generator, with the verbs of `throng ctl`.
    Control(ControlRequest),
    /// Ramp down and report, as Ctrl-C does; at the second time end at once.
    Interrupt,
    /// Stop the process until the shell continues it.
    Suspend,
}

/// The keys, for the help: the key, and what it does.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("p", "pause: the plan starts no user"),
    ("r", "resume"),
    ("+ -", "1 % more or fewer users"),
    ("↑ ↓", "10 % more or fewer users"),
    ("s q", "stop: ramp down, then report"),
    ("o", "another operation"),
    ("Tab", "the next chart, where one fits"),
    ("?", "this help"),
    ("Ctrl-C", "stop; a second one ends now"),
];

impl TerminalModel {
    /// Acts on a key. Returns what the caller must do for it.
    pub fn press(&mut self, key: Key) -> Option<ViewCommand> {
        match key {
            Key::Control('c') => return Some(ViewCommand::Interrupt),
            Key::Control('z') => return Some(ViewCommand::Suspend),
            _ => {}
        }
        match self.dialog.take() {
            Some(Dialog::ConfirmStop) => {
                let is_confirmed = matches!(key, Key::Char('y' | 'Y' | 's') | Key::Enter);
                is_confirmed.then(|| ViewCommand::Control(ControlRequest::new(Verb::Shutdown)))
            }
            // Any key closes the help.
            Some(Dialog::Help) => None,
            None => self.press_in_view(key),
        }
    }

    fn press_in_view(&mut self, key: Key) -> Option<ViewCommand> {
        match key {
            Key::Char('?' | 'h') => self.dialog = Some(Dialog::Help),
            Key::Char('s' | 'q') => self.dialog = Some(Dialog::ConfirmStop),
            Key::Char('o') => self.next_operation(),
            Key::Tab => self.chart_first = (self.chart_first + 1) % CHARTS,
            _ => return self.request(key).map(ViewCommand::Control),
        }
        None
    }

    fn request(&self, key: Key) -> Option<ControlRequest> {
        let percent = |percent: u64| (self.users().saturating_mul(percent) / 100).max(1);
        Some(match key {
            Key::Char('p') => ControlRequest::new(Verb::Pause),
            Key::Char('r') => ControlRequest::new(Verb::Resume),
            Key::Char('+' | '=') => ControlRequest::with_n(Verb::Start, percent(1)),
            Key::Char('-') => ControlRequest::with_n(Verb::Stop, percent(1)),
            Key::Up => ControlRequest::with_n(Verb::Start, percent(10)),
            Key::Down => ControlRequest::with_n(Verb::Stop, percent(10)),
            _ => return None,
        })
    }
}

/// The number of charts.
pub(crate) const CHARTS: usize = 3;

#[cfg(test)]
mod tests {
    use throng_measure::runfile::RunHeader;
    use throng_run::RunContent;

    use super::*;

    fn model(users_planned: u64) -> TerminalModel {
        let header = RunHeader { users_planned, ..RunHeader::default() };
        TerminalModel::of_run(RunContent::of_header(header))
    }

    #[test]
    fn keys_are_the_verbs_of_ctl() {
        let control = |request| Some(ViewCommand::Control(request));
        let mut model = model(2_000);
        assert_eq!(model.press(Key::Char('p')), control(ControlRequest::new(Verb::Pause)));
        assert_eq!(model.press(Key::Char('r')), control(ControlRequest::new(Verb::Resume)));
        assert_eq!(model.press(Key::Char('+')), control(ControlRequest::with_n(Verb::Start, 20)));
        assert_eq!(model.press(Key::Down), control(ControlRequest::with_n(Verb::Stop, 200)));
        assert_eq!(model.press(Key::Char('x')), None);
        assert_eq!(model.press(Key::Control('c')), Some(ViewCommand::Interrupt));
    }

    #[test]
    fn a_step_is_one_user_at_least() {
        let start = ControlRequest::with_n(Verb::Start, 1);
        assert_eq!(model(7).press(Key::Char('+')), Some(ViewCommand::Control(start)));
        assert_eq!(model(0).press(Key::Char('+')), Some(ViewCommand::Control(start)));
    }

    #[test]
    fn a_stop_is_confirmed() {
        let stop = Some(ViewCommand::Control(ControlRequest::new(Verb::Shutdown)));
        for key in [Key::Char('s'), Key::Char('q')] {
            for (answer, expected) in [
                (Key::Char('y'), stop),
                (Key::Enter, stop),
                (Key::Char('n'), None),
                (Key::Escape, None),
            ] {
                let mut model = model(10);
                assert_eq!(model.press(key), None);
                assert_eq!(model.dialog, Some(Dialog::ConfirmStop));
                assert_eq!(model.press(answer), expected, "{answer:?}");
                assert_eq!(model.dialog, None);
            }
        }
    }

    #[test]
    fn the_help_opens_and_any_key_closes_it() {
        let mut model = model(10);
        assert_eq!(model.press(Key::Char('?')), None);
        assert_eq!(model.dialog, Some(Dialog::Help));
        assert_eq!(model.press(Key::Char('p')), None);
        assert_eq!(model.dialog, None);
    }
}
