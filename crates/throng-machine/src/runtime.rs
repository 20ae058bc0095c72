//! The language runtime of a process whose program may have any name.
//!
//! Some runtimes name their threads. A Go program is its own executable, with a section for what it
//! was built from.

use std::io;
use std::os::unix::fs::FileExt;

use crate::proc_root::ProcRoot;

/// Returns the runtime with a garbage collector that a process's threads or its executable show:
/// `dotnet`, `go`, `java` or `node`. It reads some small files, and parts of the executable.
pub fn runtime(root: &ProcRoot, pid: u32) -> Option<&'static str> {
    of_threads(root, pid).or_else(|| is_go(root, pid).unwrap_or(false).then_some("go"))
}

/// Returns the runtime by the names of the oldest threads.
fn of_threads(root: &ProcRoot, pid: u32) -> Option<&'static str> {
    let names = root.names(&format!("proc/{pid}/task")).into_result().ok()?;
    let mut threads: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    threads.sort_unstable();
    threads.iter().take(THREADS_MAX).find_map(|thread| {
        let name = root.text(&format!("proc/{pid}/task/{thread}/comm"));
        let name = name.known()?;
        THREADS.iter().find(|(begin, _)| name.starts_with(begin)).map(|(_, runtime)| *runtime)
    })
}

/// How the names of a runtime's threads begin, and the runtime.
const THREADS: [(&str, &str); 4] =
    [(".NET ", "dotnet"), ("VM Thread", "java"), ("V8Worker", "node"), ("node-V8Worker", "node")];

/// The most threads whose names are read: a runtime starts its own ones first.
const THREADS_MAX: usize = 64;

/// Reports whether the executable of a process is a 64-bit ELF file with a section of Go's.
fn is_go(root: &ProcRoot, pid: u32) -> io::Result<bool> {
    let file = root.open(&format!("proc/{pid}/exe"))?;
    let mut header = [0; ELF_HEADER_BYTES];
    file.read_exact_at(&mut header, 0)?;
    if !header.starts_with(ELF_64) {
        return Ok(false);
    }
    let section_bytes = u64::from(u16_at(&header, 0x3a));
    let names_index = u64::from(u16_at(&header, 0x3e));
    let mut names = [0; SECTION_HEADER_BYTES];
    file.read_exact_at(
        &mut names,
        u64_at(&header, 0x28).wrapping_add(section_bytes * names_index),
    )?;
    let length = u64_at(&names, 0x20).min(SECTION_NAMES_BYTES_MAX);
    let mut text = vec![0; length as usize];
    file.read_exact_at(&mut text, u64_at(&names, 0x18))?;
    Ok(text.split(|byte| *byte == 0).any(|name| name == GO_SECTION))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(std::array::from_fn(|place| bytes[at + place]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|place| bytes[at + place]))
}

/// Where a Go program keeps the versions that it was built from; it stays when symbols are removed.
const GO_SECTION: &[u8] = b".go.buildinfo";

/// The beginning of an ELF file of 64 bits.
const ELF_64: &[u8] = b"\x7fELF\x02";

/// The sizes of ELF's header and of a section's header, in a file of 64 bits.
const ELF_HEADER_BYTES: usize = 64;
const SECTION_HEADER_BYTES: usize = 64;

/// The most bytes of sections' names that are read: a program has some dozens of sections.
const SECTION_NAMES_BYTES_MAX: u64 = 65_536;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns the runtime of a process with threads of these names and this executable.
    fn of(threads: &[&str], executable: &[u8]) -> Option<&'static str> {
        let dir = tempfile::tempdir().unwrap();
        for (n, name) in threads.iter().enumerate() {
            let thread = dir.path().join(format!("proc/7/task/{}", 7 + n));
            fs::create_dir_all(&thread).unwrap();
            fs::write(thread.join("comm"), format!("{name}\n")).unwrap();
        }
        fs::create_dir_all(dir.path().join("proc/7")).unwrap();
        fs::write(dir.path().join("proc/7/exe"), executable).unwrap();
        runtime(&ProcRoot::new(dir.path()), 7)
    }

    /// Returns an ELF file with sections of these names.
    fn elf(names: &str) -> Vec<u8> {
        let mut file = ELF_64.to_vec();
        file.resize(ELF_HEADER_BYTES, 0);
        let sections_at = ELF_HEADER_BYTES + names.len();
        file[0x28..0x30].copy_from_slice(&(sections_at as u64).to_ne_bytes());
        file[0x3a..0x3c].copy_from_slice(&(SECTION_HEADER_BYTES as u16).to_ne_bytes());
        file[0x3e..0x40].copy_from_slice(&1_u16.to_ne_bytes());
        file.extend_from_slice(names.as_bytes());
        file.resize(sections_at + 2 * SECTION_HEADER_BYTES, 0);
        let section = sections_at + SECTION_HEADER_BYTES;
        file[section + 0x18..section + 0x20]
            .copy_from_slice(&(ELF_HEADER_BYTES as u64).to_ne_bytes());
        file[section + 0x20..section + 0x28].copy_from_slice(&(names.len() as u64).to_ne_bytes());
        file
    }

    #[test]
    fn a_runtime_is_known_by_its_threads() {
        assert_eq!(of(&["shop", ".NET SigHandler", ".NET Finalizer"], b""), Some("dotnet"));
        assert_eq!(of(&["shop", "GC Thread#0", "VM Thread"], b""), Some("java"));
        assert_eq!(of(&["shop", "V8Worker"], b""), Some("node"));
        assert_eq!(of(&["shop", "worker"], b""), None);
    }

    #[test]
    fn a_go_program_is_known_by_a_section_of_its_executable() {
        assert_eq!(of(&["shop"], &elf("\0.text\0.go.buildinfo\0.data\0")), Some("go"));
        assert_eq!(of(&["shop"], &elf("\0.text\0.data\0")), None);
        // A file that is cut short, and one that is none.
        assert_eq!(of(&["shop"], &elf("\0.go.buildinfo\0")[..90]), None);
        assert_eq!(of(&["shop"], b"#!/bin/sh"), None);
    }
}
