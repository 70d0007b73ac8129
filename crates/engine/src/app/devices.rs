//! The devices that a cell's processes may use, as rules that its cgroup enforces: files of the devices controller in
//! version 1, a BPF program in version 2. The modes of the nodes do not restrict uid 0, which owns them.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::spec::{Access, AppSpec, Device};

use crate::error::{Doing, Result, refused};

/// Devices that may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    kind: Kind,
    major: u32,
    /// `None`: every one.
    minor: Option<u32>,
    access: u32,
}

/// The numbers are the kernel's, as [`MAKE`] and those below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Block = 1,
    Char = 2,
}

const MAKE: u32 = 1;
const READ: u32 = 2;
const WRITE: u32 = 4;

const fn common(major: u32, minor: Option<u32>) -> Rule {
    Rule {
        kind: Kind::Char,
        major,
        minor,
        access: MAKE | READ | WRITE,
    }
}

/// Devices of every cell: null, zero, full, random, urandom, tty, ptmx and the pseudo terminals. Their nodes are in the
/// cell.
const COMMON: [Rule; 8] = [
    common(1, Some(3)),
    common(1, Some(5)),
    common(1, Some(7)),
    common(1, Some(8)),
    common(1, Some(9)),
    common(5, Some(0)),
    common(5, Some(2)),
    common(136, None),
];

/// The common devices and those that the cell is granted.
///
/// # Errors
/// Names the device that is missing.
pub(super) fn rules(spec: &AppSpec) -> Result<Vec<Rule>> {
    let granted = spec.devices.iter().map(granted);
    COMMON.into_iter().map(Ok).chain(granted).collect()
}

fn granted(device: &Device) -> Result<Rule> {
    let (kind, major, minor) = number(device)?;
    Ok(Rule {
        kind: if kind == "b" { Kind::Block } else { Kind::Char },
        major,
        minor: Some(minor),
        access: match device.access {
            Access::Read => READ,
            Access::Write => WRITE,
            Access::ReadWrite => READ | WRITE,
        },
    })
}

impl Rule {
    /// As the devices controller of version 1 reads it.
    fn text(self) -> String {
        let kind = match self.kind {
            Kind::Block => 'b',
            Kind::Char => 'c',
        };
        let minor = self.minor.map_or("*".to_owned(), |minor| minor.to_string());
        let access: String = [(READ, 'r'), (WRITE, 'w'), (MAKE, 'm')]
            .into_iter()
            .filter(|(bit, _)| self.access & bit != 0)
            .map(|(_, letter)| letter)
            .collect();
        format!("{kind} {}:{minor} {access}", self.major)
    }
}

/// Restricts a group of version 1 to these devices.
///
/// # Errors
/// Names the file that could not be written.
pub(super) fn hold_v1(group: &Path, rules: &[Rule]) -> Result<()> {
    let write = |name: &str, text: &str| {
        let file = group.join(name);
        fs::write(&file, text).doing(|| format!("{}: cannot write {text}", file.display()))
    };
    write("devices.deny", "a")?;
    (rules.iter()).try_for_each(|rule| write("devices.allow", &rule.text()))
}

/// Restricts a group of version 2 and all below it to these devices, by a program (BPF_CGROUP_DEVICE) that lives as long as the group.
///
/// # Errors
/// In the kernel's words; a kernel without CONFIG_CGROUP_BPF has no such programs.
pub(super) fn hold_v2(group: &Path, rules: &[Rule]) -> io::Result<()> {
    let group = File::open(group)?;
    let program = load(&program(rules))?;
    // Beside those of other groups above, as container runtimes attach theirs.
    const BPF_F_ALLOW_MULTI: u32 = 2;
    const BPF_CGROUP_DEVICE: u32 = 6;
    let mut attach = [0_u32; 8];
    attach[..4].copy_from_slice(&[
        group.as_raw_fd().cast_unsigned(),
        program.as_raw_fd().cast_unsigned(),
        BPF_CGROUP_DEVICE,
        BPF_F_ALLOW_MULTI,
    ]);
    const BPF_PROG_ATTACH: i32 = 8;
    // SAFETY: a structure of the given size, which begins with these fields and is zero behind them.
    unsafe {
        bpf(
            BPF_PROG_ATTACH,
            attach.as_ptr().cast(),
            size_of_val(&attach),
        )
    }
    .map(|_| ())
}

