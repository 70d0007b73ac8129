//! Whether a file is a kernel that QEMU starts on a processor.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use model::{Architecture, InputError};

use crate::GuestError;
use crate::elf;
use crate::given;

/// What is read of a file: a header of multiboot is in it, and the headers of an ELF file are.
const HEAD: usize = 8192;
/// What is read of one segment with notes, bytes.
const MOST_NOTES: usize = 64 << 10;
/// A note with the entry for PVH: its owner's length, type (XEN_ELFNOTE_PHYS32_ENTRY) and owner; between the first two, its own length.
const PVH: ([u8; 4], [u8; 8]) = ([4, 0, 0, 0], *b"\x12\0\0\0Xen\0");

/// Fails if the file at a path is none: only a regular file is opened.
///
/// # Errors
/// That, with a kernel that would be one.
pub(crate) fn check(path: &Path, architecture: Architecture) -> Result<(), GuestError> {
    check_file(&given::open(path, given::MOST)?, path, architecture)
}

/// Fails if a file is none; `name` is its name in messages.
///
/// # Errors
/// That, with a kernel that would be one.
pub(crate) fn check_file(
    file: &File,
    name: &Path,
    architecture: Architecture,
) -> Result<(), GuestError> {
    let mut head = vec![0; HEAD];
    let read = file
        .read_at(&mut head, 0)
        .map_err(GuestError::file(name, "read it"))?;
    head.truncate(read);
    let at = |place: usize, wanted: &[u8]| head.get(place..place + wanted.len()) == Some(wanted);
    let (is_kernel, fix) = match architecture {
        Architecture::X86_64 => (
            at(0x202, b"HdrS") || is_multiboot(&head) || has_pvh(file, &head),
            "name a bzImage, or an ELF file with an entry for PVH",
        ),
        // As it is, packed, packed with an unpacker of its own, or of U-Boot.
        Architecture::Aarch64 => (
            at(56, b"ARM\x64")
                || at(0, b"\x1f\x8b")
                || at(4, b"zimg")
                || at(0, b"\x27\x05\x19\x56")
                || is_arm_program(&head),
            "name an `Image`, packed or not, or an ELF file that needs no libraries",
        ),
    };
    match is_kernel {
        true => Ok(()),
        false => {
            let what = format!("it is no kernel for {}", architecture.name());
            Err(InputError::new(name.display().to_string(), what, fix).into())
        }
    }
}

/// Whether there is a header of the multiboot specification.
fn is_multiboot(head: &[u8]) -> bool {
    let words = head.chunks_exact(4);
    let words: Vec<u32> = words
        .map(|raw| {
            raw.iter()
                .rev()
                .fold(0, |all, &byte| all << 8 | u32::from(byte))
        })
        .collect();
    let sum = |three: &[u32]| {
        three
            .iter()
            .fold(0_u32, |sum, word| sum.wrapping_add(*word))
    };
    (words.windows(3)).any(|three| three[0] == 0x1bad_b002 && sum(three) == 0)
}

fn has_pvh(file: &File, head: &[u8]) -> bool {
    const NOTE: u32 = 4;
    let segments = elf::segments(head, &[3, 62]);
    let mut notes = segments.iter().filter(|segment| segment.kind == NOTE);
    notes.any(|note| {
        let mut bytes =
            vec![0; usize::try_from(note.bytes).map_or(MOST_NOTES, |n| n.min(MOST_NOTES))];
        let read = file.read_at(&mut bytes, note.offset).unwrap_or(0);
        let mut places = bytes[..read].windows(16);
        places.any(|at| at[..4] == PVH.0 && at[8..] == PVH.1)
    })
}

fn is_arm_program(head: &[u8]) -> bool {
    const INTERPRETER: u32 = 3;
    let segments = elf::segments(head, &[183]);
    !segments.is_empty() && segments.iter().all(|segment| segment.kind != INTERPRETER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// An ELF file for a processor with one segment, at byte 120 (32-bit: 84), and what is in it.
    fn elf(machine: u8, kind: u8, is_wide: bool, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; if is_wide { 120 } else { 84 }];
        bytes[..6].copy_from_slice(b"\x7fELF\x01\x01");
        bytes[18] = machine;
        let end = bytes.len() as u8;
        let places: [(usize, u8); 6] = match is_wide {
            true => [
                (4, 2),
                (32, 64),
                (54, 56),
                (56, 1),
                (64 + 8, end),
                (64 + 32, content.len() as u8),
            ],
            false => [
                (4, 1),
                (28, 52),
                (42, 32),
                (44, 1),
                (52 + 4, end),
                (52 + 16, content.len() as u8),
            ],
        };
        for (place, byte) in places {
            bytes[place] = byte;
        }
        bytes[if is_wide { 64 } else { 52 }] = kind;
        bytes.extend_from_slice(content);
        bytes
    }

    #[test]
    fn only_kernels_are_kernels() {
        use Architecture::{Aarch64, X86_64};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kernel");
        let with = |place: usize, magic: &[u8]| {
            let mut bytes = vec![0; 1024];
            bytes[place..place + magic.len()].copy_from_slice(magic);
            bytes
        };
        let pvh = b"\x04\0\0\0\x08\0\0\0\x12\0\0\0Xen\0\0\0\0\x01\0\0\0\0";
        let multiboot = b"\x02\xb0\xad\x1b\x03\0\0\0\xfb\x4f\x52\xe4";
        for (bytes, on) in [
            (with(0x202, b"HdrS"), Some(X86_64)),
            (with(40, multiboot), Some(X86_64)),
            (elf(62, 4, true, pvh), Some(X86_64)),
            (elf(3, 4, false, pvh), Some(X86_64)),
            // A program, whether it needs libraries or not; a kernel for another processor.
            (
                elf(62, 4, true, b"\x04\0\0\0\x10\0\0\0\x01\0\0\0GNU\0"),
                None,
            ),
            (elf(62, 3, true, pvh), None),
            (elf(8, 4, true, pvh), None),
            (with(56, b"ARM\x64"), Some(Aarch64)),
            (with(0, b"\x1f\x8b\x08"), Some(Aarch64)),
            (with(0, b"MZ\0\0zimg"), Some(Aarch64)),
            (elf(183, 1, true, b""), Some(Aarch64)),
            (elf(183, 3, true, b"/lib/ld.so"), None),
            (Vec::new(), None),
            (b"\x7fELF".to_vec(), None),
            (b"#!/bin/sh\n".to_vec(), None),
        ] {
            fs::write(&path, &bytes).unwrap();
            for architecture in [X86_64, Aarch64] {
                let said = check(&path, architecture);
                assert_eq!(
                    said.is_ok(),
                    on == Some(architecture),
                    "{bytes:?} on {architecture:?}"
                );
            }
        }
        let said = |path: &str| check(Path::new(path), X86_64).unwrap_err().to_string();
        for none in ["/etc", "/dev/zero"] {
            assert_eq!(
                said(none),
                format!("{none}: cannot read it: it is not a regular file")
            );
        }
        assert_eq!(
            said(path.to_str().unwrap()),
            format!(
                "{}: it is no kernel for x86_64; name a bzImage, or an ELF file with an entry for PVH",
                path.display()
            )
        );
    }
}
