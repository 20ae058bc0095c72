//! The directories of a process's control groups, from `/proc/PID/cgroup` and
//! `/proc/PID/mountinfo`.

use crate::fact::{Fact, ParseFailure, Reason, Unknown};
use crate::proc_root::ProcRoot;

/// The interface of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupVersion {
    /// One hierarchy for each controller.
    V1,
    /// One hierarchy for all controllers.
    V2,
}

/// The directories of one controller for one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupDirectories {
    /// Version, which decides the names of the files.
    pub version: CgroupVersion,
    /// Directories below the root; the process's own group first, the outermost visible one last.
    pub levels: Vec<String>,
}

impl CgroupDirectories {
    /// Finds the directories. If both versions are mounted, a controller is in one of them.
    pub fn of(root: &ProcRoot, pid: u32, controller: &str) -> Fact<Self> {
        let read = || -> Result<Self, Unknown> {
            let path = format!("proc/{pid}/cgroup");
            let groups = root.read(&path, parse_membership).into_result()?;
            let mounts = root.read(&format!("proc/{pid}/mountinfo"), parse_mounts).into_result()?;
            find(&groups, &mounts, controller).ok_or_else(|| {
                Unknown::new(format!("cgroup controller {controller}"), Reason::Missing)
            })
        };
        read().into()
    }
}

/// Finds the directories of a controller.
fn find(
    groups: &[CgroupMembership],
    mounts: &[CgroupMount],
    controller: &str,
) -> Option<CgroupDirectories> {
    let has = |list: &[String]| list.iter().any(|name| name == controller);
    let v1 = groups.iter().find(|group| has(&group.controllers)).and_then(|group| {
        let mount =
            mounts.iter().find(|mount| mount.version == CgroupVersion::V1 && has(&mount.options));
        Some((CgroupVersion::V1, group, mount?))
    });
    let v2 = || {
        let group = groups.iter().find(|group| group.controllers.is_empty())?;
        let mount = mounts.iter().find(|mount| mount.version == CgroupVersion::V2)?;
        Some((CgroupVersion::V2, group, mount))
    };
    let (version, group, mount) = v1.or_else(v2)?;
    Some(CgroupDirectories { version, levels: levels(&group.path, mount) })
}

/// Returns the group's directory and all above it up to the mount point.
fn levels(group: &str, mount: &CgroupMount) -> Vec<String> {
    let point = mount.point.trim_matches('/');
    // A container's mount shows a part of the hierarchy. A path outside that part means that the
    // mount point itself is the group, as seen from inside.
    let inside = group.strip_prefix(mount.root.trim_end_matches('/')).unwrap_or("");
    let visible = !group.contains("/..") && (inside.is_empty() || inside.starts_with('/'));
    let mut rest = if visible { inside.trim_matches('/') } else { "" };
    let mut levels = Vec::new();
    while !rest.is_empty() {
        levels.push(format!("{point}/{rest}"));
        rest = rest.rsplit_once('/').map_or("", |(above, _)| above);
    }
    levels.push(point.to_owned());
    levels
}

/// A line of `/proc/PID/cgroup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupMembership {
    /// Controllers such as `cpu` and `memory`; empty for v2.
    pub controllers: Vec<String>,
    /// Path of the group, from the root of its hierarchy as this process sees it.
    pub path: String,
}

/// Parses `/proc/PID/cgroup`.
pub fn parse_membership(text: &str) -> Result<Vec<CgroupMembership>, ParseFailure> {
    let line = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let names = controllers.split(',').filter(|name| !name.is_empty());
        Some(CgroupMembership {
            controllers: names.map(str::to_owned).collect(),
            path: path.to_owned(),
        })
    };
    text.lines().map(|text| line(text).ok_or(ParseFailure("id:controllers:path"))).collect()
}

/// A mounted control-group file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupMount {
    /// Interface of the file system.
    pub version: CgroupVersion,
    /// Group that is visible at the mount point.
    pub root: String,
    /// Mount point.
    pub point: String,
    /// Mount options; for v1, the controllers are among them.
    pub options: Vec<String>,
}

