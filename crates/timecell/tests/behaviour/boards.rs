//! Boards: an x86 machine that QEMU emulates, with a kernel of Debian's, boots and measures. The kernel is downloaded where the user's
//! cache does not have it.

mod missions;

use std::path::Path;

use crate::bad_input::on_small_disk;
use crate::support::{only_run, say, timecell};

/// Boots twice as long as an emulated machine on a busy one takes.
const BOARD: &str = r#"
schema = 1
title = "minimal PC"
architecture = "x86_64"
console = "ttyS0"
channel = "ttyS1"
boot_time = "4min"
[kernel]
package = "linux-image-rt-amd64"
arguments = ["no_timer_check", "noirqdebug"]
[qemu]
machine = "q35"
cpu = "max"
accel = "tcg"
"#;

#[cfg(target_arch = "x86_64")]
// It keeps both cpus busy.
#[case(Alone, Program("qemu-system-x86_64"), Program("apt-get"))]
fn a_board_boots_measures_and_sends_its_run(dir: &Path) {
    std::fs::write(dir.join("pc.toml"), BOARD).unwrap();
    let words = [
        "board",
        "run",
        "./pc.toml",
        "--",
        "bench",
        "overhead",
        "--quick",
        "--engine",
        "bare",
    ];
    let said = say(dir, &words).ends_with(0);
    assert!(
        said.err.contains("board   pc, 1 cpus, Linux 6."),
        "{}",
        said.err
    );
    let run = only_run(dir);
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    let report = timecell()
        .current_dir(dir)
        .arg("report")
        .arg(&run)
        .args(["--json"])
        .output()
        .unwrap();
    let json = String::from_utf8(report.stdout).unwrap();
    let run_dir = run.to_str().unwrap();
    let summary = std::fs::read_to_string(run.join("summary.json")).unwrap();
    let several = say(dir, &["report", run_dir, run_dir, run_dir, "--json"]).ends_with(0);
    assert_eq!(
        several
            .out
            .matches("emulated: not representative of timing")
            .count(),
        3
    );
    let exported = |form| {
        say(dir, &["export", run_dir, form, "-o", "-"])
            .ends_with(0)
            .out
    };
    let cyclictest = ["--cyclictest-json", "--cyclictest-hist"].map(exported);
    say(dir, &["report", run_dir, "--force", "--figures", "figures"]).ends_with(0);
    say(dir, &["export", run_dir, "--csv", "-o", "jobs.csv"]).ends_with(0);
    let table = std::fs::read_to_string(dir.join("jobs.csv")).unwrap();
    let figures = std::fs::read_dir(dir.join("figures")).unwrap();
    let figures: Vec<String> = figures
        .map(|figure| std::fs::read_to_string(figure.unwrap().path()).unwrap())
        .collect();
    assert!(!figures.is_empty());
    for text in [&said.out, &page, &json, &table, &summary]
        .into_iter()
        .chain(&figures)
        .chain(&cyclictest)
    {
        assert!(
            text.contains("emulated: not representative of timing"),
            "{text}"
        );
    }
    let run = run.to_str().unwrap();
    let said = say(dir, &["report", run, run]).ends_with(0);
    assert!(
        said.out.contains("emulated: not representative of timing"),
        "{}",
        said.out
    );
    // The exit code is that of the guest's timecell.
    say(
        dir,
        &[
            "board",
            "run",
            "./pc.toml",
            "--",
            "bench",
            "nothing-like-it",
        ],
    )
    .ends_with(2);
}