/// An instruction of the kernel's machine (struct bpf_insn).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Instruction {
    code: u8,
    /// Destination in the lower four bits, source in the upper.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// The program's registers; r0 is its answer and r1 its argument.
const KIND: u8 = 2;
const ACCESS: u8 = 3;
const MAJOR: u8 = 4;
const MINOR: u8 = 5;

const fn step(code: u32, to: u8, from: u8, offset: i16, immediate: u32) -> Instruction {
    Instruction {
        code: code as u8,
        registers: if cfg!(target_endian = "little") {
            from << 4 | to
        } else {
            to << 4 | from
        },
        offset,
        immediate: immediate.cast_signed(),
    }
}

/// The rules as a program: 1 where one of them allows all of the access that is asked for, else 0.
fn program(rules: &[Rule]) -> Vec<Instruction> {
    use libc::{BPF_ALU, BPF_AND, BPF_JMP, BPF_K, BPF_LDX, BPF_MEM, BPF_RSH, BPF_W, BPF_X};
    const ALU64: u32 = 7;
    const MOVE: u32 = 0xb0;
    const EXIT: u32 = 0x90;
    const IF_NOT: u32 = 0x50;
    // struct bpf_cgroup_dev_ctx: access above kind, major, minor.
    let load = |to, offset| step(BPF_LDX | BPF_MEM | BPF_W, to, 1, offset, 0);
    let answer = |value| {
        [
            step(ALU64 | MOVE | BPF_K, 0, 0, 0, value),
            step(BPF_JMP | EXIT, 0, 0, 0, 0),
        ]
    };
    let mut all = vec![
        load(KIND, 0),
        step(ALU64 | MOVE | BPF_X, ACCESS, KIND, 0, 0),
        step(BPF_ALU | BPF_RSH | BPF_K, ACCESS, 0, 0, 16),
        step(BPF_ALU | BPF_AND | BPF_K, KIND, 0, 0, 0xffff),
        load(MAJOR, 4),
        load(MINOR, 8),
    ];
    for rule in rules {
        let numbers = [
            (KIND, Some(rule.kind as u32)),
            (MAJOR, Some(rule.major)),
            (MINOR, rule.minor),
        ];
        let asked: Vec<(u8, u32)> = (numbers.into_iter())
            .filter_map(|(register, value)| Some((register, value?)))
            .collect();
        // Past the comparisons that follow, the three steps of the access, and the answer.
        const REST: i16 = 5;
        for (left, (register, value)) in (1..=asked.len() as i16).rev().zip(asked) {
            let past = left - 1 + REST;
            all.push(step(BPF_JMP | IF_NOT | BPF_K, register, 0, past, value));
        }
        all.extend([
            step(ALU64 | MOVE | BPF_X, 1, ACCESS, 0, 0),
            step(BPF_ALU | BPF_AND | BPF_K, 1, 0, 0, !rule.access),
            // Anything left is more than the rule allows: on with the next.
            step(BPF_JMP | IF_NOT | BPF_K, 1, 0, 2, 0),
        ]);
        all.extend(answer(1));
    }
    all.extend(answer(0));
    all
}

