//! Which variables a session uses, and which names its loops have.

use std::collections::{BTreeMap, BTreeSet};

use super::element::{Child, Element};

/// The names in a session.
#[derive(Debug, Default)]
pub(super) struct Uses<'d> {
    /// Variables that something uses.
    all: BTreeSet<&'d str>,
    /// Variables that something uses outside of the `for` that counts them.
    outside: BTreeSet<&'d str>,
    /// How many elements `repeat` have the name.
    repeats: BTreeMap<&'d str, usize>,
}

impl<'d> Uses<'d> {
    pub(super) fn of(session: Element<'d>) -> Self {
        let mut uses = Self::default();
        uses.collect(session, &mut Vec::new());
        uses
    }

    /// Reports whether something uses the variable.
    pub(super) fn any(&self, name: &str) -> bool {
        self.all.contains(name)
    }

    /// Reports whether something uses the variable outside of the `for` that counts it.
    pub(super) fn outside(&self, name: &str) -> bool {
        self.outside.contains(name)
    }

    /// Reports whether several elements `repeat` have the name.
    pub(super) fn shares(&self, repeat: &str) -> bool {
        self.repeats.get(repeat).is_some_and(|count| *count > 1)
    }

    /// Collects the names in an element, which stands in the `for` of these variables.
    fn collect(&mut self, element: Element<'d>, counted: &mut Vec<&'d str>) {
        let name = element.name();
        let own = element.value(if name == "repeat" { "name" } else { "var" });
        let is_for = name == "for";
        match own {
            Some(own) if is_for => counted.push(own),
            Some(own) if name == "repeat" => *self.repeats.entry(own).or_default() += 1,
            Some(own) => self.add(own, counted),
            None => {}
        }
        let texts = element.values().chain(element.texts());
        for text in texts {
            let mut rest = text;
            while let Some((_, behind)) = rest.split_once("%%_") {
                let Some((used, behind)) = behind.split_once("%%") else { break };
                self.add(used, counted);
                rest = behind;
            }
        }
        for child in element.children() {
            if let Child::Element(child) = child {
                self.collect(child, counted);
            }
        }
        if is_for && own.is_some() {
            counted.pop();
        }
    }

    fn add(&mut self, used: &'d str, counted: &[&str]) {
        self.all.insert(used);
        if !counted.contains(&used) {
            self.outside.insert(used);
        }
    }
}