#[cfg(target_arch = "x86_64")]
#[case(Program("qemu-system-x86_64"), Program("apt-get"))]
fn kernel_and_initramfs_are_built_without_booting(dir: &Path) {
    let with = |modules: &str| {
        let text = BOARD.replace("[qemu]", &format!("modules = [\"{modules}\"]\n[qemu]"));
        std::fs::write(dir.join("pc.toml"), text).unwrap();
    };
    with("ext4");
    let built = |into: &str| {
        let said = say(
            dir,
            &["board", "build", "./pc.toml", "--output", into, "--json"],
        )
        .ends_with(0);
        let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(
            json["modules"].as_array().unwrap().last().unwrap(),
            "ext4",
            "{json}"
        );
        let path = dir.join(json["initramfs"]["path"].as_str().unwrap());
        (
            std::fs::read(path).unwrap(),
            json["initramfs"]["sha256"].clone(),
        )
    };
    let (first, digest) = built("first");
    assert!(first.starts_with(b"070701"));
    assert!((first, digest) == built("second"), "other bytes");
    let said = say(dir, &["board", "build", "./pc.toml", "-o", "first"]).ends_with(2);
    assert!(
        said.err.contains("overwrite it with --force"),
        "{}",
        said.err
    );
    with("no-such-driver");
    let said = say(dir, &["board", "build", "./pc.toml"]).ends_with(4);
    assert!(
        said.err
            .contains("has no driver `no_such_driver`, neither as a module nor built in"),
        "{}",
        said.err
    );
    assert!(!dir.join("pc").exists());
    let said = say(dir, &["board", "image", "./pc.toml", "--sd", "card.img"]).ends_with(2);
    assert!(said.err.contains("this board has no card"), "{}", said.err);
    let card = "[card]\nroot = \"/dev/mmcblk0p2\"\ndrivers = [\"no-such-controller\"]\n";
    std::fs::write(dir.join("pc.toml"), format!("{BOARD}{card}")).unwrap();
    let said = say(dir, &["board", "image", "./pc.toml", "--sd", "card.img"]).ends_with(4);
    assert!(
        said.err.contains(
            "has no driver `no_such_controller`, neither as a module nor built in (name another driver or kernel"
        ),
        "{}",
        said.err
    );
    assert!(!dir.join("card.img").exists());
}

/// timecell for the ZCU102, where it was built.
const AARCH64: &str = concat!(
    env!("CARGO_TARGET_TMPDIR"),
    "/../../aarch64-unknown-linux-musl/debug/timecell"
);

// It keeps both cpus busy.
#[case(
    Alone,
    Program("qemu-system-aarch64"),
    Program("apt-get"),
    Program("mke2fs"),
    Program("mcopy"),
    File(AARCH64)
)]
fn a_card_is_made_and_boots(dir: &Path) {
    let words = [
        "board",
        "image",
        "zcu102",
        "--sd",
        "card.img",
        "--guest-binary",
        AARCH64,
    ];
    let said = say(dir, &words).ends_with(0);
    assert!(said.out.contains("card    card.img: "), "{}", said.out);
    assert!(said.err.contains("BOOT.BIN"), "{}", said.err);
    let said = say(dir, &words).ends_with(2);
    assert!(said.err.contains("it already exists"), "{}", said.err);
    let said = say(
        dir,
        &[
            "board",
            "image",
            "zcu102",
            "--sd",
            ".",
            "--guest-binary",
            AARCH64,
        ],
    )
    .ends_with(2);
    assert!(said.err.contains("it is no file"), "{}", said.err);
    let before = std::fs::read(dir.join("card.img")).unwrap();
    let script = "grep ' / ' /proc/mounts; echo kept > /board/kept; timecell doctor --json";
    let run = [
        "board",
        "run",
        "zcu102",
        "--sd",
        "card.img",
        "--program",
        "sh",
        "--",
        "-c",
        script,
    ];
    let said = say(dir, &run);
    assert!(
        said.out.contains("/dev/mmcblk0p2 / ext4 rw,"),
        "{}{}",
        said.out,
        said.err
    );
    assert!(
        said.out
            .contains("ZCU102 Rev1.0 (emulated: not representative of timing)"),
        "{}",
        said.out
    );
    assert!(
        std::fs::read(dir.join("card.img")).unwrap() == before,
        "the card is changed"
    );
    std::fs::write(dir.join("card.img"), "no card").unwrap();
    let said = say(dir, &run).ends_with(2);
    assert!(
        said.err.contains("it has no FAT32 partition"),
        "{}",
        said.err
    );
    // Nothing unfinished is left.
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 1);
}