/// Parses `/proc/PID/mountinfo`; other file systems are left out.
pub fn parse_mounts(text: &str) -> Result<Vec<CgroupMount>, ParseFailure> {
    let mut mounts = Vec::new();
    for line in text.lines() {
        // Optional fields end at the hyphen, so the fields after it have no fixed column.
        let (before, after) =
            line.split_once(" - ").ok_or(ParseFailure("a hyphen after the options"))?;
        let mut after = after.split(' ');
        let version = match after.next() {
            Some("cgroup") => CgroupVersion::V1,
            Some("cgroup2") => CgroupVersion::V2,
            _ => continue,
        };
        let mut before = before.split(' ').skip(3);
        let (Some(root), Some(point)) = (before.next(), before.next()) else {
            return Err(ParseFailure("a root and a mount point"));
        };
        let options = after.nth(1).unwrap_or_default();
        mounts.push(CgroupMount {
            version,
            root: unescape(root),
            point: unescape(point),
            options: options.split(',').map(str::to_owned).collect(),
        });
    }
    Ok(mounts)
}

/// Decodes a field: spaces, tabs, line ends and backslashes are written as three octal digits.
fn unescape(field: &str) -> String {
    let mut parts = field.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                plain.push(char::from(code));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        cgroup: &str,
        mountinfo: &str,
        controller: &str,
        expected: Option<(CgroupVersion, &[&str])>,
    ) {
        let groups = parse_membership(cgroup).unwrap();
        let mounts = parse_mounts(mountinfo).unwrap();
        let found = find(&groups, &mounts, controller);
        let found = found.as_ref().map(|found| {
            (found.version, found.levels.iter().map(String::as_str).collect::<Vec<_>>())
        });
        assert_eq!(found, expected.map(|(version, levels)| (version, levels.to_vec())));
    }

    const V2_MOUNT: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";

    #[test]
    fn v2_has_every_level_up_to_the_mount_point() {
        check(
            "0::/a.slice/b.scope\n",
            V2_MOUNT,
            "cpu",
            Some((
                CgroupVersion::V2,
                &["sys/fs/cgroup/a.slice/b.scope", "sys/fs/cgroup/a.slice", "sys/fs/cgroup"],
            )),
        );
        check("0::/\n", V2_MOUNT, "cpu", Some((CgroupVersion::V2, &["sys/fs/cgroup"])));
    }

    #[test]
    fn v1_controllers_may_share_a_hierarchy() {
        let mounts =
            "31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct";
        check(
            "4:cpu,cpuacct:/x\n0::/\n",
            mounts,
            "cpu",
            Some((
                CgroupVersion::V1,
                &["sys/fs/cgroup/cpu,cpuacct/x", "sys/fs/cgroup/cpu,cpuacct"],
            )),
        );
        check("4:cpu,cpuacct:/x\n0::/\n", mounts, "memory", None);
    }

    #[test]
    fn a_containers_mount_shows_a_part_of_the_hierarchy() {
        let mounts = "40 39 0:27 /docker/ab /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu";
        check(
            "4:cpu:/docker/ab\n",
            mounts,
            "cpu",
            Some((CgroupVersion::V1, &["sys/fs/cgroup/cpu"])),
        );
        check(
            "4:cpu:/docker/ab/c\n",
            mounts,
            "cpu",
            Some((CgroupVersion::V1, &["sys/fs/cgroup/cpu/c", "sys/fs/cgroup/cpu"])),
        );
        check(
            "4:cpu:/docker/abc\n",
            mounts,
            "cpu",
            Some((CgroupVersion::V1, &["sys/fs/cgroup/cpu"])),
        );
        check("0::/../other\n", V2_MOUNT, "cpu", Some((CgroupVersion::V2, &["sys/fs/cgroup"])));
    }

    #[test]
    fn a_mount_point_may_hold_a_space() {
        let mounts = parse_mounts(r"30 23 0:26 / /my\040cgroup rw - cgroup2 x rw").unwrap();
        assert_eq!(mounts[0].point, "/my cgroup");
        assert!(parse_mounts("30 23 0:26 / /x rw").is_err());
        assert!(parse_membership("no colon").is_err());
    }
}
