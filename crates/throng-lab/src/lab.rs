//! The bundled experiments by name.

use std::cell::Cell;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use throng_base::units::{nearest, show_count};
use throng_doctor::preflight::Preflight;
use throng_report::Interval;

use crate::isolate::IsolateError;
use crate::machine::LabMachine;
use crate::report::LabReport;
use crate::test_bed::TestBed;
use crate::{
    connscale, demo, fast_connect, fast_receive, haskell_chat, phoenix_2m, reconnect_storm, rooms,
    simulated_chat, stressgrid_100k,
};

/// What a lab is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LabInfo {
    /// As it is typed: `stressgrid-100k`.
    pub name: &'static str,
    /// The article that it redoes.
    pub article: &'static str,
    /// The question, in a sentence.
    pub summary: &'static str,
    /// Whether its users come at a steady rate, which can be asked for.
    pub takes_rate: bool,
}

/// How a lab is run.
#[derive(Clone, Debug, Default)]
pub struct LabOptions {
    /// Users. Default: what suits the machine and the lab, up to the article's number.
    pub users: Option<u64>,
    /// Seconds that the load of each row lasts, not counting a calibration and what cannot be shortened. Default: so that
    /// the whole lab takes a minute or two.
    pub seconds: Option<u64>,
    /// Whether each end gets a network namespace of its own; needs root.
    pub isolate: bool,
    /// Whether the ends stay in the machine's own network namespace even where they users its table of connections.
    /// Default: as root, a lab then takes a namespace with a larger one.
    pub no_namespace: bool,
    /// Users that arrive each second, in a lab whose users come at a steady rate. Default: what this machine takes
    /// easily.
    pub rate: Option<u64>,
    /// Where scenarios, run files and the ends' output are kept. Default: nowhere.
    pub keep_files: Option<PathBuf>,
    /// The program whose `serve` and `run` are the two ends. Default: this one.
    pub program: Option<PathBuf>,
    /// Whether the articles' own servers are left out even where they could run.
    pub only_throng: bool,
    /// Whether a size that does not fit is tried all the same.
    pub force: bool,
    /// Set to end the lab early: the load ramps down and what was measured is reported.
    pub stop: Arc<AtomicBool>,
}

/// What a lab tells while it runs.
#[derive(Debug)]
pub enum LabProgress<'a> {
    /// A sentence worth knowing: how to steer the run, what is left out and why.
    Note(&'a str),
    /// Another row of the table begins.
    Row {
        /// Its name: `reuseport`.
        name: &'a str,
        /// Which one it is, from 1.
        number: usize,
        /// How many there are.
        of: usize,
        /// How long it should take.
        seconds: u64,
    },
    /// A second of it has passed.
    Interval {
        /// The row's name.
        row: &'a str,
        /// What was measured.
        interval: &'a Interval,
        /// The interval before it.
        previous: Option<&'a Interval>,
        /// How long the row should take.
        seconds: u64,
    },
}

/// Why a lab gave no result.
#[derive(Debug)]
pub enum LabError {
    /// There is no lab of that name.
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest name.
        nearest: Option<&'static str>,
    },
    /// Its users do not come at a rate that could be asked for.
    NoRate(&'static str),
    /// The machine is too small for the users that were asked for.
    TooBig(Box<Preflight>),
    /// The namespaces could not be made.
    Isolate(IsolateError),
    /// One of the two ends could not be started, or ended when it should not.
    Process {
        /// `server` or `generator`.
        end: &'static str,
        /// What happened, and the last that it said.
        said: String,
    },
    /// A file could not be written or read.
    File(PathBuf, std::io::Error),
}

/// All labs, in the order in which a newcomer should meet them.
pub fn labs() -> &'static [LabInfo] {
    &[
        demo::INFO,
        stressgrid_100k::INFO,
        fast_connect::INFO,
        fast_receive::INFO,
        connscale::INFO,
        haskell_chat::INFO,
        phoenix_2m::INFO,
        rooms::ONE_ROOM,
        rooms::MANY_ROOMS,
        simulated_chat::INFO,
        reconnect_storm::INFO,
    ]
}

/// Runs the lab `name`; `progress` is called on this thread.
///
/// # Errors
/// [`LabError`]. A lab that was stopped early is no error: its report says so.
pub fn run(
    name: &str,
    options: &LabOptions,
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> Result<LabReport, LabError> {
    let run = match name {
        "demo" => demo::run,
        "stressgrid-100k" => stressgrid_100k::run,
        "fast-connect" => fast_connect::run,
        "fast-receive" => fast_receive::run,
        "connscale" => connscale::run,
        "haskell-chat" => haskell_chat::run,
        "phoenix-2m" => phoenix_2m::run,
        "one-room" => rooms::one_room,
        "many-rooms" => rooms::many_rooms,
        "simulated-chat" => simulated_chat::run,
        "reconnect-storm" => reconnect_storm::run,
        _ => {
            let nearest = nearest(name, labs().iter().map(|lab| lab.name));
            return Err(LabError::Unknown { name: name.to_owned(), nearest });
        }
    };
    let info = labs().iter().find(|lab| lab.name == name);
    if let Some(info) = info.filter(|lab| options.rate.is_some() && !lab.takes_rate) {
        return Err(LabError::NoRate(info.name));
    }
    let machine = LabMachine::read(options.isolate);
    let stage = TestBed::new(name, options)?;
    let lab = Lab { options, machine, test_bed: &stage, is_calibrated: Cell::new(false) };
    let report = run(&lab, progress)?;
    let setup = match stage.network_note() {
        Some(note) => format!("{}; {note}", report.setup),
        None => report.setup,
    };
    Ok(LabReport {
        diagnoses: stage.diagnoses(),
        setup,
        kept: options.keep_files.clone(),
        ..report
    })
}

/// What every lab works with.
pub(crate) struct Lab<'a> {
    pub(crate) options: &'a LabOptions,
    pub(crate) machine: LabMachine,
    pub(crate) test_bed: &'a TestBed,
    /// Whether a calibration was its first row.
    pub(crate) is_calibrated: Cell<bool>,
}