/// Three containers on one cpu, two of them of a user's.
const MIXED: &str = r#"
schema = 1
name = "mixed"
rounds = 1
[workload]
kind = "timer"
jobs = 20
period = "50ms"
[[trial]]
name = "mixed"
cells = ["podman-rootless", "podman-rootless", "podman"]
"#;

#[cfg(target_arch = "x86_64")]
// It keeps both cpus busy.
#[case(Alone, Program("qemu-system-x86_64"), Program("apt-get"))]
fn the_debian_system_of_a_board_has_podman(dir: &Path) {
    std::fs::write(dir.join("pc.toml"), BOARD).unwrap();
    std::fs::write(dir.join("mixed.toml"), MIXED).unwrap();
    let run = ["board", "run", "./pc.toml", "--root", "debian"];
    let bench = ["--with", "mixed.toml", "--", "bench", "mixed.toml"];
    say(dir, &[&run[..], &bench[..]].concat()).ends_with(0);
    let run = only_run(dir);
    for cell in ["1-podman-rootless", "2-podman-rootless", "3-podman"] {
        let samples = run.join(format!("trials/1/{cell}.samples"));
        let header = record::samples::read(&samples).unwrap().header;
        assert_eq!(header.count + header.skipped, 20, "{cell}");
    }
}

/// A virtual machine beside a plain process, emulated, with its own kernel and memory.
const MACHINE: &str = r#"
schema = 1
name = "machine"
rounds = 1
[workload]
kind = "timer"
jobs = 40
period = "20ms"
[machine]
memory = "320MiB"
accel = "tcg"
[[trial]]
cells = ["bare"]
[[trial]]
name = "beside"
cells = ["qemu", "bare"]
"#;

#[cfg(target_arch = "x86_64")]
// It keeps both cpus busy.
#[case(Alone, RealTime, Program("qemu-system-x86_64"), Program("apt-get"))]
fn a_virtual_machine_is_measured_as_a_cell(dir: &Path) {
    std::fs::write(dir.join("machine.toml"), MACHINE).unwrap();
    let said = say(dir, &["bench", "machine.toml"]).ends_with(0);
    assert!(
        said.out.contains("beside/1-qemu (emulated)"),
        "{}",
        said.out
    );
    let run = only_run(dir);
    let trial = std::fs::read_to_string(run.join("trials/2/trial.json")).unwrap();
    let trial: serde_json::Value = serde_json::from_str(&trial).unwrap();
    let cell = &trial["cells"][0];
    // The thread of its virtual cpu, as the host's kernel says.
    assert_eq!(cell["class_got"], "FIFO 80", "{cell}");
    assert_eq!(cell["machine"]["memory_bytes"], 320 << 20, "{cell}");
    assert_eq!(cell["machine"]["kvm"], false, "{cell}");
    assert_eq!(cell["set_by"], "guest");
    let helpers = cell["machine"]["helpers"].as_array().unwrap();
    assert!(helpers.iter().all(|helper| helper["class"] == "OTHER"));
    assert!(!helpers.is_empty(), "{cell}");
    let path = run.join("trials/2/1-qemu.samples");
    let samples = record::samples::read(&path).unwrap();
    assert_eq!(samples.header.count + samples.header.skipped, 40);
    // On the host's clock, it was released when the other cell was.
    assert_eq!(samples.header.go_ns, trial["go_ns"].as_i64().unwrap());
    assert_eq!(samples.header.priority, 80);
    let text = MACHINE.replace("memory = \"320MiB\"", "memory = \"64MiB\"");
    std::fs::write(dir.join("machine.toml"), text).unwrap();
    let said = say(dir, &["bench", "machine.toml", "--dry-run"]);
    assert!(
        said.out.contains("its memory of 64MiB is too little"),
        "{}",
        said.out
    );
    for (board, why) in [
        ("zcu102", "it is for aarch64"),
        ("vax", "there is no such board"),
    ] {
        let board = format!("machine.board={board}");
        let said = say(
            dir,
            &["bench", "machine.toml", "--set", &board, "--dry-run"],
        );
        assert!(said.out.contains(why), "{}", said.out);
    }
}

