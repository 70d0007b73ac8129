//! Every way out of a cell is refused, with any other grants of the cell, and would be open without the filter.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use engine::Cell;
use engine::app::{AppSpec, Bind, Ended, Granted, RealTime, Scheduling, Seccomp, Tmpfs};
use host::sched::Class;
use model::EngineKind;

use crate::attacks::{self, Attack, Control, Refused};
use crate::support::{
    Place, allow_real_time, assert_nothing_left, create_logged, finish, output, run,
};

/// The outcomes of the attacks: lines of a name and an answer.
fn answers(text: &str) -> BTreeMap<&str, &str> {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .collect()
}

fn assert_refused(spec: &AppSpec, attacks: &[Attack]) {
    let mut spec = spec.clone();
    let names = attacks.iter().map(|attack| attack.name.to_owned());
    spec.args.extend(names);
    let (ended, text) = run(&spec);
    assert_eq!(ended, Ended::Exited(0), "{text}");
    let answers = answers(&text);
    for attack in attacks {
        let (Refused::With(errno) | Refused::Unanswered(errno)) = attack.refused else {
            continue;
        };
        let expected = errno.to_string();
        assert_eq!(
            answers.get(attack.name).copied(),
            Some(expected.as_str()),
            "{}",
            attack.name
        );
    }
}

fn survivable() -> Vec<Attack> {
    let mut all = attacks::all();
    all.retain(|attack| attack.refused != Refused::Deadly);
    all
}

pub fn every_attack_is_refused(kind: EngineKind) {
    assert_refused(&Place::new(kind).itself(kind, &["attack"]), &survivable());
}

/// The filter alone stands between these attacks and their success.
pub fn every_attack_is_refused_whatever_capability_there_is(kind: EngineKind) {
    let place = Place::new(kind);
    let mut spec = place.itself(kind, &["attack"]);
    let mut granted: Vec<&str> = survivable()
        .iter()
        .flat_map(|attack| attack.capabilities)
        .copied()
        .collect();
    granted.sort_unstable();
    granted.dedup();
    spec.grants.capabilities = granted.into_iter().map(str::to_owned).collect();
    assert_refused(&spec, &survivable());
}

pub fn calls_of_other_architectures_are_deadly(kind: EngineKind) {
    for attack in attacks::all() {
        if attack.refused == Refused::Deadly {
            let place = Place::new(kind);
            let (ended, text) = run(&place.itself(kind, &["attack", attack.name]));
            assert_eq!(
                ended,
                Ended::Killed(libc::SIGSYS),
                "{}: {text}",
                attack.name
            );
        }
    }
}

/// A cell sees its control groups as the top ones, and the step that takes leaves it no capability.
pub fn names_of_groups_stay_outside(kind: EngineKind) {
    let place = Place::new(kind);
    let (_, said) = run(&place.script(kind, "cat /proc/self/cgroup; grep ^Cap /proc/self/status"));
    for line in said.lines() {
        let is_top = line.ends_with(":/") || line.ends_with("\t0000000000000000");
        assert!(is_top, "{said}");
    }
    assert!(said.contains("0::/\n") && said.contains("CapBnd"), "{said}");
}

/// Without the filter, and with the capability for which the kernel asks, each of them gets past.
pub fn without_the_filter_the_attacks_work(kind: EngineKind) {
    for attack in attacks::all() {
        let place = Place::new(kind);
        let mut spec = place.itself(kind, &["attack", attack.name]);
        spec.grants.seccomp = Seccomp::Off;
        spec.grants.capabilities = (attack.capabilities.iter())
            .map(|name| (*name).to_owned())
            .collect();
        let mut cell = create_logged(&spec);
        allow_real_time(&cell);
        cell.start().unwrap();
        let ended = finish(&mut cell);
        let text = output(&mut cell);
        cell.remove().unwrap();
        let answer = answers(&text)
            .get(attack.name)
            .map(|answer| (*answer).to_owned());
        let name = attack.name;
        match (attack.control, attack.refused) {
            (Control::Works, _) => assert_eq!(answer.as_deref(), Some("done"), "{name}"),
            (Control::Says(errno), _) => assert_eq!(answer, Some(errno.to_string()), "{name}"),
            (Control::WorksOrSays(errno), _) => {
                let absent = errno.to_string();
                assert!(
                    answer
                        .as_deref()
                        .is_some_and(|answer| answer == "done" || answer == absent),
                    "{name}: {answer:?}"
                );
            }
            (Control::Differs, Refused::With(errno) | Refused::Unanswered(errno)) => {
                assert!(answer.is_some(), "{name}: {ended}");
                assert_ne!(answer, Some(errno.to_string()), "{name}");
            }
            (Control::Differs, Refused::Deadly) => {
                assert_ne!(ended, Ended::Killed(libc::SIGSYS), "{name}");
            }
        }
    }
}

