//! `throng import`, and files of other tools that `throng run` and `throng try` take.

use std::fs;

use crate::process::TestDir;

const PING: &str =
    "# Two clients.\ntcpkali -c 2 -T 1s -r 5 -m ping --latency-marker ok 10.0.0.1:1\n";

#[test]
fn an_import_writes_the_scenario_and_reports() {
    let dir = TestDir::new();
    dir.write("load.sh", PING);
    let shown = dir.throng(&["import", "load.sh"]).exits_with(0);
    assert!(
        shown.stdout.contains("# Two clients.\ntarget: tcp://10.0.0.1:1\n"),
        "{}",
        shown.stdout
    );
    assert!(shown.stderr.contains("7 constructs of tcpkali"), "{}", shown.stderr);

    let target = ["--target", "tcp://127.0.0.1:5555"];
    let written = dir.throng(&["import", "load.sh", "-o", "s.yaml", target[0], target[1]]);
    assert!(written.exits_with(0).stdout.contains("approximated"));
    let scenario = fs::read_to_string(dir.path("s.yaml")).unwrap();
    assert!(scenario.contains("target: tcp://127.0.0.1:5555\n"), "{scenario}");

    let again = dir.throng(&["import", "load.sh", "-o", "s.yaml"]).exits_with(2);
    assert!(again.stderr.contains("it exists; --force overwrites it"), "{}", again.stderr);
    dir.throng(&["import", "load.sh", "-o", "s.yaml", "--force"]).exits_with(0);
    let onto_itself = dir.throng(&["import", "load.sh", "-o", "load.sh", "--force"]);
    assert!(onto_itself.exits_with(2).stderr.contains("it is the file to import"));
}

#[test]
fn a_file_that_no_importer_knows_is_refused() {
    let dir = TestDir::new();
    dir.write("notes.txt", "hello\n");
    let refused = dir.throng(&["import", "notes.txt"]).exits_with(2);
    assert!(refused.stderr.contains("no importer recognises this file"), "{}", refused.stderr);
    assert!(refused.stderr.contains("tcpkali"), "{}", refused.stderr);
}

#[test]
fn a_run_takes_the_file_of_another_tool() {
    let dir = TestDir::new();
    let server = dir.serve(&["ok"]);
    dir.write("load.sh", PING);
    let target = format!("tcp://{}", server.addr);
    let run = dir.throng(&["run", "load.sh", "--target", &target, "--json", "run.json"]);
    assert!(run.stdout.contains("7 constructs of tcpkali"), "{}", run.stdout);
    let connect = dir.json("run.json")["connect"].clone();
    assert_eq!((&connect["ok"], &connect["failed"]), (&2.into(), &serde_json::json!({})));
    let tried = dir.throng(&["try", "load.sh", "--target", &target]).exits_with(0);
    assert!(tried.stdout.contains("ping"), "{}", tried.stdout);
}

#[test]
fn a_run_refuses_a_file_that_is_imported_in_part() {
    let dir = TestDir::new();
    dir.write("load.sh", "tcpkali --rcvbuf 1k -T 1s 127.0.0.1:1\n");
    let refused = dir.throng(&["run", "load.sh", "--dry-run"]).exits_with(2);
    assert!(
        refused.stderr.contains("line 1, --rcvbuf\n    set net.ipv4.tcp_rmem on this machine"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("throng import load.sh -o scenario.yaml"),
        "{}",
        refused.stderr
    );
    dir.throng(&["run", "load.sh", "--dry-run", "--force"]).exits_with(0);
}

/// The import opens no data file: it need not be there yet.
#[test]
fn an_import_says_which_data_files_the_scenario_reads() {
    let dir = TestDir::new();
    let config = "{target: 'http://127.0.0.1:1', phases: [{duration: 1, arrivalRate: 1}], \
                  payload: {path: absent.csv, fields: [name], skipHeader: true}}";
    dir.write(
        "load.yml",
        &format!("config: {config}\nscenarios:\n  - flow: [get: {{url: '/{{{{ name }}}}'}}]\n"),
    );
    let written = dir.throng(&["import", "load.yml", "-o", "s.yaml"]).exits_with(0);
    assert!(
        written.stdout.contains("data files: absent.csv; none was opened"),
        "{}",
        written.stdout
    );
    let refused = dir.throng(&["run", "s.yaml", "--dry-run"]).exits_with(2);
    assert!(refused.stderr.contains("cannot use `absent.csv`"), "{}", refused.stderr);
}
