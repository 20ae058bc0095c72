//! The rules of the house that a machine can check: which crate may depend on which, where `unsafe`
//! and the outside world may be touched, circles of modules, names of types and metrics, words,
//! width and the length of functions, that every file is part of the build, and that links in the
//! documents lead somewhere.

mod causes;
mod errors;
mod functions;
mod metrics;
mod modules;
mod names;
mod operations;
mod printing;
mod protocols;
mod text;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates of this workspace that each crate may depend on. `measure` and `base` are open to
/// all.
const EDGES: &[(&str, &[&str])] = &[
    ("throng-base", &[]),
    ("throng-proto", &[]),
    ("throng-pubsub", &["throng-proto"]),
    ("throng-tls", &["throng-proto"]),
    ("throng-measure", &[]),
    ("throng-report", &[]),
    ("throng-driver", &[]),
    ("throng-engine", &["throng-proto", "throng-pubsub", "throng-driver"]),
    ("throng-control", &["throng-driver"]),
    ("throng-machine", &["throng-driver"]),
    ("throng-doctor", &["throng-driver", "throng-report", "throng-machine"]),
    (
        "throng-server",
        &[
            "throng-engine",
            "throng-proto",
            "throng-tls",
            "throng-pubsub",
            "throng-driver",
            "throng-bus",
        ],
    ),
    (
        "throng-load",
        &["throng-engine", "throng-proto", "throng-driver", "throng-report", "throng-tls"],
    ),
    ("throng-bus", &[]),
    ("throng-import", &["throng-load", "throng-report"]),
    (
        "throng-run",
        &[
            "throng-load",
            "throng-machine",
            "throng-doctor",
            "throng-control",
            "throng-driver",
            "throng-report",
        ],
    ),
    (
        "throng-lab",
        &[
            "throng-load",
            "throng-machine",
            "throng-doctor",
            "throng-driver",
            "throng-report",
            "throng-run",
        ],
    ),
    (
        "throng-fleet",
        &[
            "throng-bus",
            "throng-run",
            "throng-load",
            "throng-machine",
            "throng-doctor",
            "throng-driver",
            "throng-report",
        ],
    ),
    ("throng-view", &["throng-run", "throng-control", "throng-report"]),
    (
        "throng-cli",
        &[
            "throng-view",
            "throng-fleet",
            "throng-bus",
            "throng-run",
            "throng-lab",
            "throng-server",
            "throng-tls",
            "throng-load",
            "throng-import",
            "throng-machine",
            "throng-doctor",
            "throng-control",
            "throng-driver",
            "throng-report",
        ],
    ),
    (
        "throng",
        &[
            "throng-run",
            "throng-server",
            "throng-tls",
            "throng-load",
            "throng-machine",
            "throng-doctor",
            "throng-engine",
            "throng-driver",
            "throng-pubsub",
            "throng-proto",
            "throng-report",
        ],
    ),
    ("throng-sim", &["throng-driver", "throng-engine", "throng-proto"]),
    ("xtask", &["throng-proto"]),
];

/// Crates that never touch the outside world.
const PURE: &[&str] = &[
    "throng-base",
    "throng-proto",
    "throng-tls",
    "throng-pubsub",
    "throng-measure",
    "throng-report",
    "throng-doctor",
];

/// Files of pure crates that read or write the one file that their caller names.
const NAMED_FILES: &[&str] =
    &["throng-base/src/input_file.rs", "throng-measure/src/runfile/writer.rs"];

#[test]
fn no_crate_knows_one_that_it_may_not_know() {
    let mut wrong = Vec::new();
    for (name, manifest) in manifests() {
        let allowed = EDGES.iter().find(|(known, _)| *known == name);
        let Some((_, allowed)) = allowed else {
            wrong.push(format!("{name} is not in the table of this test"));
            continue;
        };
        for dependency in dependencies(&manifest) {
            let open_to_all = ["throng-base", "throng-measure"].contains(&dependency.as_str());
            if dependency.starts_with("throng-")
                && !open_to_all
                && !allowed.contains(&dependency.as_str())
            {
                wrong.push(format!("{name} -> {dependency}"));
            }
            if dependency.starts_with("throng-") && name == "throng-base" {
                wrong.push(format!("{name} -> {dependency}"));
            }
            if dependency == "throng-sim" {
                wrong
                    .push(format!("{name} -> throng-sim: it is for tests (dev-dependencies) only"));
            }
        }
    }
    assert!(wrong.is_empty(), "edges that are not allowed:\n{}", wrong.join("\n"));
}

