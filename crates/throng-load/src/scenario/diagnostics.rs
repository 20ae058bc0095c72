//! What is wrong with a scenario, shown where it stands.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The bytes of the source at fault.
    pub span: Range<usize>,
    /// What is wrong, in one line.
    pub title: String,
    /// What stands at the caret: what was expected, or which name was probably meant.
    pub label: String,
    /// What to do about it, where the label does not say so already.
    pub help: Option<String>,
}

/// Everything that is wrong with one scenario: at least one mistake, in the order of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    name: String,
    source: String,
    list: Vec<Diagnostic>,
}

impl Diagnostic {
    /// A mistake without further help.
    pub fn new(span: Range<usize>, title: impl Into<String>, label: impl Into<String>) -> Self {
        Self { span, title: title.into(), label: label.into(), help: None }
    }

    /// The same with advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl Diagnostics {
    /// The mistakes `list` in `source`, which the reader knows as `name` (a path, usually).
    pub fn new(name: &str, source: &str, mut list: Vec<Diagnostic>) -> Self {
        list.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.span.end));
        // What stands behind an anchor of YAML is read once for each use.
        list.dedup();
        Self { name: name.to_owned(), source: source.to_owned(), list }
    }

    /// The mistakes in the order of the source.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// Every mistake with its place (`name:line:column`), its line, a caret and what was expected;
    /// `color` adds the escape sequences of a terminal.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let reports: Vec<_> = self.list.iter().map(|one| self.render_one(one, &renderer)).collect();
        reports.join("\n\n")
    }

    fn render_one(&self, diagnostic: &Diagnostic, renderer: &Renderer) -> String {
        let caret = AnnotationKind::Primary.span(diagnostic.span.clone()).label(&diagnostic.label);
        let snippet = Snippet::source(&self.source).path(&self.name).annotation(caret);
        let group = Level::ERROR.primary_title(&diagnostic.title).element(snippet);
        let help = diagnostic.help.as_ref().map(|help| Level::HELP.message(help));
        renderer.render(&[group.elements(help)])
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}
