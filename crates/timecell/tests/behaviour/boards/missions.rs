//! Cells of missions that are virtual machines: held, back after each failure, and refused where they could not be started.

use std::path::Path;

use host::sched::{Class, get_class};

use super::MACHINE;
use crate::control::{SLEEPS, ask};
use crate::missions::{self, Up, mission, nothing_is_left, pid_of, shell};
use crate::support::{eventually, say};

/// A board of the user's that boots the unpacked kernel and speaks over a virtual line, whose drivers are modules.
const VIRTUAL: &str = r#"
schema = 1
title = "PC with a virtual line"
architecture = "x86_64"
cpus = 1
memory = "256MiB"
console = "ttyS0"
channel = "hvc0"
[kernel]
package = "linux-image-rt-amd64"
unpacked = true
modules = ["virtio_pci", "virtio_console"]
arguments = ["no_timer_check", "noirqdebug", "tsc=reliable"]
[qemu]
machine = "q35"
cpu = "max"
arguments = ["-device", "virtio-serial-pci", "-device", "virtconsole,chardev=channel"]
"#;

/// A virtual machine whose virtual cpu has a budget, beside another cell.
#[cfg(target_arch = "x86_64")]
// It keeps both cpus busy.
#[case(
    Alone,
    Root,
    RealTime,
    Deadline,
    DeadlineBudget,
    Program("busybox"),
    Program("qemu-system-x86_64"),
    Program("apt-get")
)]
fn a_machine_of_a_mission_is_held_and_comes_back(dir: &Path) {
    let busybox = dir.join("busybox");
    crate::support::copy_program(missions::busybox(), &busybox);
    std::fs::write(dir.join("virtual.toml"), VIRTUAL).unwrap();
    // It panics by itself where nothing else ends it before.
    let script = "echo the guest runs; sleep 25; echo c > /proc/sysrq-trigger";
    let cells = format!(
        "enforcer = \"deadline\"\n{}[[cell]]\nname = \"guest\"\nengine = \"qemu\"\nimage = {{ binary = \"busybox\" }}\n\
        args = [\"sh\", \"-c\", \"{script}\"]\n\
        machine = {{ board = \"./virtual.toml\", helpers = {{ class = \"batch\" }} }}\n\
        restart = {{ policy = \"never\", limit = 9 }}\n[[cell.health]]\nwhen = \"exit\"\ndo = \"restart\"\n\
        [[cell.task]]\nname = \"cpu\"\nwcet = \"60ms\"\nperiod = \"100ms\"\n",
        shell(
            "beside",
            SLEEPS,
            "reservation = { budget = \"2ms\", period = \"100ms\" }\n"
        )
    );
    mission(dir, &cells);
    let mut up = Up::start(dir);
    up.until("beside: runs");
    let first = pid_of(&up.until("guest: runs"));
    let held = up.until("guest: cpu is thread ");
    assert!(held.contains("(by name), DEADLINE "), "{held}");
    // Killed from outside.
    let qemu = || {
        let is_qemu = |pid: &i32| {
            // There may be others on this machine.
            let words = host::file::text(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.contains("qemu-system") && words.contains("virtual.toml")
        };
        host::process::all().into_iter().find(is_qemu)
    };
    let logged = |text: &str, times: usize| {
        eventually(&format!("the cell says `{text}` {times} times"), || {
            ask(dir, &["logs", "guest"]).out.matches(text).count() == times
        });
    };
    logged("the guest runs", 1);
    let others: Vec<_> = host::process::threads(qemu().unwrap())
        .into_iter()
        .filter(|thread| matches!(get_class(*thread), Ok(Class::Deadline { .. })))
        .collect();
    assert_eq!(
        others.len(),
        1,
        "the thread of its virtual cpu, and no other"
    );
    let helpers = || {
        let said = ask(dir, &["ps", "--json"]).out;
        let status: serde_json::Value = serde_json::from_str(&said).unwrap();
        let all = status["cells"][1]["helpers"].as_array().cloned();
        let all = all.unwrap_or_default();
        assert!(!all.is_empty(), "{said}");
        for helper in &all {
            assert_eq!(helper["class"], "BATCH", "{helper}");
        }
    };
    helpers();
    // Killed, hung, and then in a panic of its kernel.
    let (mut last, mut lives) = (first, 1);
    for (signal, said) in [
        (libc::SIGKILL, "QEMU has ended (signal: 9"),
        (libc::SIGSTOP, "the guest has said nothing for 20 s"),
        (0, "the guest's kernel has panicked: "),
    ] {
        // SAFETY: plain system call.
        assert_eq!(unsafe { libc::kill(qemu().unwrap(), signal) }, 0);
        up.until("guest: exited with status 1");
        let next = pid_of(&up.until("guest: runs"));
        assert_ne!(next, last);
        last = next;
        logged(said, 1);
        lives += 1;
        logged("the guest runs", lives);
        helpers();
    }
    up.end();
    nothing_is_left(dir);
    assert_eq!(qemu(), None);
}

#[cfg(target_arch = "x86_64")]
#[case(Root, Program("qemu-system-x86_64"), Program("apt-get"))]
fn machines_that_could_not_be_started_are_refused(dir: &Path) {
    crate::support::copy_program(env!("CARGO_BIN_EXE_timecell"), &dir.join("app"));
    let text = MACHINE.replace("[machine]", "[scheduling]\nclass = \"other\"\n[machine]");
    std::fs::write(dir.join("machine.toml"), text).unwrap();
    let admit = |machine: &str, rights: &str| {
        let cell = format!(
            "[[cell]]\nname = \"guest\"\nengine = \"qemu\"\nimage = {{ binary = \"app\" }}\n\
             machine = {{ {machine} }}\nclass = \"other\"\n[cell.rights]\n{rights}\n"
        );
        mission(dir, &cell);
        say(dir, &["admit", "mission.toml"])
    };
    admit("accel = \"tcg\"", "memory = \"2GiB\"").ends_with(0);
    let said = admit("accel = \"tcg\"", "memory = \"100MiB\"").ends_with(2);
    assert!(
        said.err.contains(
            "mission.toml:10: the limit of 100MiB is too little: the virtual machine takes "
        ),
        "{}",
        said.err
    );
    let said = admit("accel = \"tcg\", helpers = { cpus = [4095] }", "").ends_with(2);
    assert!(
        said.err
            .contains("mission.toml:7: cpu 4095 is not available"),
        "{}",
        said.err
    );
    for (key, value, why) in [
        (
            "memory",
            "90000GiB",
            "its memory of 90000GiB is more than the ",
        ),
        (
            "kernel",
            "/etc",
            "/etc: cannot read it: it is not a regular file",
        ),
        (
            "kernel",
            "/dev/zero",
            "/dev/zero: cannot read it: it is not a regular file",
        ),
        (
            "kernel",
            "/bin/true",
            "/bin/true: it is no kernel for x86_64",
        ),
    ] {
        let said = admit(&format!("accel = \"tcg\", {key} = \"{value}\""), "").ends_with(2);
        assert!(
            said.err.contains("mission.toml:7: ") && said.err.contains(why),
            "{}",
            said.err
        );
        let set = format!("machine.{key}={value}");
        let said = say(dir, &["bench", "machine.toml", "--set", &set, "--dry-run"]);
        assert!(said.out.contains(why), "{}", said.out);
    }
    // By `auto`, KVM executes it if it carries it.
    let said = admit("accel = \"kvm\"", "");
    let carries = said.out.contains(": admitted");
    let why = "virtual machine microvm: KVM does not carry it (";
    assert!(
        carries != said.err.contains(&format!("mission.toml:7: {why}")),
        "{}",
        said.err
    );
    let set = [
        "bench",
        "machine.toml",
        "--set",
        "machine.accel=kvm",
        "--dry-run",
    ];
    let said = say(dir, &set).ends_with(0);
    assert!(carries != said.out.contains(why), "{}", said.out);
}
