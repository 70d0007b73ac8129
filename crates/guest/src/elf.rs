//! The programs that guests run: for which processor they are, whether they need libraries, and what of them is loaded.

use std::path::Path;

use model::Architecture;

use crate::{GuestError, given};

/// A static program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The processor that it is for.
    pub architecture: Architecture,
    /// What of the file is loaded: neither its symbols nor what only a debugger reads.
    pub loaded: Vec<u8>,
}

/// Where the program headers are: offset of the first, bytes of each, their number.
fn headers(bytes: &[u8]) -> Option<(usize, usize, usize)> {
    let first = usize::try_from(u64_at(bytes, 32)?).ok()?;
    Some((first, u16_at(bytes, 54)?.into(), u16_at(bytes, 56)?.into()))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let raw = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(raw.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let raw = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(raw.try_into().ok()?))
}

/// One segment of an ELF file: its type, and where its content is.
pub(crate) struct Segment {
    pub(crate) kind: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// The segments of an ELF file for one of these processors, of 32 or 64 bits, as far as their headers are in its beginning.
pub(crate) fn segments(head: &[u8], machines: &[u16]) -> Vec<Segment> {
    let u32_at = |at: usize| {
        let raw = head.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(raw.try_into().ok()?))
    };
    let narrow = |at: usize| u32_at(at).map(u64::from);
    let found = || {
        let is_wide = match head.get(..6)? {
            b"\x7fELF\x02\x01" => true,
            b"\x7fELF\x01\x01" => false,
            _ => return None,
        };
        machines.contains(&u16_at(head, 18)?).then_some(())?;
        let (first, size, count) = match is_wide {
            true => headers(head)?,
            false => {
                let (size, count) = (u16_at(head, 42)?, u16_at(head, 44)?);
                (u32_at(28)? as usize, size.into(), count.into())
            }
        };
        let segment = |number: usize| {
            let at = first.checked_add(size * number)?;
            let (offset, bytes) = match is_wide {
                true => (
                    u64_at(head, at.checked_add(8)?)?,
                    u64_at(head, at.checked_add(32)?)?,
                ),
                false => (narrow(at.checked_add(4)?)?, narrow(at.checked_add(16)?)?),
            };
            Some(Segment {
                kind: u32_at(at)?,
                offset,
                bytes,
            })
        };
        Some((0..count).map_while(segment).collect())
    };
    found().unwrap_or_default()
}

/// Finds a static program of one of the two processors in the bytes of a file; the fault as a clause.
fn parse(mut bytes: Vec<u8>) -> Result<Program, &'static str> {
    const DAMAGED: &str = "it is cut short";
    if bytes.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err("it is no 64-bit program of Linux");
    }
    let architecture = match u16_at(&bytes, 18) {
        Some(62) => Architecture::X86_64,
        Some(183) => Architecture::Aarch64,
        _ => return Err("it is for another processor than x86_64 or aarch64"),
    };
    let (first, size, count) = headers(&bytes).ok_or(DAMAGED)?;
    let mut end = (size.checked_mul(count))
        .and_then(|all| all.checked_add(first))
        .ok_or(DAMAGED)?;
    for number in 0..count {
        let at = first + size * number;
        match u16_at(&bytes, at).ok_or(DAMAGED)? {
            3 => return Err("it needs libraries, which are not there; build a static one"),
            1 => {
                let part = (u64_at(&bytes, at + 8)).zip(u64_at(&bytes, at + 32));
                let part = part.and_then(|(offset, length)| offset.checked_add(length));
                let part = part.and_then(|end| usize::try_from(end).ok());
                end = end.max(part.ok_or(DAMAGED)?);
            }
            _ => {}
        }
    }
    if end > bytes.len() || end < 64 {
        return Err(DAMAGED);
    }
    bytes.truncate(end);
    // Of sections, the first and their number: they are gone.
    bytes[40..48].fill(0);
    bytes[58..64].fill(0);
    Ok(Program {
        architecture,
        loaded: bytes,
    })
}