/// Two virtual cpus, each in a reservation of its own, and three tasks partitioned onto them.
const TWO: &str = r#"
schema = 1
name = "two"
rounds = 1
[workload]
kind = "taskset"
duration = "1s"
[[workload.task]]
name = "a"
cell = "first"
wcet = "200us"
period = "50ms"
[[workload.task]]
name = "b"
cell = "first"
wcet = "300us"
period = "100ms"
[[workload.task]]
name = "c"
cell = "second"
wcet = "300us"
period = "100ms"
[[workload.reservation]]
cell = "first"
budget = "4ms"
period = "10ms"
[[workload.reservation]]
cell = "second"
budget = "5ms"
period = "20ms"
[[trial]]
name = "vm"
cells = ["qemu"]
reserve = "deadline"
machine = { memory = "320MiB", accel = "tcg" }
"#;

#[cfg(target_arch = "x86_64")]
// It keeps both cpus busy.
#[case(
    Alone,
    RealTime,
    Deadline,
    DeadlineBudget,
    Program("qemu-system-x86_64"),
    Program("apt-get")
)]
fn virtual_cpus_have_reservations(dir: &Path) {
    std::fs::write(dir.join("two.toml"), TWO).unwrap();
    let said = say(dir, &["bench", "two.toml"]).ends_with(0);
    // A trial whose virtual cpus did not get their budgets, as the kernel says, would have failed.
    assert!(said.out.contains("vm/second"), "{}", said.out);
    let run = only_run(dir);
    let trial = std::fs::read_to_string(run.join("trials/1/trial.json")).unwrap();
    let trial: serde_json::Value = serde_json::from_str(&trial).unwrap();
    let held = &trial["holds"]["cells"];
    assert_eq!(held[0]["by"]["held"]["budget_ns"], 4_000_000, "{held}");
    assert_eq!(held[1]["by"]["held"]["period_ns"], 20_000_000, "{held}");
    for (cell, jobs) in [("1-a", 20), ("2-b", 10), ("3-c", 10)] {
        let path = run.join(format!("trials/1/{cell}.samples"));
        let header = record::samples::read(&path).unwrap().header;
        assert_eq!(header.count + header.skipped, jobs, "{cell}");
    }
    assert_eq!(trial["cells"][2]["machine"]["vcpus"], 2);
    let text = TWO
        .replace("budget = \"5ms\"", "budget = \"19.9ms\"")
        .replace("\"4ms\"", "\"9.9ms\"");
    std::fs::write(dir.join("two.toml"), text).unwrap();
    let said = say(dir, &["bench", "two.toml", "--dry-run"]);
    assert!(
        said.out.contains("exceed what the kernel admits"),
        "{}",
        said.out
    );
    let text = TWO.replace("reserve = \"deadline\"", "reserve = \"freezer\"");
    std::fs::write(dir.join("two.toml"), text).unwrap();
    let said = say(dir, &["bench", "two.toml"]).ends_with(2);
    assert!(
        said.err.contains("those of engine qemu by deadline"),
        "{}",
        said.err
    );
}

