//! Attacks by another user of the machine on the files of throng. Some of them need root, to act as
//! that user, too.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::process::TestDir;

const NOBODY: u32 = 65_534;

/// Creates a file that only its owner may change.
fn victim(place: &TestDir) -> std::path::PathBuf {
    let path = place.path("victim");
    fs::write(&path, "precious").unwrap();
    path
}

fn is_unharmed(path: &Path) {
    assert_eq!(fs::read_to_string(path).unwrap(), "precious");
}

/// Starts an attacker: another user who links to `victim` wherever a calibration writes, until the
/// file `stop` exists.
fn attack(folder: &Path, victim: &Path) -> Option<Child> {
    let script = format!(
        "for round in $(seq 3000); do
             [ -e stop ] && exit
             for d in throng-*calibration-*; do
                 [ -d \"$d\" ] || continue
                 echo \"saw $d\"
                 ls \"$d\" >/dev/null 2>&1 && echo \"entered $d\"
                 ln -s {} \"$d/peer.server.log\" 2>/dev/null && echo \"linked in $d\"
             done
             sleep 0.01
         done",
        victim.display()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(folder).uid(NOBODY).gid(NOBODY);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().ok()
}

#[test]
fn a_calibration_writes_nothing_where_another_user_has_been() {
    let place = TestDir::new();
    let (victim, folder) = (victim(&place), tempfile::tempdir().unwrap());
    fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
    let Some(attacker) = attack(folder.path(), &victim) else {
        return println!("skipped: only root can be another user");
    };
    let server = place.serve(&["ok"]);
    let load = "[{arrivals: {rate: 20/s, for: 300ms}}]";
    place.write("few.yaml", &server.scenario(load, "[connect, close]"));
    // The process id of the shell is that of the run, so the test knows it in advance; a real
    // attacker would try thousands.
    let throng = env!("CARGO_BIN_EXE_throng");
    let line = format!("echo $$; read go; exec {throng} run few.yaml --calibrate 1s");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(place.path("")).env("TMPDIR", folder.path());
    let mut run = place.spawn(shell);
    let pid = run.line();
    let predicted = folder.path().join(format!("throng-calibration-{}-0", pid.trim()));
    fs::create_dir(&predicted).unwrap();
    fs::set_permissions(&predicted, Permissions::from_mode(0o777)).unwrap();
    symlink(&victim, predicted.join("peer.server.log")).unwrap();
    chown(&predicted, Some(NOBODY), Some(NOBODY)).unwrap();
    run.write_line("go");
    let finished = run.finish();
    assert!(matches!(finished.code, Some(0 | 3)), "{finished:#?}");
    let mut lines = finished.stdout.lines();
    let has_run = lines.any(|line| {
        line.starts_with("this machine: ") || line.contains("nothing could be measured")
    });
    assert!(has_run, "the calibration ran: {finished:#?}");
    fs::write(folder.path().join("stop"), "").unwrap();
    let said = attacker.wait_with_output().unwrap().stdout;
    let said = String::from_utf8(said).unwrap();
    is_unharmed(&victim);
    let predicted = predicted.file_name().unwrap().to_str().unwrap();
    let of_ours = |line: &&str| !line.ends_with(predicted);
    assert!(said.lines().filter(of_ours).any(|line| line.starts_with("saw")), "{said}");
    let won: Vec<_> =
        said.lines().filter(of_ours).filter(|line| !line.starts_with("saw")).collect();
    assert!(won.is_empty(), "{won:?}");
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the predicted folder, and `stop`: {left:?}");
}

#[test]
fn a_lab_keeps_its_files_only_in_a_folder_without_other_writers() {
    let place = TestDir::new();
    let keep = |folder: &str| {
        let args = ["lab", "stressgrid-100k", "--users", "10", "--seconds", "1", "--keep", folder];
        place.throng(&args).exits_with(2)
    };
    fs::create_dir(place.path("results")).unwrap();
    symlink("results", place.path("link")).unwrap();
    keep("link").stderr_contains(&["link", "it is a link"]);
    fs::set_permissions(place.path("results"), Permissions::from_mode(0o777)).unwrap();
    keep("results").stderr_contains(&["results", "other users may write to it: chmod go-w"]);
    fs::set_permissions(place.path("results"), Permissions::from_mode(0o755)).unwrap();
    if chown(place.path("results"), Some(NOBODY), None).is_ok() {
        keep("results").stderr_contains(&["results", "it belongs to user 65534"]);
    } else {
        println!("skipped in part: only root gives a folder to another user");
    }
    assert_eq!(fs::read_dir(place.path("results")).unwrap().count(), 0);
}

#[test]
fn a_run_is_recorded_neither_through_a_link_nor_over_another_file() {
    let place = TestDir::new();
    let victim = victim(&place);
    let server = place.serve(&["ok"]);
    let load = "[{arrivals: {rate: 20/s, for: 100ms}}]";
    place.write("few.yaml", &server.scenario(load, "[connect, close]"));
    symlink("victim", place.path("run.jsonl")).unwrap();
    let record = |args: &[&str]| place.throng(&[&["run", "few.yaml"], args].concat()).exits_with(2);
    record(&[]).stderr_contains(&["run.jsonl", "it is a link", "was not started"]);
    record(&["--record", "victim"]).stderr_contains(&[
        "victim",
        "does not hold a run",
        "another name",
    ]);
    is_unharmed(&victim);
}

#[test]
fn a_control_socket_never_replaces_a_file_behind_a_link() {
    let place = TestDir::new();
    let victim = victim(&place);
    symlink("victim", place.path("control.sock")).unwrap();
    let args = ["serve", "ok", "--listen", "127.0.0.1:0", "--control", "control.sock"];
    place.throng(&args).exits_with(2).stderr_contains(&["control.sock", "not a socket"]);
    is_unharmed(&victim);
    assert!(place.path("control.sock").is_symlink());
}

#[test]
fn control_sockets_in_a_folder_that_others_may_enter_are_not_used() {
    let place = TestDir::new();
    let server = place.serve(&["ok"]);
    place.throng(&["ctl", "count"]).exits_with(0);
    fs::set_permissions(place.path("throng"), Permissions::from_mode(0o777)).unwrap();
    let refused = ["other users may enter it", "--control PATH"];
    place.throng(&["ctl", "list"]).exits_with(2).stderr_contains(&refused);
    place.throng(&["ctl", "count"]).exits_with(2).stderr_contains(&refused);
    let control = server.hello["control"].as_str().unwrap();
    place.throng(&["ctl", "count", "--control", control]).exits_with(0);
}