/// The modules that a kernel module needs: `depends=` in its section `.modinfo`. None in a file that is no module.
pub(crate) fn module_needs(bytes: &[u8]) -> Vec<String> {
    let needs = || {
        let section = |number: usize| {
            let at = usize::try_from(u64_at(bytes, 40)?).ok()?;
            let at = number.checked_mul(64)?.checked_add(at)?;
            let begin = usize::try_from(u64_at(bytes, at.checked_add(24)?)?).ok()?;
            let size = usize::try_from(u64_at(bytes, at.checked_add(32)?)?).ok()?;
            let name = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
            let content = bytes.get(begin..begin.checked_add(size)?);
            Some((u32::from_le_bytes(name) as usize, content))
        };
        let names = section(u16_at(bytes, 62)?.into())?.1?;
        let is_modinfo = |at: usize| {
            names
                .get(at..)
                .is_some_and(|rest| rest.starts_with(b".modinfo\0"))
        };
        let sections = 0..u16_at(bytes, 60)?.into();
        let modinfo = sections
            .filter_map(section)
            .find(|(name, _)| is_modinfo(*name));
        let lines = modinfo?.1?.split(|byte| *byte == 0);
        let depends = lines
            .filter_map(|line| line.strip_prefix(b"depends="))
            .next()?;
        let depends = std::str::from_utf8(depends).ok()?.split(',');
        Some(
            depends
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    };
    needs().unwrap_or_default()
}

/// Reads a static program.
///
/// # Errors
/// If it cannot be read, is for no processor of ours, or needs libraries.
pub fn program(path: &Path) -> Result<Program, GuestError> {
    let bytes = given::read(path, given::MOST)?;
    parse(bytes).map_err(|what| model::InputError::new(path.display().to_string(), what, "").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    use proptest::collection::vec;
    use proptest::prelude::*;

    /// A program with one part of 200 bytes that is loaded, and symbols behind it.
    fn elf(machine: u16, kind: u8) -> Vec<u8> {
        let mut bytes = vec![0; 300];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32] = 64;
        bytes[40] = 250;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[60] = 3;
        bytes[64] = kind;
        bytes[64 + 32] = 200;
        bytes
    }

    #[test]
    fn symbols_stay_behind() {
        let program = parse(elf(183, 1)).unwrap();
        assert_eq!(program.architecture, Architecture::Aarch64);
        assert_eq!(program.loaded.len(), 200);
        assert_eq!((program.loaded[40], program.loaded[60]), (0, 0));
        assert_eq!(
            parse(elf(62, 1)).unwrap().architecture,
            Architecture::X86_64
        );
    }

    #[test]
    fn what_a_guest_cannot_run_is_refused() {
        assert!(parse(elf(62, 3)).unwrap_err().contains("needs libraries"));
        assert!(parse(elf(40, 1)).unwrap_err().contains("another processor"));
        assert!(
            parse(elf(62, 1)[..150].to_vec())
                .unwrap_err()
                .contains("cut short")
        );
        assert!(
            parse(b"#!/bin/sh".to_vec())
                .unwrap_err()
                .contains("no 64-bit program")
        );
    }

    #[test]
    fn this_very_program_runs_stripped() {
        let own = std::env::current_exe().unwrap();
        let Ok(program) = program(&own) else { return };
        assert_eq!(Some(program.architecture), Architecture::own());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stripped");
        fs::write(&path, &program.loaded).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let list = || std::process::Command::new(&path).arg("--list").output();
        // Programs that other tests start have the file open for an instant.
        let listed = loop {
            match list() {
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {}
                listed => break listed.unwrap(),
            }
        };
        assert!(
            listed.status.success()
                && program.loaded.len() < fs::metadata(&own).unwrap().len() as usize
        );
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic(more in vec(any::<u8>(), 0..200), machine in 0_usize..2) {
            let mut bytes = b"\x7fELF\x02\x01".to_vec();
            bytes.extend(more);
            if let Some(place) = bytes.get_mut(18..20) {
                place.copy_from_slice(&[62_u16, 183][machine].to_le_bytes());
            }
            let _ = segments(&bytes, &[62, 183]);
            let _ = parse(bytes);
        }
    }
}
