//! The memory of a control group, version 1 or 2.

use std::fs;
use std::path::{Path, PathBuf};

use crate::bench::Bench;

#[test]
fn the_memory_of_a_control_group_holds_what_the_preflight_says() {
    let Some(group) = Group::new("throng-preflight") else { return };
    group.limit(48 << 20);
    let enter = format!("echo $$ > {} && exec \"$@\"", group.path.join("cgroup.procs").display());
    let mut bench = Bench::behind(&["sh", "-c", &enter, "sh"]);
    bench.serve("127.0.0.1:0", &[]);
    let said = bench.preflight(1);
    let memory =
        said["checks"].as_array().unwrap().iter().find(|check| check["id"] == "cgroup_memory");
    let holds = memory.unwrap_or_else(|| panic!("{said}"))["holds"].as_u64().unwrap();
    assert!((500..6_000).contains(&holds), "{said}");
    // The free memory changes a little with every process that starts.
    let refused = bench.run(holds * 5 / 4, &[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("memory of the control group"), "{}", refused.stderr);
    let sure = holds * 3 / 4;
    let came = bench.run(sure, &[]);
    came.ran();
    assert_eq!(came.established(), sure, "{}", came.stderr);
}

/// A control group with a memory limit. It is removed when this is dropped.
struct Group {
    path: PathBuf,
    limit: &'static str,
}

impl Group {
    fn new(name: &str) -> Option<Self> {
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let (parent, limit) = if v1.is_dir() {
            (v1, "memory.limit_in_bytes")
        } else {
            (Path::new("/sys/fs/cgroup"), "memory.max")
        };
        let path = parent.join(format!("{name}-{}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) if path.join(limit).exists() => Some(Self { path, limit }),
            Ok(()) => {
                let _ = fs::remove_dir(&path);
                println!("skipped: control groups here do not limit memory");
                None
            }
            Err(error) => {
                println!("skipped: {}: {error}", path.display());
                None
            }
        }
    }

    fn limit(&self, bytes: u64) {
        fs::write(self.path.join(self.limit), bytes.to_string())
            .expect("a limit above the memory in use");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel releases the last process a moment after its end.
        for _ in 0..100 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        println!("{} is left behind", self.path.display());
    }
}
