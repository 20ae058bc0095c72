//! A lab that is a YAML file: a scenario with parameters, and a block `lab` beside it.
//!
//! The block has what the lab puts in place of the parameters on this machine, the server to start,
//! the values of a run, and the tables and sentences that are made of them. [`LabSpec`] lists its
//! fields. Rust is only for analyses: [`analyses`] has them by name.

mod analyses;
mod sentence;
mod spec;

use serde_json::{Map, Value};
use throng_base::units::brief_micros;
use throng_load::scenario::{
    ExpressionError, Params, Quantity, Scenario, evaluate, read_params, with_params,
};
use throng_report::Summary;
use throng_report::summary::RunMachineSummary;
use throng_run::test_bed::{FinishedRun, LoadSpec, ServerSpec};

use crate::error::LabError;
use crate::lab::Lab;
use crate::measure::validity_until;
use crate::options::LabInfo;
use crate::progress::LabProgress;
use crate::report::{LabReport, LabTable};
use crate::run_facts::RunFacts;
use crate::run_watch::{LabServer, ServerHistory};
use crate::sized_scenario::{SizedScenario, find};
use crate::throughput::Throughput;
use analyses::analysis;
use sentence::{cells, duration, sentence};
use spec::{Claim, LabSpec, RowsSpec};

/// A bundled lab.
pub(crate) struct Experiment {
    pub(crate) info: LabInfo,
    yaml: &'static str,
    spec: LabSpec,
}

impl Experiment {
    /// Reads the lab `name` from its file. The file is a part of the program, so a mistake in it
    /// is one of this program.
    pub(crate) fn new(name: &'static str, yaml: &'static str) -> Self {
        let spec = LabSpec::parse(yaml).unwrap_or_else(|error| panic!("labs/{name}.yaml: {error}"));
        let info = LabInfo {
            name,
            article: spec.article.clone(),
            summary: spec.summary.clone(),
            takes_rate: spec.params.0.iter().any(|(_, text)| text.contains("asked.rate")),
            // Labs without a server in their file compare several, in Rust. Nodes are at addresses
            // that only this machine reaches.
            takes_agents: !spec.server.is_empty() && spec.nodes == 1,
            // The comparison of accept topologies has throng's servers alone, too.
            takes_tls: !spec.server.is_empty() || name == "stressgrid-100k",
            nodes: spec.nodes,
        };
        Self { info, yaml, spec }
    }

    /// Reports whether this lab is described by the file of the lab `name`.
    pub(crate) fn is_like(&self, name: &str) -> bool {
        self.spec.like.as_deref() == Some(name)
    }

    /// Takes from `other` what a run is and what it shows.
    pub(crate) fn like(mut self, other: &Self) -> Self {
        self.spec = self.spec.like(&other.spec);
        self.info.takes_agents = other.info.takes_agents;
        self.info.takes_tls = other.info.takes_tls;
        self.info.nodes = other.info.nodes;
        self
    }

    /// Returns the scenario in the size that follows from `known`.
    pub(crate) fn size(&self, known: Params) -> Result<SizedScenario, LabError> {
        let mut params = known;
        for (name, text) in &self.spec.params.0 {
            let value = self.evaluate(text, &|name| find(&params, name))?;
            params.push((name.clone(), value));
        }
        let text = with_params(self.yaml, &params);
        let scenario = Scenario::parse(&text, self.info.name);
        let scenario = scenario.map_err(|error| self.mistake(error.render(false)))?;
        let derived = read_params(&text, self.info.name);
        params.extend(derived.map_err(|error| self.mistake(error.render(false)))?);
        Ok(SizedScenario { text, scenario, params })
    }

    fn evaluate(
        &self,
        text: &str,
        find: &dyn Fn(&str) -> Option<Quantity>,
    ) -> Result<Quantity, LabError> {
        evaluate(text, find).map_err(|error| self.mistake(format!("{text}: {error}")))
    }

    /// Returns the value of an expression that is a number or a duration in seconds.
    fn number(&self, text: &str, sized: &SizedScenario) -> Result<f64, LabError> {
        let value = self.evaluate(text, &|name| find(&sized.params, name))?;
        value.value().ok_or_else(|| self.mistake(format!("{text} has no value here")))
    }

    fn mistake(&self, message: String) -> LabError {
        LabError::Definition { lab: self.info.name, message }
    }

    /// Computes the values of a run.
    fn measure(&self, facts: &RunFacts<'_>) -> Result<Measurements, LabError> {
        let mut found = Measurements { params: facts.sized.params.clone(), ..Default::default() };
        for (name, text) in &self.spec.values.0 {
            let value = self.value(text, facts, &found)?;
            found.hidden.insert(name.clone(), value);
        }
        for (name, text) in &self.spec.row.0 {
            let value = self.value(text, facts, &found)?;
            found.row.insert(name.clone(), value);
        }
        Ok(found)
    }

