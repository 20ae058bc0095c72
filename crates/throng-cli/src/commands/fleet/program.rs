//! Files of the throng program that are copied to other machines.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// A file of the throng program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// The file.
    pub(super) path: PathBuf,
    /// Its name on other machines, which no other content has.
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) elf: Elf,
}

/// What the header of an executable says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Elf {
    /// The processor, as `uname -m` names it.
    pub(super) machine: &'static str,
    /// Whether it runs without the libraries of its machine.
    pub(super) is_static: bool,
}

impl Program {
    /// Reads a file of the program.
    ///
    /// # Errors
    /// It cannot be read, or is no program for Linux. The text says which.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let of_file = |error: io::Error| format!("cannot read {}: {error}", path.display());
        let mut file = File::open(path).map_err(of_file)?;
        let (mut hash, mut bytes, mut elf) = (Sha256::new(), 0, None);
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let count = file.read(&mut buffer).map_err(of_file)?;
            if count == 0 {
                break;
            }
            if bytes == 0 {
                elf = Elf::parse(&buffer[..count]);
            }
            hash.update(&buffer[..count]);
            bytes += count as u64;
        }
        let elf = elf.ok_or_else(|| {
            format!("{} is no Linux program for x86_64 or aarch64", path.display())
        })?;
        let hash: String = hash.finalize().iter().take(6).map(|b| format!("{b:02x}")).collect();
        let name = format!("throng-{}-{hash}", env!("CARGO_PKG_VERSION"));
        Ok(Self { path: path.to_owned(), name, bytes, elf })
    }
}

impl Elf {
    /// Parses the beginning of a file; `None` if it is no 64-bit program of a processor that this
    /// knows.
    fn parse(head: &[u8]) -> Option<Self> {
        const INTERPRETER: u32 = 3;
        let two = |at: usize| Some(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?));
        let four = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
        let eight = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
        // 64 bits, the lowest byte first.
        if !head.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let machine = match two(18)? {
            62 => "x86_64",
            183 => "aarch64",
            _ => return None,
        };
        let (begin, size, count) = (usize::try_from(eight(32)?).ok()?, two(54)?, two(56)?);
        let kinds = (0..usize::from(count))
            .map(|index| four(begin.checked_add(index * usize::from(size))?));
        let kinds: Option<Vec<u32>> = kinds.collect();
        Some(Self { machine, is_static: !kinds?.contains(&INTERPRETER) })
    }
}

const BUFFER_BYTES: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the header of a program with segments of these kinds.
    fn elf(machine: u16, kinds: &[u32]) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(64 + 56 * kinds.len(), 0);
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32..40].copy_from_slice(&64_u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&(kinds.len() as u16).to_le_bytes());
        for (index, kind) in kinds.iter().enumerate() {
            bytes[64 + 56 * index..][..4].copy_from_slice(&kind.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn the_header_says_the_processor_and_whether_it_is_static() {
        let parse = |bytes: &[u8]| Elf::parse(bytes).map(|it| (it.machine, it.is_static));
        assert_eq!(parse(&elf(62, &[6, 3, 1])), Some(("x86_64", false)));
        assert_eq!(parse(&elf(183, &[6, 1])), Some(("aarch64", true)));
        assert_eq!(parse(&elf(40, &[1])), None, "a processor of 32 bits");
        assert_eq!(parse(b"#!/bin/sh\n"), None);
        let whole = elf(62, &[1, 3]);
        for end in 0..64 + 56 + 4 {
            assert_eq!(parse(&whole[..end]), None, "cut off at {end}");
        }
    }

    #[test]
    fn this_program_is_one() {
        let program = Program::read(Path::new("/proc/self/exe")).unwrap();
        assert_eq!(program.elf.machine, std::env::consts::ARCH);
        assert!(program.bytes > 0);
        let error = Program::read(Path::new("/proc/self/status")).unwrap_err();
        assert!(error.contains("is no Linux program"), "{error}");
    }
}
