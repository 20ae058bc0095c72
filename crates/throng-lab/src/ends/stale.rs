//! Folders of labs that were killed and could not remove them.

use std::fs;
use std::path::Path;

use crate::lab::labs;

/// Removes those folders of labs in `folder` whose process is gone. What cannot be removed, because it is
/// another user's, stays.
pub(super) fn remove(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(process_of);
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && process.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The process that made a folder of this name, `throng-connscale-4711-0`; none if no lab did.
fn process_of(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("throng-")?;
    let numbers = labs().iter().find_map(|lab| rest.strip_prefix(lab.name)?.strip_prefix('-'))?;
    let (pid, stage) = numbers.split_once('-')?;
    stage.parse::<u32>().ok()?;
    pid.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lab_s_folder_names_a_process() {
        assert_eq!(process_of("throng-connscale-4711-0"), Some(4711));
        assert_eq!(process_of("throng-stressgrid-100k-12-3"), Some(12));
        for name in ["throng-connscale", "throng-connscale-x-0", "throng-4711-0", "connscale-1-0"] {
            assert_eq!(process_of(name), None, "{name}");
        }
    }

    #[test]
    fn folders_of_the_dead_go_and_those_of_the_living_stay() {
        let folder = std::env::temp_dir().join(format!("throng-stale-{}", std::process::id()));
        let path = |pid: u32| folder.join(format!("throng-connscale-{pid}-0"));
        // Above the largest process id that Linux gives.
        let (dead, alive) = (path(1 << 23), path(std::process::id()));
        for folder in [&dead, &alive] {
            fs::create_dir_all(folder.join("inside")).unwrap();
        }
        remove(&folder);
        assert!(!dead.exists() && alive.exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