impl Lab<'_> {
    /// How many users to run: those asked for, or `wanted` as far as it fits.
    pub(crate) fn users_or(&self, wanted: u64) -> u64 {
        self.options.users.unwrap_or_else(|| wanted.min(self.machine.pairs_most()).max(1))
    }

    /// Tells that the only row begins, after the calibration if there was one.
    pub(crate) fn begin_row(
        &self,
        name: &str,
        seconds: u64,
        progress: &mut dyn FnMut(LabProgress<'_>),
    ) {
        let of = 1 + usize::from(self.is_calibrated.get());
        progress(LabProgress::Row { name, number: of, of, seconds });
    }

    /// Refuses a number of users that does not fit, unless it is to be tried all the same; makes room for them where that
    /// is possible.
    pub(crate) fn check_fits(&self, connections: u64) -> Result<(), LabError> {
        let found = self.machine.preflight(connections);
        if !found.fits() && !self.options.force {
            return Err(LabError::TooBig(Box::new(found)));
        }
        let sockets = connections.saturating_mul(2);
        self.test_bed.use_larger_table(
            sockets,
            self.machine.hash_buckets(),
            !self.options.no_namespace,
        );
        Ok(())
    }
}

impl From<IsolateError> for LabError {
    fn from(error: IsolateError) -> Self {
        Self::Isolate(error)
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, nearest } => {
                write!(f, "there is no lab `{name}`")?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
                    None => {
                        let names: Vec<_> = labs().iter().map(|lab| lab.name).collect();
                        write!(f, "; there are {}", names.join(", "))
                    }
                }
            }
            Self::NoRate(name) => {
                let takes: Vec<_> =
                    labs().iter().filter(|lab| lab.takes_rate).map(|lab| lab.name).collect();
                write!(
                    f,
                    "the users of {name} do not come at a steady rate; --rate is for {}",
                    takes.join(", ")
                )
            }
            Self::TooBig(found) => {
                write!(f, "{}", found.refusal())?;
                if let Some(holds) = found.holds() {
                    writeln!(f, "  --users {}", show_count(holds))?;
                }
                f.write_str("the lab was not started; --force tries it all the same")
            }
            Self::Isolate(error) => error.fmt(f),
            Self::Process { end, said } => write!(f, "the {end} {said}"),
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for LabError {}

/// Passes progress on without the events of its intervals: a load that asks for all that there is makes a generator late, and
/// that is no news.
pub(crate) fn without_events(
    progress: &mut dyn FnMut(LabProgress<'_>),
) -> impl FnMut(LabProgress<'_>) {
    |event| match event {
        LabProgress::Interval { row, interval, previous, seconds } => {
            let interval = &Interval { events: Vec::new(), ..interval.clone() };
            progress(LabProgress::Interval { row, interval, previous, seconds });
        }
        other => progress(other),
    }
}

/// The labs scale the articles' scenarios; at the articles' own sizes they must be the files under `labs`.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_same_scenario(ours: &str, bundled: &str) {
    use throng_load::{program::Program, scenario::Scenario};
    let parse = |text, name| Scenario::parse(text, name).unwrap();
    let (ours, bundled) = (parse(ours, "ours"), parse(bundled, "bundled"));
    let program = |scenario| format!("{:#?}", Program::compile(scenario));
    assert_eq!(program(&ours), program(&bundled));
    assert_eq!((ours.target, ours.load), (bundled.target, bundled.load));
    assert_eq!(ours.probe, bundled.probe);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_lab_gets_the_nearest_name() {
        let error = run("conscale", &LabOptions::default(), &mut |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "there is no lab `conscale`; did you mean `connscale`?");
        let error = run("x", &LabOptions::default(), &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("stressgrid-100k, fast-connect"), "{error}");
    }

    #[test]
    fn a_rate_is_refused_where_users_have_none() {
        let options = LabOptions { rate: Some(9), ..LabOptions::default() };
        let error = run("stressgrid-100k", &options, &mut |_| {}).unwrap_err().to_string();
        assert!(
            error.contains("--rate is for connscale, ") && error.contains("phoenix-2m"),
            "{error}"
        );
    }
}
