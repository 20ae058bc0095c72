//! JUnit XML: a test suite a run, for CI servers that show test results.
//!
//! The suite passes exactly if the run's exit code is 0. A test case each says whether the run
//! completed and is written, whether its numbers are valid, and whether it met each threshold. What
//! is not the target's fault is an *error*: the run says nothing about the target. The others are
//! *failures*.

use std::borrow::Cow;
use std::fmt::Write as _;

use throng_measure::Grade;
use throng_measure::runfile::RunEndReason;

use super::run_export::RunExport;
use crate::render::{is_unsafe, render_details};

/// The result of one test case; the text says why.
enum CaseResult {
    Passed,
    Failed(String),
    Error(String),
}

/// A test case: its name and its result.
type TestCase = (String, CaseResult);

impl RunExport<'_> {
    /// Returns the run as JUnit XML.
    pub fn junit(&self) -> String {
        let cases = self.cases();
        let count = |is: fn(&CaseResult) -> bool| cases.iter().filter(|(_, it)| is(it)).count();
        let failures = count(|result| matches!(result, CaseResult::Failed(_)));
        let errors = count(|result| matches!(result, CaseResult::Error(_)));
        let run = &self.summary.run;
        let (tests, time) = (cases.len(), self.summary.duration_s);
        let name = escaped(&run.scenario);
        let stamp = match run.started.as_str() {
            "" => String::new(),
            started => format!(" timestamp=\"{}\"", escaped(started)),
        };
        let totals = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"");
        let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
        _ = writeln!(xml, "<testsuites name=\"throng\" {totals} time=\"{time:.3}\">");
        _ = writeln!(
            xml,
            "  <testsuite name=\"{name}\" {totals} skipped=\"0\" time=\"{time:.3}\"\
             {stamp}>"
        );
        xml += "    <properties>\n";
        let grade = format!("{:?}", self.summary.validity.grade).to_lowercase();
        for (property, value) in [
            ("target", run.target.as_str()),
            ("throng_version", run.throng_version.as_str()),
            ("grade", grade.as_str()),
            ("verdict", self.diagnosis.verdict.as_str()),
        ] {
            let value = escaped(value);
            _ = writeln!(xml, "      <property name=\"{property}\" value=\"{value}\"/>");
        }
        xml += "    </properties>\n";
        cases.iter().for_each(|case| xml += &test_case(case, &name));
        let text = render_details(self.summary, self.judgements, Some(self.diagnosis));
        _ = writeln!(xml, "    <system-out>{}</system-out>", escaped_text(&text));
        if !self.warnings.is_empty() {
            let warnings = self.warnings.join("\n");
            _ = writeln!(xml, "    <system-err>{}</system-err>", escaped_text(&warnings));
        }
        xml + "  </testsuite>\n</testsuites>\n"
    }

    fn cases(&self) -> Vec<TestCase> {
        let mut cases = vec![
            ("the run completed its plan".to_owned(), self.completion()),
            ("the numbers are the target's".to_owned(), self.validity()),
        ];
        cases.extend(self.judgements.iter().map(|judgement| {
            let result = match judgement.met {
                true => CaseResult::Passed,
                false => CaseResult::Failed(format!("measured {}", judgement.measured)),
            };
            (judgement.threshold.clone(), result)
        }));
        cases
    }

    fn completion(&self) -> CaseResult {
        let summary = self.summary;
        if let Some(why) = &summary.run.incomplete {
            return CaseResult::Error(why.clone());
        }
        if summary.run.end == Some(RunEndReason::Failed) {
            return CaseResult::Error("the generator failed".to_owned());
        }
        if summary.is_unreached() {
            return CaseResult::Failed("no connection was ever established".to_owned());
        }
        if let Some(why) = summary.shortcoming() {
            return CaseResult::Failed(why);
        }
        summary.unwritten().map_or(CaseResult::Passed, CaseResult::Error)
    }

    fn validity(&self) -> CaseResult {
        let validity = &self.summary.validity;
        match validity.grade {
            Grade::Invalid => CaseResult::Error(validity.reasons.join("\n")),
            Grade::Valid | Grade::Degraded => CaseResult::Passed,
        }
    }
}

fn test_case((name, result): &TestCase, suite: &str) -> String {
    let open = format!("    <testcase classname=\"{suite}\" name=\"{}\"", escaped(name));
    let (element, why) = match result {
        CaseResult::Passed => return open + "/>\n",
        CaseResult::Failed(why) => ("failure", why),
        CaseResult::Error(why) => ("error", why),
    };
    let first_line = escaped(why.lines().next().unwrap_or_default());
    let why = escaped_text(why);
    format!(
        "{open}>\n      <{element} message=\"{first_line}\">{why}</{element}>\n    </testcase>\n"
    )
}

/// Returns text for an attribute. A character that XML forbids becomes U+FFFD.
fn escaped(text: &str) -> String {
    text.chars().map(|c| in_attribute(c).unwrap_or_else(|| allowed(c).to_string().into())).collect()
}

/// Returns text for an element, whose line breaks stay as they are.
fn escaped_text(text: &str) -> String {
    let keep = |c: char| matches!(c, '\n' | '\t');
    let one = |c: char| in_attribute(c).filter(|_| !keep(c));
    text.chars().map(|c| one(c).unwrap_or_else(|| allowed(c).to_string().into())).collect()
}

fn in_attribute(c: char) -> Option<Cow<'static, str>> {
    Some(match c {
        '&' => "&amp;".into(),
        '<' => "&lt;".into(),
        '>' => "&gt;".into(),
        '"' => "&quot;".into(),
        '\t' => "&#9;".into(),
        '\n' => "&#10;".into(),
        '\r' => "&#13;".into(),
        // A terminal that shows the file must not obey it.
        c if is_unsafe(c) && allowed(c) == c => format!("&#x{:x};", u32::from(c)).into(),
        _ => return None,
    })
}

/// Returns a character that XML 1.0 allows (section 2.2).
fn allowed(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => c,
        _ => char::REPLACEMENT_CHARACTER,
    }
}
