//! Trials: whether throng accepts a part of a scenario, before the whole is written.
//!
//! A trial opens no file and reads no environment: the values of both are stored texts in it.

use throng_load::scenario::{Diagnostic, Scenario};

use crate::draft::{Draft, DraftClass};
use crate::source::Source;
use crate::yaml::Yaml;

/// What is known where the part of the scenario stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial<'a> {
    /// The target of the scenario.
    pub(crate) target: &'a str,
    /// The variables that steps may use: `token`, `row.name`, `env.TOKEN`.
    pub(crate) variables: &'a [String],
}

impl Trial<'_> {
    /// Returns why throng refuses these steps; `None` if it accepts them. Over WebSockets the user
    /// has connected before them.
    pub(crate) fn of_steps(&self, steps: &[Yaml]) -> Option<Diagnostic> {
        let has_connect = steps.iter().any(Yaml::is_connect);
        let is_http = self.target.starts_with("http");
        let connect = (!is_http && !has_connect).then(|| Yaml::text("connect"));
        let steps = connect.into_iter().chain(steps.iter().cloned()).collect();
        let rate = Yaml::map([("rate", Yaml::plain("1/s")), ("for", Yaml::plain("1s"))]);
        self.of_draft(&draft(self.target, vec![Yaml::entry("arrivals", rate)], steps))
    }

    /// Returns why throng refuses a `connect` or another first step.
    pub(crate) fn of_first_step(&self, step: &Yaml) -> Option<Diagnostic> {
        let rate = Yaml::map([("rate", Yaml::plain("1/s")), ("for", Yaml::plain("1s"))]);
        let load = vec![Yaml::entry("arrivals", rate)];
        self.of_draft(&draft(self.target, load, vec![step.clone()]))
    }

    /// Returns why throng refuses this load; `None` if it accepts it.
    pub(crate) fn of_load(&self, load: &[Yaml]) -> Option<Diagnostic> {
        let steps = vec![Yaml::entry("wait", Yaml::plain("1s"))];
        self.of_draft(&draft(self.target, load.to_vec(), steps))
    }

    /// Returns why throng refuses the scenario of this draft; `None` if it accepts it.
    pub(crate) fn of_draft(&self, draft: &Draft) -> Option<Diagnostic> {
        let mut draft = draft.clone();
        draft.data = None;
        let plain = |name: &String| (name.replace('.', "_"), Yaml::text("x"));
        if !self.variables.is_empty() {
            let set = Yaml::entry("set", Yaml::map(self.variables.iter().map(plain)));
            draft.classes.iter_mut().for_each(|class| class.steps.insert(0, set.clone()));
        }
        let source = Source { name: NAME, text: "" };
        let mut text = draft.write(&source, "trial");
        for name in self.variables.iter().filter(|name| name.contains('.')) {
            text = text.replace(name, &name.replace('.', "_"));
        }
        let mistakes = Scenario::parse(&text, NAME).err()?;
        mistakes.iter().next().cloned()
    }
}

fn draft(target: &str, load: Vec<Yaml>, steps: Vec<Yaml>) -> Draft {
    let class = DraftClass { name: "user".to_owned(), weight: 1, steps, on_error: None };
    let target = target.to_owned();
    Draft { target, load, classes: vec![class], ..Draft::default() }
}

/// What a trial is called.
const NAME: &str = "trial.yaml";
