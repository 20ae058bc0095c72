use std::fs;

use tempfile::TempDir;

use crate::scenario::Scenario;

/// Parses a scenario with this `data`, beside a file of this name and content.
fn parse(file: &str, content: &[u8], data: &str, text: &str) -> Result<Scenario, String> {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(file), content).unwrap();
    let path = folder.path().join("scenario.yaml").display().to_string();
    let source = format!(
        "target: tcp://h:1\ndata: {data}\nload: [ramp: {{to: 3, over: 1s}}]\n\
         user: [connect, send: \"{text}\"]\n"
    );
    Scenario::parse(&source, &path).map_err(|mistakes| mistakes.render(false))
}

#[test]
fn a_user_gets_the_cells_of_its_row() {
    let csv = b"\xef\xbb\xbfname, token\nann,t1\n\"bob, jr\",\"t\"\"2\"\n";
    let scenario = parse("u.csv", csv, "u.csv", "${row.name}").unwrap();
    let [table] = &scenario.tables[..] else { panic!("one table") };
    assert_eq!((table.rows(), table.columns()), (2, &["name".to_owned(), "token".to_owned()][..]));
    let cells =
        |user| [0, 1].map(|column| String::from_utf8_lossy(table.cell(user, column)).into_owned());
    assert_eq!(cells(0), ["ann", "t1"]);
    assert_eq!(cells(1), ["bob, jr", "t\"2"]);
    assert_eq!(cells(2), ["ann", "t1"], "after the last row the first follows");
    assert_eq!(table.bytes_max(0), 7);
}

#[test]
fn json_lines_have_the_columns_of_the_first() {
    let lines = "{\"id\": 7, \"tags\": [1, 2]}\n\n{\"tags\": null, \"id\": \"8\", \"more\": 1}\n";
    let data = "{people: {file: p.jsonl, order: random}}";
    let scenario = parse("p.jsonl", lines.as_bytes(), data, "${people.id}").unwrap();
    let table = &scenario.tables[0];
    let rows: Vec<_> = (0..20).map(|user| table.cell(user, 0).to_vec()).collect();
    assert!(rows.contains(&b"7".to_vec()) && rows.contains(&b"8".to_vec()), "at random");
    let again: Vec<_> = (0..20).map(|user| table.cell(user, 0).to_vec()).collect();
    assert_eq!(rows, again, "a user keeps its row");
}

#[test]
fn a_file_without_a_header_has_the_columns_of_the_scenario() {
    let data = "{people: {file: p.txt, columns: [name, token], delimiter: \";\"}}";
    let scenario = parse("p.txt", b"ann;t1\nbob, jr;t2\n", data, "${people.token}").unwrap();
    let table = &scenario.tables[0];
    assert_eq!(
        (table.rows(), table.cell(0, 1), table.cell(1, 0)),
        (2, &b"t1"[..], &b"bob, jr"[..])
    );
    let data = "{file: p.csv, delimiter: \"\\t\"}";
    let scenario = parse("p.csv", b"name\ttoken\nann\tt1\n", data, "${row.token}").unwrap();
    assert_eq!(scenario.tables[0].cell(0, 1), b"t1");
}

#[test]
fn a_file_has_bounded_rows_and_columns() {
    let header = |count: usize| {
        let names: Vec<_> = (0..count).map(|number| format!("c{number}")).collect();
        let row = vec!["1"; count].join(",");
        format!("{}\n{row}\n", names.join(","))
    };
    assert!(parse("a.csv", header(10_000).as_bytes(), "a.csv", "${row.c9999}").is_ok());
    let error = parse("a.csv", header(100_000).as_bytes(), "a.csv", "x").unwrap_err();
    assert!(error.contains("line 1 has 100000 columns"), "{error}");
    assert!(error.contains("at most 10000; leave out"), "{error}");
    let one_row = format!("a\n\"{}", "1\n".repeat(9 << 20));
    let error = parse("a.csv", one_row.as_bytes(), "a.csv", "x").unwrap_err();
    assert!(error.contains("it has a row of more than 16MiB"), "{error}");
    let error = parse("a.jsonl", &vec![b' '; 17 << 20], "a.jsonl", "x").unwrap_err();
    assert!(error.contains("it has a row of more than 16MiB"), "{error}");
    let error = parse("a.csv", b"", "{file: /dev/zero, columns: [a]}", "x").unwrap_err();
    assert!(error.contains("it is a device, and no file"), "{error}");
}

