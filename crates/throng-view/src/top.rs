//! A look into a running server, as `throng top` shows it: in a terminal, or as plain text.
//!
//! Drawing is pure: [`TopView`] takes looks and keys, and draws. Who asks the server is the
//! command.

mod draw;
mod help;
mod list;
mod lists;

use std::collections::HashMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

use ratatui::Frame;
use throng_measure::ServerInspection;
use throng_report::render::escape;

use crate::terminal::key::TerminalKey as Key;

/// What `throng top` shows: the last look into a server, and its growth since the one before.
#[derive(Debug, Default)]
pub struct TopView {
    look: Option<ServerInspection>,
    /// The moment at which the look arrived.
    looked: Option<Instant>,
    /// Publications a second of each topic since the look before; none for a new topic.
    publications_per_s: HashMap<String, f64>,
    order: TopOrder,
    is_frozen: bool,
    shows_help: bool,
    problem: Option<String>,
}

/// The order of the lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TopOrder {
    /// Topics by members, slow connections by queued bytes, busy ones by work.
    #[default]
    Amount,
    /// Topics by publications a second, slow connections by how long they take nothing, busy ones
    /// by messages.
    Rate,
}

/// What a key asks of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopAction {
    /// Go on.
    Continue,
    /// End.
    Quit,
    /// Stop until the shell continues the process.
    Suspend,
}

impl TopView {
    /// Takes a look that arrived at `now`. While the view is frozen, it shows the old one.
    pub fn add(&mut self, look: ServerInspection, now: Instant) {
        self.problem = None;
        if self.is_frozen {
            return;
        }
        let before = self.look.as_ref().zip(self.looked.replace(now));
        self.publications_per_s = before.map_or_else(HashMap::new, |(before, then)| {
            growth(before, &look, now.saturating_duration_since(then))
        });
        self.look = Some(look);
    }

    /// Takes the reason why there is no new look.
    pub fn fail(&mut self, problem: impl Into<String>) {
        self.problem = Some(problem.into());
    }

    /// Reports whether the view is frozen: it needs no look then.
    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// Takes a key.
    pub fn press(&mut self, key: Key) -> TopAction {
        match key {
            Key::Char('q') | Key::Control('c') => return TopAction::Quit,
            Key::Control('z') => return TopAction::Suspend,
            Key::Char(' ' | 'p') => self.is_frozen = !self.is_frozen,
            Key::Char('s') => self.order = self.order.next(),
            Key::Char('?' | 'h') => self.shows_help = !self.shows_help,
            Key::Escape if self.shows_help => self.shows_help = false,
            _ => {}
        }
        TopAction::Continue
    }

    /// Draws the view.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        draw::draw(self, frame);
    }

    /// Returns the look as plain text, with every row and every column.
    pub fn text(&self) -> String {
        let Some(look) = &self.look else { return String::new() };
        let mut text = format!("{}\n", escape(&lists::summary(look)));
        if let Some(node) = lists::node(look) {
            let _ = writeln!(text, "{}", escape(&node));
        }
        for list in lists::all(look, &self.publications_per_s, self.order) {
            let _ = write!(text, "\n{}", list.text());
        }
        text
    }
}

impl TopOrder {
    fn next(self) -> Self {
        match self {
            Self::Amount => Self::Rate,
            Self::Rate => Self::Amount,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Amount => "amount",
            Self::Rate => "rate",
        }
    }
}

/// Returns the publications a second of each topic that was in both looks.
fn growth(
    before: &ServerInspection,
    now: &ServerInspection,
    after: Duration,
) -> HashMap<String, f64> {
    let earlier: HashMap<&str, u64> =
        before.topics.iter().map(|topic| (&topic.topic[..], topic.publications)).collect();
    let one = |topic: &throng_measure::TopicInspection| {
        // The count begins again at 2^32. A topic that began again counts as new.
        let grown =
            (topic.publications as u32).wrapping_sub(*earlier.get(&topic.topic[..])? as u32);
        let is_growth = grown < u32::MAX / 2 && !after.is_zero();
        is_growth.then(|| (topic.topic.clone(), f64::from(grown) / after.as_secs_f64()))
    };
    now.topics.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests;