/// A thread that asks for more than its grant gets its grant, and is told that it has the values it asked for.
pub fn a_granted_priority_is_not_exceeded(kind: EngineKind) {
    let place = Place::new(kind);
    let mut spec = place.itself(kind, &["raise", "5"]);
    spec.grants.scheduling = Scheduling::Granted(Granted {
        real_time: RealTime::Band {
            lowest: 5,
            highest: 5,
            round_robin: false,
        },
        cpus: vec![0, 1],
        held_in: None,
    });
    let mut cell = create_logged(&spec);
    allow_real_time(&cell);
    host::sched::set_class(cell.pid(), &Class::Fifo { priority: 5 }).unwrap();
    cell.start().unwrap();
    assert_eq!(finish(&mut cell), Ended::Exited(0));
    let text = output(&mut cell);
    cell.remove().unwrap();
    let fifo = format!("now {} 5\n", libc::SCHED_FIFO);
    // An agent gives the real-time class that was asked for, and lets a thread have less; where the engine cannot hand it the calls, they have no
    // effect.
    let (round_robin, other) = match kind {
        EngineKind::Podman => (fifo.clone(), fifo.clone()),
        _ => (
            format!("now {} 5\n", libc::SCHED_RR),
            format!("now {} 0\n", libc::SCHED_OTHER),
        ),
    };
    assert_eq!(
        text,
        format!(
            "keep done\n{fifo}raise done\n{fifo}raise-all done\n{fifo}round-robin done\n{round_robin}deadline done\n{fifo}other done\n{other}"
        )
    );
}