#[test]
fn a_file_that_cannot_be_used_names_its_line() {
    let rows: &[(&str, &[u8], &str, &str, &str)] = &[
        (
            "a.csv",
            b"a,b\n1,2\n3\n",
            "a.csv",
            "x",
            "line 3 has not as many values as the header: 1, not 2",
        ),
        ("a.csv", b"\n\na,b\n\n1,2\n\n\n3\n", "a.csv", "x", "line 8 has not as many values"),
        ("a.csv", b"a,b\r\n\r\n1,2\r\n\r\n3\r\n", "a.csv", "x", "line 5 has not as many values"),
        ("a.csv", b"a,b\n\"1\n\n\",2\n\n3", "a.csv", "x", "line 6 has not as many values"),
        ("a.csv", b"\n\na,a\n1,2\n", "a.csv", "x", "line 3 names the column `a` twice"),
        ("a.csv", b"a,b\n\n\n1,\xff\n", "a.csv", "x", "line 4 is not UTF-8"),
        ("a.csv", b"a,b\n1,\xff\n", "a.csv", "x", "line 2 is not UTF-8"),
        ("a.csv", b"a,a\n1,2\n", "a.csv", "x", "names the column `a` twice"),
        ("a.csv", b"a,\n1,2\n", "a.csv", "x", "column 2 of line 1 has no name"),
        ("a.csv", b"a,b\n", "a.csv", "x", "it has no rows"),
        ("a.csv", b"", "a.csv", "x", "it names no columns"),
        ("a.txt", b"a\n1\n", "a.txt", "x", "the end of its name"),
        ("a.csv", b"a\n1\n", "b.csv", "x", "No such file"),
        ("a.jsonl", b"{\"a\":1}\n{\"a\":\n", "a.jsonl", "x", "line 2, column 5: not JSON"),
        ("a.jsonl", b"[1]\n", "a.jsonl", "x", "line 1 is not an object"),
        ("a.jsonl", b"{\"a\":1}\n{\"b\":1}\n", "a.jsonl", "x", "line 2 has no `a`"),
        ("a.csv", b"a\n1\n", "a.csv", "${row.b}", "has no column `b`"),
        ("a.csv", b"token\n1\n", "a.csv", "${row.tokn.x}", "its columns are token"),
        ("a.csv", b"token\n1\n", "a.csv", "${rows.token}", "did you mean `row.token`?"),
        ("a.csv", b"a\n1\n2\n", "{file: a.csv, order: unique}", "x", "2 rows for up to 3 users"),
        ("a.csv", b"a\n1\n", "{file: a.csv, order: rndom}", "x", "did you mean `random`?"),
        ("a.csv", b"a\n1\n", "{user: a.csv}", "x", "`user` cannot name a data file"),
        ("a.csv", b"a\n1\n", "{a b: a.csv}", "x", "`a b` cannot name a data file"),
        ("a.csv", b"1,2\n3\n", "{file: a.csv, columns: [a, b]}", "x", "line 2 has not as many"),
        ("a.csv", b"1;2\n", "{file: a.csv, columns: [a, b]}", "x", "line 1 has 1 value, not 2"),
        ("a.csv", b"1\n", "{file: a.csv, columns: [a, a]}", "x", "it is there already"),
        ("a.csv", b"1\n", "{file: a.csv, columns: [a b]}", "x", "`a b` cannot name a column"),
        ("a.csv", b"1\n", "{file: a.csv, columns: []}", "x", "`columns` is empty"),
        ("a.csv", b"1\n", "{file: a.csv, columns: a}", "x", "`columns` must be a list of names"),
        ("a.csv", b"a\n", "{file: a.csv, delimiter: ab}", "x", "`ab` cannot be a delimiter"),
        ("a.csv", b"a\n", "{file: a.csv, delimiter: \"\\\"\"}", "x", "cannot be a delimiter"),
        ("a.jsonl", b"1\n", "{file: a.jsonl, columns: [a]}", "x", "are for CSV"),
        ("a.csv", b"a\n1\n", "[a.csv]", "x", "`data` must be the path of a file"),
    ];
    for (file, content, data, text, says) in rows {
        let error = parse(file, content, data, text).expect_err(says);
        assert!(error.contains(says), "{data}: {error}");
    }
}
