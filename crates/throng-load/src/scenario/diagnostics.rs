//! Mistakes in a scenario, and warnings about it, shown in the source.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use throng_report::render::{escape, escape_lines};

/// A mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Bytes of the source at fault.
    pub span: Range<usize>,
    /// Description of the mistake, in one line.
    pub title: String,
    /// Text at the caret: what was expected, or a suggested name.
    pub label: String,
    /// Advice, if the label does not give it already.
    pub help: Option<String>,
}

/// All mistakes of a scenario, at least one, or the warnings about one without mistakes, in the
/// order of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    name: String,
    source: String,
    /// Places at which the lines of the source end.
    line_ends: Vec<usize>,
    list: Vec<Diagnostic>,
    are_warnings: bool,
}

impl Diagnostic {
    /// Creates a mistake without advice.
    pub fn new(span: Range<usize>, title: impl Into<String>, label: impl Into<String>) -> Self {
        Self { span, title: title.into(), label: label.into(), help: None }
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl Diagnostics {
    /// Creates diagnostics for `source`. `name` is what the reader calls it, usually its path.
    pub fn new(name: &str, source: &str, mut list: Vec<Diagnostic>) -> Self {
        list.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.span.end));
        // A mistake in a YAML anchor is found once for each use.
        list.dedup();
        let (name, source) = (name.to_owned(), source.to_owned());
        let line_ends = source.match_indices('\n').map(|(at, _)| at).collect();
        Self { name, source, line_ends, list, are_warnings: false }
    }

    /// Creates warnings about `source`, which has no mistake.
    pub fn warnings(name: &str, source: &str, list: Vec<Diagnostic>) -> Self {
        Self { are_warnings: true, ..Self::new(name, source, list) }
    }

    /// Reports whether there is no mistake and no warning.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Iterates over the mistakes in the order of the source.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// Returns the line of a mistake, from 1.
    pub fn line_of(&self, mistake: &Diagnostic) -> usize {
        self.line_ends.partition_point(|end| *end < mistake.span.start) + 1
    }

    /// Renders every mistake with its position (`name:line:column`), its line, a caret and the
    /// expected text. `color` adds terminal escape sequences.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let reports: Vec<_> = self.list.iter().map(|one| self.render_one(one, &renderer)).collect();
        reports.join("\n\n")
    }

    /// Renders a mistake. No part of it steers a terminal: the crate replaces escape characters in
    /// the line of the source.
    fn render_one(&self, diagnostic: &Diagnostic, renderer: &Renderer) -> String {
        let (first, lines) = self.lines_around(&diagnostic.span);
        let span = diagnostic.span.start - lines.start..diagnostic.span.end - lines.start;
        let label = escape_lines(&diagnostic.label);
        let caret = AnnotationKind::Primary.span(span).label(label);
        let snippet = Snippet::source(&self.source[lines]).line_start(first);
        let snippet = snippet.path(escape(&self.name)).annotation(caret);
        let level = if self.are_warnings { Level::WARNING } else { Level::ERROR };
        let group = level.primary_title(escape_lines(&diagnostic.title)).element(snippet);
        let help = diagnostic.help.as_ref().map(|help| Level::HELP.message(escape_lines(help)));
        renderer.render(&[group.elements(help)])
    }
}

impl Diagnostics {
    /// Returns the number of the first line with a byte of `span`, and the place of all of them: to
    /// show one takes no look at the others.
    fn lines_around(&self, span: &Range<usize>) -> (usize, Range<usize>) {
        let of = |at: usize| self.line_ends.partition_point(|end| *end < at);
        // What stands behind the last line end is shown in the last line.
        let behind = self.line_ends.last().is_some_and(|end| end + 1 == self.source.len());
        let is_behind = behind && span.start == self.source.len();
        let (first, last) = (of(span.start) - usize::from(is_behind), of(span.end));
        let begin = first.checked_sub(1).map_or(0, |before| self.line_ends[before] + 1);
        let end = self.line_ends.get(last).map_or(self.source.len(), |end| end + 1);
        (first + 1, begin..end)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}