/// Files through which a cell could reach beyond itself, and other operations on files that are refused.
pub fn no_file_leads_out(kind: EngineKind) {
    let place = Place::new(kind);
    let secret = place.path().join("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("file"), "x").unwrap();
    // As the user to whom these files belong, without any capability.
    let script = r#"
        write() { if (: > "$1") 2>/dev/null; then echo "wrote $1"; fi; }
        for file in /proc/sys/kernel/sched_rt_runtime_us /proc/sys/kernel/core_pattern \
            /proc/sysrq-trigger /proc/irq/default_smp_affinity /file /bin/new /ro/file /ro/new \
            /sys/kernel/uevent_helper /sys/power/state; do write $file; done
        grep -E ' - cgroup2? ' /proc/self/mountinfo | grep -v ' ro,' && echo "a cgroup is writable"
        for file in $(find /sys/fs/cgroup -name cgroup.procs -o -name tasks 2>/dev/null); do write $file; done
        mknod /tmp/mem c 1 1 2>/dev/null && echo "made a device"
        mount -o remount,rw / 2>/dev/null && echo "remounted"
        chroot / true 2>/dev/null && echo "changed the root"
        ulimit -r 1 2>/dev/null && echo "raised a limit"
        kill -9 -1 2>/dev/null
        (cd /proc/1/root && [ -e var/tmp ]) 2>/dev/null && echo "the host's root"
        [ $PPID -eq 0 ] || echo "a parent in sight: $PPID"
        for node in /dev/*; do [ -b $node ] && echo "a disk: $node"; done
        echo the end"#;
    let mut spec = place.script(kind, script);
    spec.ids = Some(engine::app::Ids { uid: 0, gid: 0 });
    spec.binds = vec![Bind::new(&secret, "/ro", false)];
    spec.tmpfs = vec![Tmpfs {
        target: "/tmp".into(),
        size_bytes: 1 << 20,
    }];
    let (ended, text) = run(&spec);
    assert_eq!((ended, text.as_str()), (Ended::Exited(0), "the end\n"));
    assert_eq!(fs::read(secret.join("file")).unwrap(), b"x");
    // The control: outside, the same user could.
    assert!(
        fs::OpenOptions::new()
            .write(true)
            .open("/proc/sys/kernel/sched_rt_runtime_us")
            .is_ok()
    );
}

/// The kernel's account of the cell's first process.
pub fn nothing_is_inherited(kind: EngineKind) {
    let place = Place::new(kind);
    let (_, text) = run(&place.script(
        kind,
        "cat /proc/self/status; cat /proc/self/limits; ls /proc/self/fd; cat /proc/self/oom_score_adj",
    ));
    for line in [
        "Uid:\t65534\t65534\t65534\t65534",
        "Gid:\t65534\t65534\t65534\t65534",
        "CapInh:\t0000000000000000",
        "CapPrm:\t0000000000000000",
        "CapEff:\t0000000000000000",
        "CapBnd:\t0000000000000000",
        "CapAmb:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
        "SigIgn:\t0000000000000000",
        "SigBlk:\t0000000000000000",
    ] {
        assert!(text.lines().any(|has| has == line), "{line}\n{text}");
    }
    let groups = text.lines().find(|line| line.starts_with("Groups:"));
    let groups = groups.unwrap().trim_start_matches("Groups:").trim();
    // runc and podman make the user's own group a supplementary one.
    assert!(["", "65534"].contains(&groups), "{groups}");
    let limit = |name: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        let rest = line.strip_prefix(name).unwrap();
        rest.split_whitespace().take(2).map(str::to_owned).collect()
    };
    assert_eq!(limit("Max realtime priority"), ["0", "0"]);
    assert_eq!(limit("Max nice priority"), ["0", "0"]);
    assert_eq!(limit("Max open files"), ["1024", "1024"]);
    // 0, 1 and 2, and the directory that is listed.
    let open = text
        .lines()
        .filter(|line| line.len() < 3 && line.chars().all(|c| c.is_ascii_digit()));
    assert!(open.count() <= 5, "{text}");
}

/// A cell cannot fill the machine with processes or use up its memory.
pub fn bombs_stay_inside(kind: EngineKind) {
    let place = Place::new(kind);
    let mut spec = place.itself(kind, &["fork-bomb"]);
    spec.limits.pids = 20;
    let (ended, text) = run(&spec);
    assert_eq!(ended, Ended::Exited(0));
    let eagain = format!("Some({})", libc::EAGAIN);
    let (made, why) = text.trim().split_once(' ').unwrap();
    assert_eq!(why, eagain);
    // The runtime may count one for itself.
    assert!((18..=19).contains(&made.parse::<u32>().unwrap()), "{made}");

    let place = Place::new(kind);
    let mut spec = place.itself(kind, &["memory", "200"]);
    spec.limits.memory_bytes = Some(64 << 20);
    let (ended, text) = run(&spec);
    assert_eq!(ended, Ended::Killed(libc::SIGKILL), "{text}");
    let place = Place::new(kind);
    let mut spec = place.itself(kind, &["memory", "20"]);
    spec.limits.memory_bytes = Some(64 << 20);
    assert_eq!(run(&spec), (Ended::Exited(0), "20 MiB\n".to_owned()));
}

/// The calls of ordinary programs are not refused.
pub fn threads_and_shells_work(kind: EngineKind) {
    let place = Place::new(kind);
    assert_eq!(
        run(&place.itself(kind, &["threads"])),
        (Ended::Exited(0), "threads 6\n".to_owned())
    );
    let place = Place::new(kind);
    let script = "yes | head -n 2; (echo sub); sleep 0.01 & wait; echo $?";
    assert_eq!(
        run(&place.script(kind, script)),
        (Ended::Exited(0), "y\ny\nsub\n0\n".to_owned())
    );
}

/// Files on which no cell is mounted, by any name.
pub fn what_would_lead_out_is_not_mounted(kind: EngineKind) {
    let place = Place::new(kind);
    let link = place.path().join("link");
    std::os::unix::fs::symlink("/proc/sys", &link).unwrap();
    for source in [
        link.as_path(),
        Path::new("/sys/fs/cgroup/memory"),
        Path::new("/"),
    ] {
        if !source.exists() {
            continue;
        }
        let mut spec = place.script(kind, "true");
        spec.binds = vec![Bind::new(source, "/out", true)];
        let error = crate::support::refusal(&spec);
        assert!(
            error.contains("no cell may see") || error.contains("own root"),
            "{error}"
        );
        assert!(!spec.work_dir.exists(), "something was made");
    }
}

/// Before its program is executed, a cell's first process is the one that makes cells: none of its files, as the cell would
/// find them below `/proc/1`, may be one that belongs to the host and can be written.
pub fn nothing_leads_to_the_program_that_makes_cells(kind: EngineKind) {
    let place = Place::new(kind);
    let mut spec = place.script(kind, "true");
    if kind == EngineKind::Bare {
        spec = place.itself(kind, &["threads"]);
    }
    spec.ids = Some(engine::app::Ids { uid: 0, gid: 0 });
    let mut cell = create_logged(&spec);
    let process = format!("/proc/{}", cell.pid());
    let mut seen = vec![Path::new(&process).join("exe")];
    for dir in ["fd", "map_files"] {
        let entries = fs::read_dir(Path::new(&process).join(dir)).unwrap();
        seen.extend(entries.flatten().map(|entry| entry.path()));
    }
    let programs: Vec<_> = [env!("CARGO_BIN_EXE_timecell").to_owned()]
        .into_iter()
        .chain(["crun", "runc", "podman", "conmon"].map(|name| format!("/usr/bin/{name}")))
        .chain(["crun", "runc", "podman", "conmon"].map(|name| format!("/usr/sbin/{name}")))
        .filter_map(|path| fs::metadata(path).ok())
        .map(|about| (about.dev(), about.ino()))
        .collect();
    for link in seen {
        // A pipe or a socket may be gone by now.
        let Ok(about) = fs::metadata(&link) else {
            continue;
        };
        let leads = fs::read_link(&link).unwrap_or_default();
        assert!(
            !programs.contains(&(about.dev(), about.ino())) || is_read_only(&link),
            "{} leads to {}",
            link.display(),
            leads.display()
        );
        if kind == EngineKind::Embedded || kind == EngineKind::Bare {
            assert!(
                !programs.contains(&(about.dev(), about.ino())),
                "{} leads to {}",
                link.display(),
                leads.display()
            );
        }
    }
    cell.remove().unwrap();
    assert_nothing_left(&spec, cell.pid());
}

/// Whether the mount on which a file is found is read-only.
fn is_read_only(file: &Path) -> bool {
    let file = CString::new(file.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: zeroes are a valid statvfs, and the path ends in NUL.
    unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        assert_eq!(libc::statvfs(file.as_ptr(), &raw mut about), 0);
        about.f_flag & libc::ST_RDONLY != 0
    }
}

/// By a mount that the image does not show: only the process that is to execute it can tell.
pub fn a_program_behind_proc_is_not_executed(kind: EngineKind) {
    let refused = |spec: &AppSpec| {
        let mut cell = create_logged(spec);
        let pid = cell.pid();
        let why = cell.start().unwrap_err().to_string();
        assert!(why.contains("leads through /proc"), "{why}");
        cell.remove().unwrap();
        assert_nothing_left(spec, pid);
    };
    for (name, what) in [
        ("script", "#!/proc/self/exe doctor\n"),
        ("nested", "#!/door/script\n"),
    ] {
        let place = Place::new(kind);
        let door = place.writable("door");
        let script = |name: &str, what: &str| {
            fs::write(door.join(name), what).unwrap();
            fs::set_permissions(door.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        };
        script("script", "#!/proc/self/exe doctor\n");
        script(name, what);
        let mut spec = place.script(kind, "");
        spec.binds = vec![Bind::new(&door, "/door", false)];
        spec.command = vec![format!("/door/{name}")];
        refused(&spec);
        std::os::unix::fs::symlink("/proc/self/exe", door.join("link")).unwrap();
        spec.command = vec!["/door/link".to_owned()];
        refused(&spec);
    }
}

/// By its name alone, before anything is made.
pub fn a_program_named_through_proc_is_refused(kind: EngineKind) {
    for name in ["/proc/self/exe", "/dev/fd/3", "/bin/../proc/1/exe"] {
        let place = Place::new(kind);
        let mut spec = place.script(kind, "");
        spec.command = vec![name.to_owned()];
        let why = crate::support::refusal(&spec);
        assert!(why.contains("leads through /proc"), "{why}");
        assert!(!spec.work_dir.exists(), "something was made");
    }
}