#[case]
fn boards_and_what_they_lack_are_told(dir: &Path) {
    let said = say(dir, &["board", "list"]).ends_with(0);
    assert!(said.out.contains("zcu102          aarch64"), "{}", said.out);
    let said = say(dir, &["board", "run", "zcu-102", "--", "doctor"]).ends_with(2);
    assert!(said.err.contains("did you mean `zcu102`?"), "{}", said.err);
    std::fs::write(dir.join("pc.toml"), BOARD.replace("channel", "chanel")).unwrap();
    let said = say(dir, &["board", "run", "./pc.toml", "--", "doctor"]).ends_with(2);
    assert!(
        said.err.contains("pc.toml:6: unknown key `chanel`"),
        "{}",
        said.err
    );
    std::fs::write(dir.join("pc.toml"), BOARD).unwrap();
    let words = [
        "board",
        "run",
        "./pc.toml",
        "--guest-binary",
        "pc.toml",
        "--",
        "doctor",
    ];
    let said = say(dir, &words).ends_with(2);
    assert!(
        said.err.contains("it is no 64-bit program of Linux"),
        "{}",
        said.err
    );
}

/// The board for this processor, with another kernel.
fn own_board(kernel: &str) -> String {
    let own = format!("architecture = \"{}\"", std::env::consts::ARCH);
    let text = BOARD.replace("architecture = \"x86_64\"", &own);
    text.replace("package = \"linux-image-rt-amd64\"", kernel)
}

/// A file that passes for a kernel of either processor.
fn make_kernel(dir: &Path) {
    let mut kernel = vec![0; 2 << 20];
    kernel[0x202..0x206].copy_from_slice(b"HdrS");
    kernel[56..60].copy_from_slice(b"ARM\x64");
    std::fs::write(dir.join("kernel"), kernel).unwrap();
}

#[case(Root, Program("mke2fs"), Program("mcopy"))]
fn a_full_disk_leaves_nothing_of_a_board(dir: &Path) {
    let text = own_board("file = \"kernel\"") + "[card]\nroot = \"/dev/sda2\"\ndrivers = []\n";
    std::fs::write(dir.join("b.toml"), text).unwrap();
    make_kernel(dir);
    on_small_disk(4 << 20, |disk| {
        let (built, card) = (disk.join("built"), disk.join("card.img"));
        for (verb, option, path) in [("build", "--output", built), ("image", "--sd", card)] {
            let path = path.to_str().unwrap();
            let error = say(dir, &["board", verb, "./b.toml", option, path])
                .ends_with(1)
                .error();
            assert!(error.contains(path), "{error}");
            assert!(error.contains("No space left on device"), "{error}");
            assert_eq!(std::fs::read_dir(disk).unwrap().count(), 0, "{verb}");
        }
    });
}

#[case]
fn files_that_never_end_are_refused_at_once(dir: &Path) {
    let made = std::process::Command::new("mkfifo")
        .arg(dir.join("pipe"))
        .status();
    assert!(made.unwrap().success());
    let board = |kernel: &str| std::fs::write(dir.join("b.toml"), own_board(kernel)).unwrap();
    make_kernel(dir);
    let refused = |words: &[&str]| {
        let said = say(dir, &[&["board"], words].concat()).ends_with(2);
        let error = said.error();
        assert!(error.contains("it is not a regular file"), "{error}");
        assert!(!dir.join("b").exists());
    };
    for endless in ["./pipe", "/dev/zero"] {
        refused(&["build", endless]);
        board(&format!("file = \"{endless}\""));
        refused(&["build", "./b.toml"]);
        board(&format!("file = \"kernel\"\ndevice_tree = \"{endless}\""));
        refused(&["build", "./b.toml"]);
        board("file = \"kernel\"");
        refused(&["build", "./b.toml", "--guest-binary", endless]);
        refused(&["run", "zcu102", "--sd", endless, "--", "doctor"]);
        let said = say(dir, &["board", "build", "./b.toml", "--with", endless]).ends_with(2);
        assert!(said.err.contains("it is no file"), "{}", said.err);
        let said = say(dir, &["bench", endless]).ends_with(2);
        assert!(said.err.contains("not a regular file"), "{}", said.err);
    }
}