    /// Returns a fact, a part of a value, or the value of an expression.
    fn value(
        &self,
        text: &str,
        facts: &RunFacts<'_>,
        found: &Measurements,
    ) -> Result<Value, LabError> {
        if let Some(value) = analysis(text, facts).or_else(|| found.json(text).cloned()) {
            return Ok(value);
        }
        let find = |name: &str| found.find(name).or_else(|| facts.metric(name));
        Ok(match self.evaluate(text, &find)? {
            Quantity::Unknown => Value::Null,
            Quantity::Text(text) => text.into(),
            Quantity::Number { value, .. } if value.fract() == 0.0 && value.abs() < 1e15 => {
                (value as i64).into()
            }
            Quantity::Number { value, .. } => value.into(),
        })
    }

    fn tables(&self, found: &Measurements) -> Result<Vec<LabTable>, ExpressionError> {
        let table = |spec: &spec::TableSpec| {
            let mut rows = Vec::new();
            for row in &spec.rows {
                match row {
                    RowsSpec::One(row) => rows.push(cells(row, &|name| found.find(name))?),
                    RowsSpec::Each { each, cells: row, none } => {
                        let all = found.json(each).unwrap_or(&Value::Null);
                        for item in items(all) {
                            rows.push(cells(row, &|name| {
                                json_at(&item, name).map(quantity).or_else(|| found.find(name))
                            })?);
                        }
                        if items(all).is_empty() {
                            let dashes = spec.head.iter().map(|_| "-".to_owned());
                            rows.push(none.clone().unwrap_or_else(|| dashes.collect()));
                        }
                    }
                }
            }
            rows.iter_mut().for_each(|row| row.resize(spec.head.len(), String::new()));
            Ok(LabTable { title: spec.title.clone(), head: spec.head.clone(), rows })
        };
        self.spec.tables.iter().map(table).collect()
    }

    /// Returns the sentence of the first claim of each list whose condition holds.
    fn sentences(
        claims: &[Vec<Claim>],
        found: &Measurements,
    ) -> Result<Vec<String>, ExpressionError> {
        let mut sentences = Vec::new();
        let find = |name: &str| found.find(name);
        for outcomes in claims {
            for Claim { when, say } in outcomes {
                if evaluate(when.as_deref().unwrap_or("1"), &find)?.holds() {
                    sentences.extend(sentence(say, &find)?);
                    break;
                }
            }
        }
        Ok(sentences)
    }
}

/// Runs the lab.
pub(crate) fn run(
    lab: &Lab<'_>,
    experiment: &'static Experiment,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    let spec = &experiment.spec;
    let mut known = lab.known();
    if experiment.evaluate(&spec.calibrate, &|name| find(&known, name))?.holds() {
        let protocol = Scenario::parse(experiment.yaml, experiment.info.name)
            .map_err(|error| experiment.mistake(error.render(false)))?
            .protocol;
        known.extend(Throughput::measure(lab, protocol, 2, progress)?.params());
    }
    let sized = experiment.size(known)?;
    lab.check_fits(experiment.number(&spec.users, &sized)? as u64)?;
    if let Some(note) = &spec.note {
        let control = lab.test_bed.load_control(experiment.info.name);
        progress(LabProgress::Note(&note.replace("{control}", &control.display().to_string())));
    }
    let (run, server) = load(lab, experiment, &sized, progress)?;
    let summary = Summary::of(&run.file);
    let facts = RunFacts { run: &run.file, summary: &summary, sized: &sized, server: &server };
    let found = experiment.measure(&facts)?;
    let validity = match &spec.judged_until {
        None => summary.validity.clone(),
        Some(text) => {
            let until = experiment.evaluate(text, &|name| found.find(name))?.value();
            validity_until(&run.file, until.map_or(u64::MAX, |ms| ms as u64))
        }
    };
    let text = || {
        let find = |name: &str| found.find(name);
        let setup = sentence(&spec.setup, &find)?.unwrap_or_default();
        let mut tables = experiment.tables(&found)?;
        tables.extend(agents(&summary));
        let verdict = Experiment::sentences(&spec.verdict, &found)?;
        Ok((setup, tables, verdict, Experiment::sentences(&spec.notes, &found)?))
    };
    let (setup, tables, verdict, notes) =
        text().map_err(|error: ExpressionError| experiment.mistake(error.to_string()))?;
    Ok(LabReport {
        setup,
        tables,
        verdict,
        notes: validity.reasons.into_iter().chain(summary.overdue()).chain(notes).collect(),
        grade: validity.grade,
        interrupted: run.interrupted,
        rows: Value::Array(vec![Value::Object(found.row)]),
        ..LabReport::of(&experiment.info)
    })
}