/// struct bpf_prog_load's fields of union bpf_attr that every kernel with such programs has.
#[repr(C)]
struct Load {
    kind: u32,
    instructions: u32,
    first: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    const BPF_PROG_TYPE_CGROUP_DEVICE: u32 = 15;
    let load = Load {
        kind: BPF_PROG_TYPE_CGROUP_DEVICE,
        instructions: program.len() as u32,
        first: program.as_ptr() as u64,
        license: c"MIT".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    const BPF_PROG_LOAD: i32 = 5;
    // SAFETY: a structure of the given size, whose pointers outlive the call; the descriptor is nobody else's.
    unsafe {
        bpf(BPF_PROG_LOAD, (&raw const load).cast(), size_of::<Load>())
            .map(|program| OwnedFd::from_raw_fd(program))
    }
}

/// # Safety
/// `attributes` points to so many bytes, as the command takes them.
unsafe fn bpf(command: i32, attributes: *const u8, size: usize) -> io::Result<i32> {
    // SAFETY: as the caller warrants.
    match unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size) } {
        answer if answer >= 0 => Ok(answer as i32),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Kind and number of a device, as OCI and the devices controller write them.
pub(crate) fn number(device: &Device) -> Result<(&'static str, u32, u32)> {
    let found = (device.path.metadata()).doing(|| format!("device {}", device.path.display()))?;
    let kind = match found.file_type() {
        kind if kind.is_char_device() => "c",
        kind if kind.is_block_device() => "b",
        _ => return Err(refused!("{} is not a device", device.path.display())),
    };
    Ok((kind, libc::major(found.rdev()), libc::minor(found.rdev())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn rules_are_written_as_version_1_reads_them() {
        let texts: Vec<String> = COMMON.into_iter().map(Rule::text).collect();
        assert_eq!(texts[0], "c 1:3 rwm");
        assert_eq!(texts[7], "c 136:* rwm");
        let disk = Rule {
            kind: Kind::Block,
            major: 8,
            minor: Some(0),
            access: READ,
        };
        assert_eq!(disk.text(), "b 8:0 r");
    }

    /// A group of version 2, removed with this.
    struct Group(PathBuf);

    impl Drop for Group {
        fn drop(&mut self) {
            let _ = fs::remove_dir(&self.0);
        }
    }

    /// Result of opening a device so in the group: 0 or the error number.
    fn answer(group: &Group, device: &std::ffi::CStr, flags: i32) -> i32 {
        let processes = fs::OpenOptions::new()
            .write(true)
            .open(group.0.join("cgroup.procs"))
            .unwrap();
        // SAFETY: the child makes system calls and ends without returning.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: open descriptors and a string that ends in NUL; ends the child at once.
            unsafe {
                if libc::write(processes.as_raw_fd(), c"0".as_ptr().cast(), 1) != 1 {
                    libc::_exit(255);
                }
                match libc::open(device.as_ptr(), flags) {
                    -1 => libc::_exit(*libc::__errno_location()),
                    _ => libc::_exit(0),
                }
            }
        }
        let mut status = 0;
        // SAFETY: the child was just made; `status` is valid.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        libc::WEXITSTATUS(status)
    }

    #[test]
    fn a_group_of_version_2_is_held_to_what_is_granted() {
        let Some(v2) = host::cgroup::detect().ok().and_then(|found| found.v2) else {
            return;
        };
        let group = Group(
            v2.point
                .join(format!("timecell-test-dev-{}", std::process::id())),
        );
        if fs::create_dir(&group.0).is_err() {
            return; // Not root.
        }
        assert_eq!(answer(&group, c"/dev/zero", libc::O_RDWR), 0);
        let [null, zero, ..] = COMMON;
        let zero = Rule {
            access: READ,
            ..zero
        };
        let random = Rule {
            access: WRITE,
            minor: Some(8),
            ..zero
        };
        hold_v2(&group.0, &[null, zero, random]).unwrap();
        assert_eq!(answer(&group, c"/dev/null", libc::O_RDWR), 0);
        assert_eq!(answer(&group, c"/dev/zero", libc::O_RDONLY), 0);
        assert_eq!(answer(&group, c"/dev/zero", libc::O_RDWR), libc::EPERM);
        assert_eq!(answer(&group, c"/dev/zero", libc::O_WRONLY), libc::EPERM);
        assert_eq!(answer(&group, c"/dev/random", libc::O_WRONLY), 0);
        assert_eq!(answer(&group, c"/dev/random", libc::O_RDONLY), libc::EPERM);
        assert_eq!(answer(&group, c"/dev/full", libc::O_RDONLY), libc::EPERM);
        // A terminal has another major number.
        assert_eq!(answer(&group, c"/dev/ptmx", libc::O_RDWR), libc::EPERM);
    }
}
