use std::fs;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::scenario::Scenario;

/// Parses a load of arrivals with these options, beside a file `t` of this content.
fn load(content: &[u8], options: &str) -> Result<Vec<Phase>, String> {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("t"), content).unwrap();
    let source =
        format!("target: tcp://h:1\nload:\n  - arrivals: {{file: t{options}}}\nuser: [connect]\n");
    let path = folder.path().join("scenario.yaml").display().to_string();
    let parsed = Scenario::parse(&source, &path);
    parsed.map(|scenario| scenario.load.shared().to_vec()).map_err(|mistakes| {
        mistakes.render(false).replace(&folder.path().display().to_string(), "")
    })
}

fn moments(content: &str, options: &str) -> Vec<u64> {
    let phases = load(content.as_bytes(), options).unwrap_or_else(|error| panic!("{error}"));
    let [Phase::Recorded { moments_ns, span }] = &phases[..] else { panic!("{phases:?}") };
    let last = Duration::from_nanos(*moments_ns.last().unwrap());
    assert!(*span > last && *span <= last + Duration::from_millis(1), "{span:?}");
    moments_ns.to_vec()
}

#[test]
fn moments_count_from_the_first_and_are_exact() {
    let expected = [0, 1, 500_000_000, 500_000_000, 86_400_000_000_000];
    let seconds = "\u{feff}# a comment\n7.25\r\n7.250000001\n\n7.75\n7.750\n86407.25\n";
    assert_eq!(moments(seconds, ""), expected);
    let unix = "1700000000.25\n1700000000.250000001\n1700000000.75\n1700000000.75\n1700086400.25";
    assert_eq!(moments(unix, ""), expected);
    let dates = "2024-02-28T23:59:59.25Z\n2024-02-29 00:59:59.250000001+01:00\n\
        2024-02-28T23:59:59.75Z\n2024-02-28T23:59:59.75Z\n2024-02-29T23:59:59.25Z\n";
    assert_eq!(moments(dates, ""), expected);
}

#[test]
fn a_column_is_found_by_its_name_or_its_number() {
    let csv = "user,begin,\"a, b\"\nann,1,x\n\"b, ob\",3.5,\n";
    assert_eq!(moments(csv, ", column: begin"), [0, 2_500_000_000]);
    assert_eq!(moments("a,4\nb,5\n", ", column: 2"), [0, 1_000_000_000]);
}

#[test]
fn a_replay_is_faster_or_slower() {
    assert_eq!(moments("0\n1\n3\n", ", speed: 2x"), [0, 500_000_000, 1_500_000_000]);
    assert_eq!(moments("0\n1\n3\n", ", speed: 0.5x"), [0, 2_000_000_000, 6_000_000_000]);
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_its_line() {
    let cases: [(&[u8], &str, &str, &str); 13] = [
        (b"", "", "it has no moments", "one a line"),
        (b"1\nten\n", "", "line 2: `ten` is no moment", "seconds such as 12.5"),
        (b"1\n-3\n", "", "line 2: `-3` is no moment", "seconds such as 12.5"),
        (b"1\n\xff\n", "", "line 2: `\u{fffd}` is no moment", "seconds such as 12.5"),
        (b"1\n\n3\n2.5\n", "", "line 4 is before line 3", "sort -n"),
        (b"1\n2024-01-01T00:00:00Z\n", "", "line 2 is not in the format", "all seconds"),
        (b"1\n99999999999\n", "", "line 2 is more than a year after", "a phase for each part"),
        (b"1,2\n", "", "line 1 has 2 columns", "`column: 1`"),
        (b"at,who\n1,a\n", ", column: when", "line 1 names no column `when`", "at, who"),
        (b"a,1\nb\n", ", column: 2", "line 2 has no column 2", "each line has a moment"),
        (b"1\n", ", column: 3", "line 1 has no column 3", "each line has a moment"),
        (b"1\n", ", speed: 2", "`speed` must be a factor such as 2x", "from 0.0001x"),
        (b"1\n", ", rate: 5/s", "unknown key `rate` in `arrivals`", "`file`, `column`, `speed`"),
    ];
    for (content, options, problem, remedy) in cases {
        let error = load(content, options).unwrap_err();
        assert!(error.contains(problem) && error.contains(remedy), "{error}");
    }
}

#[test]
fn a_file_that_is_not_there_is_a_mistake_at_its_name() {
    let source = "target: tcp://h:1\nuser: [connect]\nload:\n  - arrivals: {file: none.txt}\n";
    let error = Scenario::parse(source, "test.yaml").unwrap_err().render(false);
    insta::assert_snapshot!(error, @r#"
error: cannot use `none.txt`: No such file or directory (os error 2)
 --> test.yaml:4:22
  |
4 |   - arrivals: {file: none.txt}
  |                      ^^^^^^^^ the path counts from the folder of the scenario
"#);
}

proptest! {
    /// Reading any bytes ends with moments in order or with an error.
    #[test]
    fn no_bytes_break_the_reader(text in "[0-9.,\"\nTZ:#é+-]{0,80}", named: bool) {
        let column = if named { Column::Name("0") } else { Column::Only };
        if let Ok(moments) = parse_moments(text.as_bytes(), &column) {
            prop_assert!(moments.is_sorted() && !moments.is_empty());
        }
    }
}