/// Runs server and generator. Returns what happened to the server, too.
fn load(
    lab: &Lab<'_>,
    experiment: &Experiment,
    sized: &SizedScenario,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<(FinishedRun, ServerHistory), LabError> {
    let (spec, row) = (&experiment.spec, experiment.info.name);
    let number = |text: &str| experiment.number(text, sized);
    let seconds = sized.seconds();
    let expected = spec.seconds.as_deref().map_or(Ok(seconds as f64), number)?;
    lab.begin_row(row, expected as u64, progress);
    let places = number(spec.places.as_ref().unwrap_or(&spec.users))? as u64;
    let cores = lab.machine.cores_for(places).div_ceil(spec.nodes.into());
    let idle = number(&spec.idle_timeout).map(duration)?;
    let server = ServerSpec {
        idle_timeout: (!idle.is_zero()).then_some(idle),
        ..ServerSpec::new(row, &spec.server, cores)
    };
    let mut server = LabServer::start(lab.test_bed, server, spec.nodes)?;
    let endpoint = server.endpoint();
    let target = sized.target();
    let interval = number(&spec.interval).map(duration)?;
    let load = LoadSpec { interval, ..LoadSpec::new(row, &target, &sized.text, seconds) };
    let mut watch = analyses::watch(spec.watch.as_deref(), sized)
        .ok_or_else(|| experiment.mistake(format!("no watch is named {:?}", spec.watch)))?;
    let run = lab.test_bed.load(
        &load,
        &endpoint,
        &mut |event| progress(LabProgress::Run(event)),
        |interval| watch.add(interval, &mut server),
    )?;
    Ok((run, server.stop()?))
}

/// Returns a row for each agent; none without agents.
fn agents(summary: &Summary) -> Option<LabTable> {
    let head = ["agent", "users", "connects", "failed", "answers", "errors", "lag p99"];
    let row = |machine: &RunMachineSummary| {
        let counts = [
            machine.users_most,
            machine.connects_ok,
            machine.connects_failed,
            machine.answered,
            machine.errors,
        ];
        let lag = machine.lag_us_p99_most;
        let mut cells = vec![machine.name.clone()];
        cells.extend(counts.map(|n| n.to_string()));
        cells.push(lag.map_or_else(|| "-".to_owned(), brief_micros));
        cells
    };
    let rows: Vec<_> = summary.machines.iter().map(row).collect();
    (!rows.is_empty()).then(|| LabTable {
        title: "Each agent's share".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows,
    })
}

/// The values of a run.
#[derive(Clone, Debug, Default)]
struct Measurements {
    /// The row of the report's JSON.
    row: Map<String, Value>,
    /// Values that only tables and sentences use.
    hidden: Map<String, Value>,
    params: Params,
}

impl Measurements {
    /// Returns the value at `path`, such as `cost.users_per_cpu` or `plateaus.0.users`. What is
    /// missing below a known name is null.
    fn json(&self, path: &str) -> Option<&Value> {
        let head = path.split('.').next().unwrap_or(path);
        let all = if self.row.contains_key(head) { &self.row } else { &self.hidden };
        let (head, rest) = (all.get(head)?, path[head.len()..].trim_start_matches('.'));
        match head {
            _ if rest.is_empty() => Some(head),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                Some(json_at(head, rest).unwrap_or(&Value::Null))
            }
            // Another name that begins alike: `users.connected_most`.
            _ => None,
        }
    }

    fn find(&self, name: &str) -> Option<Quantity> {
        self.json(name).map(quantity).or_else(|| find(&self.params, name))
    }
}

fn json_at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        other => other.get(key),
    })
}

fn quantity(value: &Value) -> Quantity {
    match value {
        Value::Null => Quantity::Unknown,
        Value::Bool(holds) => Quantity::number(f64::from(u8::from(*holds))),
        Value::Number(number) => Quantity::number(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => Quantity::Text(text.clone()),
        Value::Array(items) => Quantity::number(items.len() as f64),
        Value::Object(fields) => Quantity::number(fields.len() as f64),
    }
}

/// Returns the items of a list, or the entries of a mapping as `key` and `value`.
fn items(value: &Value) -> Vec<Value> {
    let entry = |(key, value): (&String, &Value)| serde_json::json!({"key": key, "value": value});
    match value {
        Value::Array(items) => items.clone(),
        Value::Object(fields) => fields.iter().map(entry).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
