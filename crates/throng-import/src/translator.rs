//! What an importer works with: the source, and the lists of mistakes and of fidelity entries.

use std::rc::Rc;

use throng_load::scenario::{Diagnostic, Target};

use crate::expansion::Expansion;
use crate::fidelity::{Fidelity, FidelityEntry};
use crate::options::ImportOptions;
use crate::row::Row;
use crate::source::{LineEnds, Source, Span};
use crate::trial::StepTrial;

/// The work on one source. An importer reports each construct to it.
#[derive(Debug)]
pub(crate) struct Translator<'a> {
    pub(crate) source: Source<'a>,
    lines: LineEnds,
    /// What names in the source become.
    pub(crate) expansion: Rc<Expansion>,
    pub(crate) options: &'a ImportOptions,
    pub(crate) mistakes: Vec<Diagnostic>,
    pub(crate) entries: Vec<FidelityEntry>,
    /// Steps that are tried where the whole scenario is not accepted.
    pub(crate) trials: Vec<StepTrial>,
}

impl<'a> Translator<'a> {
    pub(crate) fn new(source: Source<'a>, options: &'a ImportOptions) -> Self {
        let lines = LineEnds::of(source.text);
        let expansion = Expansion::of(source.text).into();
        Self {
            source,
            lines,
            expansion,
            options,
            mistakes: Vec::new(),
            entries: Vec::new(),
            trials: Vec::new(),
        }
    }

    /// Creates the work on a text that stands in the source.
    pub(crate) fn within(&self, source: Source<'a>) -> Self {
        Self { expansion: self.expansion.clone(), ..Self::new(source, self.options) }
    }

    /// Returns the line of the byte at `offset`, from 1.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.lines.line_of(offset)
    }

    /// Reports a mistake in the source: the import fails, after all mistakes have been found.
    pub(crate) fn mistake(
        &mut self,
        span: &Span,
        title: impl Into<String>,
        label: impl Into<String>,
    ) {
        self.mistakes.push(Diagnostic::new(span.clone(), title, label));
    }

    /// Reports a mistake in the source, and returns nothing for the part of the scenario.
    pub(crate) fn fail<T: Default>(
        &mut self,
        span: &Span,
        title: impl Into<String>,
        label: impl Into<String>,
    ) -> T {
        self.mistake(span, title, label);
        T::default()
    }

    /// Returns what was read, or reports the mistake in it.
    pub(crate) fn accept<T>(&mut self, read: Result<T, Diagnostic>) -> Option<T> {
        read.map_err(|mistake| self.mistakes.push(mistake)).ok()
    }

    /// Reports a construct that does the same in the scenario.
    pub(crate) fn translated(&mut self, span: &Span, construct: impl Into<String>) {
        self.entry(Fidelity::Translated, span, construct, "");
    }

    /// Reports a construct as its row in the table of the tool says.
    pub(crate) fn row(&mut self, span: &Span, row: &Row) {
        self.entry(row.fidelity, span, row.construct, row.note);
    }

    /// Reports a construct if it has a row in this table. Returns whether it has.
    pub(crate) fn has_row(&mut self, span: &Span, rows: &'static [Row], construct: &str) -> bool {
        Row::of(rows, construct).inspect(|row| self.row(span, row)).is_some()
    }

    /// Returns the target of the scenario: the one that the caller of the import wants, with
    /// `path` unless it has one, or else `of_source`, which is `scheme://host:port`, with `path`.
    /// Reports a mistake at `span` if it is none.
    pub(crate) fn target(&mut self, span: &Span, of_source: &str, path: &str) -> String {
        let target = match &self.options.target {
            Some(target) if target.path.is_empty() => format!("{}{path}", target.url()),
            Some(target) => target.url(),
            None => format!("{of_source}{path}"),
        };
        if let Err(error) = target.parse::<Target>() {
            self.mistake(span, format!("`{target}` is not a target"), error.problem);
        }
        target
    }

    /// Reports whether the scenario's target is over TLS. `of_source` is that of the file.
    pub(crate) fn is_secure(&self, of_source: bool) -> bool {
        self.options.target.as_ref().map_or(of_source, |target| target.is_secure)
    }

    /// Reports a construct.
    pub(crate) fn entry(
        &mut self,
        fidelity: Fidelity,
        span: &Span,
        construct: impl Into<String>,
        note: impl Into<String>,
    ) {
        let line = self.line_of(span.start);
        let (construct, note) = (construct.into(), note.into());
        self.entries.push(FidelityEntry { fidelity, line, construct, note });
    }
}

macro_rules! reports {
    ($( $(#[doc = $doc:literal])+ $name:ident $(or $omit:ident)? = $fidelity:ident; )+) => {
        impl Translator<'_> {
            $(
                $(#[doc = $doc])+
                pub(crate) fn $name(
                    &mut self,
                    span: &Span,
                    construct: impl Into<String>,
                    note: impl Into<String>,
                ) {
                    self.entry(Fidelity::$fidelity, span, construct, note);
                }

                $(
                    /// Reports the same, and returns nothing for the construct.
                    pub(crate) fn $omit<T: Default>(
                        &mut self,
                        span: &Span,
                        construct: impl Into<String>,
                        note: impl Into<String>,
                    ) -> T {
                        self.$name(span, construct, note);
                        T::default()
                    }
                )?
            )+
        }
    };
}

reports! {
    /// Reports a construct that does nearly the same in the scenario. The note says what differs.
    approximated = Approximated;
    /// Reports a construct that the scenario needs not. The note says why.
    not_needed or skip = NotNeeded;
    /// Reports a check that the scenario lacks. The note says what to do.
    not_checked = NotChecked;
    /// Reports a construct of the traffic that the scenario lacks. The note says what to do.
    not_supported or omit = NotSupported;
    /// Reports a construct that is translated and probably a mistake of its author. The note says
    /// why.
    suspicious = Suspicious;
}
