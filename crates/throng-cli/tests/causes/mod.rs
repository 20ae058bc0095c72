//! What walls and diseases share: a cause that a test provokes, the stage of its run, and the
//! matrix of all results.

pub(crate) mod machine;
pub(crate) mod matrix;
pub(crate) mod stage;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use matrix::{Matrix, Row};
use stage::Stage;

/// A cause that stops a run, or slows it down.
pub(crate) struct Cause {
    /// The name, for the matrix and for the variable that selects causes.
    pub(crate) name: &'static str,
    /// The description of the way to provoke it.
    pub(crate) what: &'static str,
    /// The id of the first finding; `None` for a run that nothing stops.
    pub(crate) expected: Option<&'static str>,
    /// Words that the verdict or the first finding must contain.
    pub(crate) says: &'static [&'static str],
    /// Marks a cause that is about the CPUs. It runs alone, and its result is void if other
    /// programs use the CPUs.
    pub(crate) is_of_cpus: bool,
    /// The constructor of its stage.
    pub(crate) stage: fn() -> Result<Stage, String>,
    pub(crate) provoke: fn(&mut Stage) -> Provoked,
}

/// The summary of the run from `throng run --json`, or the reason why this machine cannot have the
/// cause.
pub(crate) type Provoked = Result<Value, String>;

/// A kind of causes: all that one matrix shows.
pub(crate) struct Kind {
    /// The word for one, `wall`.
    pub(crate) singular: &'static str,
    /// The word for several, which is the name of the test target, too.
    pub(crate) plural: &'static str,
    /// The name of the matrix in the marks of the document.
    pub(crate) mark: &'static str,
    /// The number of causes that are provoked at the same time, if they are not of the CPUs.
    pub(crate) at_a_time: usize,
    /// Marks causes that only times show: their results are void if other programs use the CPUs.
    pub(crate) needs_quiet: bool,
    pub(crate) groups: &'static [&'static [Cause]],
}

impl Kind {
    /// Returns all causes of this kind, in the order of the matrix.
    pub(crate) fn causes(&self) -> impl Iterator<Item = &'static Cause> + use<> {
        self.groups.iter().copied().flatten()
    }

    /// Returns the marks in the document around the matrix.
    pub(crate) fn marks(&self) -> [String; 2] {
        ["begin", "end"].map(|which| format!("<!-- {which} of {} -->", self.mark))
    }

    /// Provokes all causes, or those that the environment variable (`THRONG_WALLS`) names, prints
    /// the matrix, and checks it.
    pub(crate) fn provoke(&'static self) {
        let variable = format!("THRONG_{}", self.plural.to_uppercase());
        let wanted = std::env::var(variable).unwrap_or_default();
        let is_wanted = |cause: &&Cause| {
            wanted.is_empty() || wanted.split(',').any(|part| cause.name.contains(part.trim()))
        };
        let (of_cpus, others): (Vec<_>, Vec<_>) =
            self.causes().filter(is_wanted).partition(|cause| cause.is_of_cpus);
        let matrix = Mutex::new(Matrix::new(self));
        for (causes, at_a_time) in [(others, self.at_a_time), (of_cpus, 1)] {
            let queue = Mutex::new(VecDeque::from(causes));
            let next = || queue.lock().unwrap().pop_front();
            let provoke_all = || {
                while let Some(cause) = next() {
                    let row = Row::of(self, cause);
                    println!("{row}");
                    matrix.lock().unwrap().add(row);
                }
            };
            thread::scope(|scope| (0..at_a_time).for_each(|_| _ = scope.spawn(provoke_all)));
        }
        let matrix = matrix.into_inner().unwrap().in_order();
        println!("\n{matrix}");
        if wanted.is_empty() && std::env::var_os("THRONG_WRITE_MATRIX").is_some() {
            matrix.write();
        }
        matrix.check();
    }
}
