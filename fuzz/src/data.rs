//! A data file of a scenario, and a file with moments of arrivals.

use std::fs;
use std::path::PathBuf;

use throng_load::program::Program;
use throng_load::scenario::Scenario;

/// Checks that a file of any bytes is read or refused at its place, under each of the names that
/// say what is in it.
pub fn check(bytes: &[u8]) {
    let users = "user: [connect: {query: {a: '${row.a}'}}, stay]";
    for name in ["csv", "jsonl"] {
        let file = Written::new(name, bytes);
        let data = format!("data: {}\nload: [ramp: {{to: 1, over: 1s}}]\n{users}", file.name());
        parse(&file, &data);
    }
    let file = Written::new("times", bytes);
    parse(&file, &format!("load: [arrivals: {{file: {}}}]\nuser: [connect, close]", file.name()));
}

fn parse(file: &Written, rest: &str) {
    let scenario = file.0.with_file_name("fuzz.yaml");
    let text = format!("target: ws://127.0.0.1:1/\n{rest}\n");
    match Scenario::parse(&text, &scenario.to_string_lossy()) {
        Ok(scenario) => {
            assert_eq!(Program::compile(&scenario).classes().len(), 1);
        }
        Err(mistakes) => {
            assert!(mistakes.iter().count() > 0);
            for mistake in mistakes.iter() {
                assert!(text.get(mistake.span.clone()).is_some(), "{mistake:?}");
            }
            assert!(!mistakes.render(false).is_empty());
        }
    }
}

/// A file that is removed when it is dropped.
struct Written(PathBuf);

impl Written {
    fn new(extension: &str, bytes: &[u8]) -> Self {
        let thread = std::thread::current().id();
        let name = format!("throng-fuzz-{}-{thread:?}.{extension}", std::process::id());
        let path = std::env::temp_dir().join(name.replace(['(', ')'], ""));
        fs::write(&path, bytes).expect("the folder of temporary files can be written");
        Self(path)
    }

    /// Returns the name of the file, without its folder.
    fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