#[test]
fn server_and_load_never_see_each_other() {
    for (a, b) in [("throng-server", "throng-load"), ("throng-load", "throng-server")] {
        let manifest =
            fs::read_to_string(root().join("crates").join(a).join("Cargo.toml")).unwrap();
        assert!(!manifest.contains(b), "{a} names {b}, be it for tests only");
    }
}

/// A program that uses the library for a server builds nothing that draws, serves pages or speaks
/// to other machines.
#[test]
fn the_library_builds_neither_axum_nor_ratatui_nor_nats() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none"])
        .args(["--package", "throng", "--format", "{p}"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    assert!(tree.contains("throng-server"), "{tree}");
    for heavy in ["axum", "ratatui", "async-nats", "tokio", "clap", "prometheus-client"] {
        let is_there = tree.lines().any(|line| line.split(' ').next() == Some(heavy));
        assert!(!is_there, "throng depends on {heavy}: cargo tree -p throng -i {heavy}");
    }
}

#[test]
fn unsafe_lives_in_the_driver_alone() {
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let names_unsafe =
            code.clone().any(|line| line.contains("unsafe {") || line.contains("unsafe fn"));
        assert!(
            !names_unsafe || file.components().any(|part| part.as_os_str() == "throng-driver"),
            "{}",
            file.display()
        );
    }
    for (name, manifest) in manifests() {
        let inherits = manifest.contains("[lints]\nworkspace = true");
        assert!(
            inherits || name == "throng-driver",
            "{name} does not inherit the workspace's lints"
        );
    }
}

#[test]
fn pure_crates_open_no_socket_read_no_clock_and_start_no_thread() {
    let outside = [
        "std::net::Tcp",
        "std::net::Udp",
        "Instant::now",
        "SystemTime",
        "thread::spawn",
        "std::process",
        "std::env",
        "libc::",
        "std::fs",
        "ProcRoot",
    ];
    for file in sources() {
        let path = file.display().to_string();
        if !PURE.iter().any(|pure| path.contains(&format!("/{pure}/src/"))) {
            continue;
        }
        let may_name_files = NAMED_FILES.iter().any(|named| path.ends_with(named));
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let is_pure = outside
                .iter()
                .all(|word| !line.contains(word) || *word == "std::fs" && may_name_files);
            assert!(is_pure, "{path}: {line}");
        }
    }
}

#[test]
fn every_source_file_is_part_of_its_crate() {
    let mut dead = Vec::new();
    for file in sources() {
        let stem = file.file_stem().unwrap().to_str().unwrap();
        let parent = file.parent().unwrap();
        let in_src = file.components().any(|part| part.as_os_str() == "src");
        if !in_src || ["lib", "main"].contains(&stem) {
            continue;
        }
        let folder = parent.file_name().unwrap().to_str().unwrap();
        let owners = if folder == "src" {
            vec![parent.join("lib.rs"), parent.join("main.rs")]
        } else {
            vec![parent.with_extension("rs"), parent.join("mod.rs")]
        };
        let declared =
            owners.iter().filter_map(|owner| fs::read_to_string(owner).ok()).any(|text| {
                text.lines().any(|line| {
                    let words: Vec<&str> =
                        line.trim().trim_end_matches(';').split_whitespace().collect();
                    words.windows(2).any(|pair| pair == ["mod", stem])
                })
            });
        if !declared {
            dead.push(file.display().to_string());
        }
    }
    assert!(dead.is_empty(), "files that no `mod` names:\n{}", dead.join("\n"));
}

#[test]
fn links_in_the_documents_lead_somewhere() {
    let mut broken = Vec::new();
    for file in files(&root(), "md") {
        let text = fs::read_to_string(&file).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.contains(' ') {
                continue;
            }
            if !file.parent().unwrap().join(target).exists() {
                broken.push(format!("{}: {link}", file.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn manifests() -> Vec<(String, String)> {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.push(root().join("xtask"));
    let read = |folder: PathBuf| {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(folder.join("Cargo.toml")).unwrap())
    };
    folders.into_iter().map(read).collect()
}

/// The names in the `[dependencies]` table.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut table = "";
    let mut names = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            table = line;
        } else if table == "[dependencies]"
            && let Some(name) = line.split(['.', '=', ' ']).next().filter(|name| !name.is_empty())
        {
            names.insert(name.to_owned());
        }
    }
    names
}

pub(crate) fn sources() -> Vec<PathBuf> {
    let mut all = files(&root().join("crates"), "rs");
    all.extend(files(&root().join("xtask"), "rs"));
    // This file names what it looks for.
    all.retain(|file| !file.components().any(|part| part.as_os_str() == "house"));
    all
}

pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !name.starts_with('.') && !["target", "node_modules"].contains(&name) {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|have| have == extension) {
            found.push(path);
        }
    }
    found
}
