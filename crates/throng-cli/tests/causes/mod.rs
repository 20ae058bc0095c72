//! What walls and diseases share: a cause that a test provokes, the stage of its run, and the
//! matrix of all results.
//!
//! Each cause is a test of its own. Its result is a judgement: it depends on what else the machine
//! does. A cause that is missed while other programs use the CPUs, or of whose run the doctor says
//! that it had no CPU time, is provoked once more, and is *not judged* if that is so again. Any
//! other miss is a failure.

pub(crate) mod machine;
pub(crate) mod matrix;
pub(crate) mod stage;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::Value;

use machine::QuietTime;
use matrix::{Matrix, Row};
use stage::Stage;

/// A cause that stops a run, or slows it down.
pub(crate) struct Cause {
    /// The name, for the matrix. The test's name is made from it.
    pub(crate) name: &'static str,
    /// The description of the way to provoke it.
    pub(crate) what: &'static str,
    /// The id of the first finding; `None` for a run that nothing stops.
    pub(crate) expected: Option<&'static str>,
    /// Words that the verdict or the first finding must contain.
    pub(crate) says: &'static [&'static str],
    /// Marks a cause that is about the CPUs. It runs alone.
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
    pub(crate) groups: &'static [&'static [Cause]],
}

impl Cause {
    /// Returns the name of the test: `newest_first` for the cause `newest first`.
    pub(crate) fn test_name(&self) -> String {
        let words = self.name.split(|c: char| !c.is_ascii_alphanumeric());
        let words = words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase);
        words.collect::<Vec<_>>().join("_")
    }
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

    /// Runs the tests that the command line names: one for each cause, and one for the document.
    /// Prints the matrix of what ran, and checks how much of it could be judged.
    pub(crate) fn main(&'static self) -> ExitCode {
        let mut arguments = Arguments::from_args();
        arguments.test_threads.get_or_insert(self.at_a_time);
        let matrix = Arc::new(Mutex::new(Matrix::new(self)));
        let alone = Arc::new(RwLock::new(()));
        let (of_cpus, others): (Vec<_>, Vec<_>) = self.causes().partition(|cause| cause.is_of_cpus);
        let judge = |cause: &'static Cause| {
            let (matrix, alone) = (Arc::clone(&matrix), Arc::clone(&alone));
            Trial::ignorable_test(cause.test_name(), move || judge(cause, &matrix, &alone))
        };
        let mut tests: Vec<Trial> = others.into_iter().chain(of_cpus).map(judge).collect();
        tests.push(Trial::test("the_document_lists_each_cause", move || {
            matrix::check_document(self);
            Ok(())
        }));
        tests.push(Trial::test("own_work_is_not_others", || {
            machine::own_work_is_not_others();
            Ok(())
        }));
        let quiet = QuietTime::watch();
        let conclusion = libtest_mimic::run(&arguments, tests);
        let quiet = quiet.share();
        if arguments.list {
            return ExitCode::SUCCESS;
        }
        let mut matrix = matrix.lock().unwrap_or_else(PoisonError::into_inner);
        matrix.sort();
        println!("{matrix}");
        let is_whole = conclusion.num_filtered_out == 0;
        if is_whole && std::env::var_os("THRONG_WRITE_MATRIX").is_some() {
            matrix.write();
        }
        match matrix.check(quiet) {
            Err(reason) if is_whole => {
                println!("failed: {reason}");
                ExitCode::FAILURE
            }
            _ => conclusion.exit_code(),
        }
    }
}

/// Provokes a cause, alone if it is one of the CPUs, and adds its row to the matrix.
fn judge(
    cause: &'static Cause,
    matrix: &Mutex<Matrix>,
    alone: &RwLock<()>,
) -> Result<Completion, Failed> {
    let row = if cause.is_of_cpus {
        let _alone = alone.write().unwrap_or_else(PoisonError::into_inner);
        Row::of(cause)
    } else {
        let _beside_others = alone.read().unwrap_or_else(PoisonError::into_inner);
        Row::of(cause)
    };
    println!("{row}");
    let result = row.result();
    matrix.lock().unwrap_or_else(PoisonError::into_inner).add(row);
    result
}
