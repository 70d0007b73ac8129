//! Faults of mission files, each with its line and fix.

use super::{LEAST, faults, parse};
use crate::mission::Limits;

/// The faults of the least mission after a change.
fn with(from: &str, to: &str) -> Vec<String> {
    let text = LEAST.replace(from, to);
    assert_ne!(text, LEAST, "{from}");
    faults(&text)
}

#[test]
fn a_fault_names_its_line_and_the_fix() {
    let command = |line: &str| with("command", &format!("{line}\ncommand"));
    for (found, wanted) in [
        (
            with("schema = 1\n", ""),
            "1: the top level has no `schema`; add a line such as `schema = 1`",
        ),
        (
            with("name = \"least\"", "name = \"../etc\""),
            "2: `name` is `../etc`, which cannot be part of a directory name; \
             use 1 to 64 letters, digits, `-` and `_`, a letter or digit first",
        ),
        (
            with("\"control\"", "\"supervisor\""),
            "4: the name `supervisor` is reserved for the mission's supervisor; give the cell another name",
        ),
        (
            with("image", "imgae"),
            "5: unknown key `imgae` in [[cell]]; did you mean `image`?",
        ),
        (
            with("\"root\" }", "\"root\", binary = \"x\" }"),
            "5: `image` has rootfs and binary; write one of rootfs, bundle, reference, binary, inmate",
        ),
        (
            with("{ rootfs = \"root\" }", "{ }"),
            "5: `image` is empty; write one of rootfs, bundle, reference, binary, inmate",
        ),
        (
            with("rootfs", "rotfs"),
            "5: unknown key `rotfs` in `image`; did you mean `rootfs`?",
        ),
        (
            with("{ rootfs = \"root\" }", "\"root\""),
            "5: `image` is of type string; it must be a table such as { key = \"value\" }",
        ),
        (
            with("\"3ms\"", "3"),
            "7: `budget` has no unit; write it as a text with a unit, such as \"3ms\"",
        ),
        (
            with("\"3ms\"", "\"3m\""),
            "7: `budget`: unknown unit `m`; the units are ns, us, ms, s, min and h",
        ),
        (
            with("\"3ms\"", "\"0ms\""),
            "7: `budget` is 0ns; it must be at least 1ns",
        ),
        (
            with("\"3ms\"", "\"13ms\""),
            "7: the budget of 13ms exceeds the reservation's period of 10ms; \
             the budget must be at most the period",
        ),
        (
            with("\"10ms\"", "\"37e9h\""),
            "7: `period`: unknown unit `e9h`; the units are ns, us, ms, s, min and h",
        ),
        (
            with("\"10ms\"", "\"400000h\""),
            "7: `period` is 1440000000s; it must be at most 36 years, the range of exact analysis",
        ),
        (
            with("period", "peroid"),
            "7: unknown key `peroid` in `reservation`; did you mean `period`?",
        ),
        (
            with("rootfs = \"root\"", "reference = \"--privileged\""),
            "5: `reference` is not an image name; write it as the engine lists it, such as \"localhost/camera:1.2\"",
        ),
        (
            command("cpus = [1, 0x1]"),
            "6: `cpus` contains 1 twice; name it once",
        ),
        (
            command("cpus = [0x1000]"),
            "6: an item of `cpus` is 0x1000; it must be a whole number of 0 to 4095",
        ),
        (
            command("cpus = []"),
            "6: `cpus` is empty; give at least one, or remove the line",
        ),
        (
            command("cpus = [\"1\"]"),
            "6: an item of `cpus` is of type string; it must be a whole number of 0 to 4095",
        ),
        (
            command("cpus = 1"),
            "6: `cpus` is of type integer; it must be a list of numbers such as [1]",
        ),
        (
            command("engine = \"podmna\""),
            "6: unknown engine `podmna`; did you mean `podman`? \
             it is one of embedded, crun, runc, podman, qemu, jailhouse",
        ),
        (
            command("engine = \"bare\""),
            "6: engine `bare` makes plain processes, which nothing isolates from the rest of \
             the machine; it is one of embedded, crun, runc, podman, qemu, jailhouse",
        ),
        (
            command("engine = \"docker\""),
            "6: engine `docker` makes no cells of missions: its daemon starts programs before \
             they have their budget; it is one of embedded, crun, runc, podman, qemu, jailhouse",
        ),
        (
            command("engine = \"podman-rootless\""),
            "6: engine `podman-rootless` makes no cells of missions: an ordinary user may \
             neither set a cell's budget nor enforce it; it is one of embedded, crun, runc, \
             podman, qemu, jailhouse",
        ),
        (
            command("needs = [\"contrl\"]"),
            "6: `needs` of cell `control` names `contrl`, which is not a cell; did you mean `control`?",
        ),
        (
            command("needs = [\"control\"]"),
            "6: cell `control` waits for itself; remove its name from its `after` and `needs`",
        ),
        (
            with("command = [\"/bin/control\"]\n", ""),
            "3: cell `control` has a root filesystem but no `command`; add a line such as \
             `command = [\"/usr/bin/control\"]`",
        ),
        (
            with("reservation = { budget = \"3ms\", period = \"10ms\" }", ""),
            "3: cell `control` does not declare how much cpu time it needs; add [[cell.task]] \
             or `reservation`, or set class = \"other\" for best effort",
        ),
        (
            with("reservation", "class = \"other\"\nreservation"),
            "8: class `other` guarantees nothing, but `reservation` asks for a guarantee; \
             remove it, or set class = \"fifo\" or \"deadline\"",
        ),
    ] {
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0], wanted);
    }
}

#[test]
fn a_virtual_machine_is_asked_for_nothing_that_its_guest_does_not_get() {
    let task = |name: &str| {
        format!("[[cell.task]]\nname = \"{name}\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n")
    };
    let mission = |cell: &str, more: &str| {
        let head =
            "schema = 1\nname = \"m\"\n[[cell]]\nname = \"vm\"\nimage = { binary = \"app\" }\n";
        faults(&format!("{head}{cell}\n{more}"))
    };
    let (one, two) = (task("a"), task("a") + &task("b"));
    let qemu = "engine = \"qemu\"\n";
    let vm = |cell: &str, more: &str| mission(&format!("{qemu}{cell}"), more);
    for (found, wanted) in [
        (
            mission("machine = { vcpus = 2 }", &one),
            "6: a cell of engine `embedded` is no virtual machine; set `engine = \"qemu\"`, or remove this",
        ),
        (
            vm("env = { A = \"b\" }", &one),
            "7: `env` does not reach the guest of a virtual machine; remove it; the guest runs only its program, with all rights there",
        ),
        (
            vm("", &format!("{one}[cell.rights]\nnetwork = \"host\"")),
            "13: `network` does not reach the guest of a virtual machine; remove it; the guest runs only its program, with all rights there",
        ),
        (
            vm("machine = { vcpus = 1 }", &two),
            "7: 2 tasks are 2 virtual cpus, and the machine has 1; give it more `vcpus`, or remove tasks",
        ),
        (
            vm(
                "class = \"deadline\"\nreservation = { budget = \"1ms\", period = \"9ms\" }",
                "",
            ),
            "8: under SCHED_DEADLINE each virtual cpu has a reservation of its own; add a [[cell.task]] for each: its budget as `wcet`, and its period",
        ),
        (
            vm("machine = { vcpus = 0 }", &one),
            "7: `vcpus` is 0; it must be a whole number of 1 to 512",
        ),
    ] {
        assert_eq!(found, [wanted]);
    }
    let text = format!(
        "schema = 1\nname = \"m\"\n[[cell]]\nname = \"vm\"\nimage = {{ binary = \"app\" }}\n{qemu}machine = {{ vcpus = 2 }}\n{two}"
    );
    assert!(parse(&text).is_ok());
}

#[test]
fn a_partition_is_asked_for_nothing_that_only_processes_have() {
    let mission = |top: &str, cell: &str, more: &str| {
        format!(
            "schema = 1\nname = \"m\"\n{top}\n[[cell]]\nname = \"fly\"\nimage = {{ inmate = \"fly.bin\" }}\n{cell}\n{more}"
        )
    };
    let (system, engine) = (
        "jailhouse = { system = \"s\" }",
        "engine = \"jailhouse\"\nclass = \"other\"",
    );
    let own = "partition = { cpus = [3], memory = [{ at = 0x1000, size = \"4KiB\" }] }";
    assert!(parse(&mission(system, engine, own)).is_ok());
    let shared =
        "[[cell]]\nname = \"b\"\nimage = { binary = \"b\" }\nclass = \"other\"\ncpus = [2, 3]";
    for (top, cell, more, wanted) in [
        (
            system,
            engine,
            "",
            "7: cell `fly` has no [cell.partition]; say which `cpus` and `memory` it gets",
        ),
        (
            "",
            engine,
            own,
            "7: the mission does not say for which system its partitions are; add [jailhouse] with `system`, the board's system configuration",
        ),
        (
            system,
            engine,
            &format!("workdir = \"/x\"\n{own}"),
            "9: `workdir` is for processes of Linux, and a partition has none; remove it",
        ),
        (
            system,
            engine,
            &format!("{own}\n{shared}"),
            "9: cpu 3 leaves Linux with this partition, and is cell `b`'s; give each its own",
        ),
        (
            "cpus = [3]\njailhouse.system = \"s\"",
            engine,
            own,
            "10: cpu 3 leaves Linux with this partition, and is the mission's; give each its own",
        ),
        (
            system,
            engine,
            "partition = { cpus = [3], memory = [{ at = 0x1000, size = \"4KiB\" }], heartbeat = 0x1004 }",
            "9: the heartbeat at 0x1004 is no number of 64 bits; give a multiple of 8",
        ),
    ] {
        assert_eq!(faults(&mission(top, cell, more)), [wanted]);
    }
    let elsewhere = mission("", "class = \"other\"", own).replace("inmate", "binary");
    let wanted = "8: a cell of engine `embedded` is no partition; set `engine = \"jailhouse\"`, or remove this";
    assert_eq!(faults(&elsewhere), [wanted]);
    let real_time = mission(
        system,
        "engine = \"jailhouse\"",
        &format!("reservation = {{ budget = \"1ms\", period = \"9ms\" }}\n{own}"),
    );
    let wanted = "5: a partition has its cpus for itself, and no class of Linux; set `class = \"other\"`, which is that of the process that keeps it";
    assert!(
        faults(&real_time)[0].ends_with(&wanted[2..]),
        "{:?}",
        faults(&real_time)
    );
    let long = mission(system, engine, own).replace("fly\"", &format!("{}\"", "x".repeat(32)));
    assert!(faults(&long)[0].contains("Jailhouse takes no cell called"));
    let beats = own.replace("cpus", "heartbeat = 0x1000, cpus");
    let text = mission(system, engine, &beats);
    let (_, cell) = text.split_once("[[cell]]").unwrap();
    let other = cell.replace("\"fly\"", "\"b\"").replace("[3]", "[2]");
    let hides = "the heartbeat is cell `b`'s, too, whose beats would hide the silence of this one; give each its own";
    assert_eq!(
        faults(&format!("{text}\n[[cell]]{other}"))[0],
        format!("9: {hides}")
    );
}

#[test]
fn a_cell_without_budgets_that_its_tasks_cannot_use_up_is_told_so() {
    let task = "\n[[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n";
    let only = |head: &str, class: &str, more: &str| {
        let text = LEAST
            .replace("schema = 1", &format!("schema = 1\n{head}"))
            .replace("command", &format!("only_tasks = true\n{class}command"));
        parse(&format!("{text}{more}"))
    };
    for enforcer in ["auto", "freezer", "rt-cgroup"] {
        let head = format!("enforcer = \"{enforcer}\"");
        let mission = only(&head, "", task).unwrap();
        assert!(mission.cells[0].only_tasks);
    }
    for (head, class, more, why) in [
        (
            "",
            "",
            "",
            "cell `control` runs nothing but its tasks, and it has none; add [[cell.task]], or remove it",
        ),
        (
            "",
            "class = \"deadline\"\n",
            task,
            "has no effect in class `deadline`, where other threads do not use up the budget",
        ),
        (
            "enforcer = \"hcbs\"",
            "",
            task,
            "has no effect under enforcer `hcbs`",
        ),
        (
            "enforcer = \"deadline\"",
            "",
            task,
            "has no effect under enforcer `deadline`",
        ),
        (
            "enforcer = \"cpuset-only\"",
            "class = \"fifo\"\n",
            task,
            "has no effect under enforcer `cpuset-only`",
        ),
    ] {
        let found = only(head, class, more).unwrap_err();
        assert!(found.contains(why) && found.lines().count() == 1, "{found}");
    }
    let found = only("enforcer = \"freezer\"", "class = \"other\"\n", task).unwrap_err();
    let why = "has no effect in class `other`, whose tasks are not analysed";
    assert!(found.contains(why), "{found}");
}

#[test]
fn priorities_without_both_ends_are_not_compared_with_those_of_others() {
    let cell = LEAST.split_once("[[cell]]").unwrap().1;
    let other = cell.replace("\"control\"", "\"other\"");
    let with = |first: &str| {
        let first = format!("{LEAST}priorities = {{ {first} }}\n");
        faults(&format!(
            "{first}[[cell]]{other}priorities = {{ lowest = 1, highest = 9 }}\n"
        ))
    };
    for (first, wanted) in [
        ("highest = 20", "8: `priorities` has no `lowest`; "),
        ("lowest = 0, highest = 20", "8: `lowest` is 0; "),
        ("lowest = 1", "8: `priorities` has no `highest`; "),
        ("lowest = 5, highest = 20", "14: cells `control` (line 3, "),
    ] {
        let found = with(first);
        assert!(
            found.len() == 1 && found[0].starts_with(wanted),
            "{first}: {found:?}"
        );
    }
}

#[test]
fn an_enforcer_and_a_class_that_do_not_go_together_are_refused() {
    for (enforcer, class, fits) in [
        ("rt-cgroup", "fifo", true),
        ("rt-cgroup", "deadline", false),
        ("deadline", "deadline", true),
        ("deadline", "fifo", false),
        ("cpuset-only", "fifo", true),
        ("cpuset-only", "deadline", true),
        ("auto", "deadline", true),
    ] {
        let text = LEAST
            .replace(
                "schema = 1",
                &format!("schema = 1\nenforcer = \"{enforcer}\""),
            )
            .replace("command", &format!("class = \"{class}\"\ncommand"));
        let found = parse(&text);
        assert_eq!(found.is_ok(), fits, "{enforcer} {class}: {found:?}");
    }
}

#[test]
fn reservations_beyond_what_any_kernel_grants_are_refused() {
    let text = |enforcer: &str, budget: &str| {
        LEAST
            .replace(
                "schema = 1",
                &format!("schema = 1\nenforcer = \"{enforcer}\""),
            )
            .replace("3ms", budget)
    };
    assert_eq!(
        faults(&text("deadline", "1023ns")),
        [
            "8: the budget is 1023ns on each cpu, and SCHED_DEADLINE grants no less than 1024ns; raise it"
        ]
    );
    assert_eq!(
        faults(&text("rt-cgroup", "999ns")),
        [
            "8: the budget is 999ns on each cpu, and a real-time group counts in microseconds; raise it to at least 1us"
        ]
    );
    assert!(parse(&text("auto", "1023ns")).is_ok());
    assert_eq!(faults(&text("auto", "999ns")).len(), 1);
    assert!(parse(&text("cpuset-only", "1ns")).is_ok());
}

#[test]
fn a_file_of_a_newer_timecell_gets_one_sentence() {
    assert_eq!(
        with("schema = 1", "schema = 2\nfuture = { }\ncpus = \"all\""),
        ["1: schema 2 is newer than this timecell, which reads up to 1; use a newer timecell"]
    );
}

#[test]
fn every_fault_of_the_syntax_is_told() {
    let found = faults("schema = 1\nschema = 2\n[x\n");
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0], "2: not TOML: duplicate key");
    assert!(found[1].starts_with("3: not TOML: "), "{found:?}");
    let empty = faults("");
    assert_eq!(empty.len(), 3);
    assert_eq!(
        empty[2],
        "1: there is no [[cell]]; add at least one, with a name, an image, and tasks or a reservation"
    );
}

#[test]
fn a_file_of_another_program_gets_one_sentence() {
    for (text, kind) in [
        ("services:\n  ctl:\n    image: a\n", "a compose file"),
        (
            "[Container]\nImage=a:1\nUlimit=rtprio=99\n",
            "a quadlet of podman",
        ),
    ] {
        let found = faults(text);
        assert_eq!(found.len(), 1, "{found:?}");
        let sentence =
            format!("it is {kind}, not the TOML of a mission; write what it starts as cells");
        assert!(found[0].contains(&sentence), "{found:?}");
    }
}

#[test]
fn too_much_is_refused_without_trouble() {
    let long = format!("{LEAST}#{}", "x".repeat(Limits::FILE_BYTES));
    assert!(faults(&long)[0].starts_with("1: the file has 4194"));

    let many: String = (0..5_000).map(|n| format!("k{n} = {n}\n")).collect();
    let found = faults(&format!("{many}{LEAST}"));
    assert_eq!(found.len(), Limits::FAULTS + 1);
    assert_eq!(
        found.last().unwrap(),
        "1000: there are more than 1000 faults; fix these first"
    );

    let cell = LEAST.split_once("[[cell]]").unwrap().1;
    let cells: String = (0..3_000)
        .map(|n| {
            let band = "priorities = { lowest = 1, highest = 98 }";
            let named = cell.replace("\"control\"", &format!("\"c{n}\""));
            format!(
                "[[cell]]{named}{band}\nafter = [\"c{}\"]\n",
                (n + 1) % 3_000
            )
        })
        .collect();
    let found = faults(&format!("schema = 1\nname = \"x\"\n{cells}"));
    assert_eq!(found.len(), Limits::FAULTS + 1);
    assert!(found.iter().any(|fault| fault.contains("c0 -> c1 -> ")));
}

#[test]
fn a_cell_out_of_band_shares_no_cpu_with_one_in_band_that_has_a_guarantee() {
    let cell = LEAST.split_once("[[cell]]").unwrap().1;
    let found = |first: &str, second: &str| {
        let other = cell.replace("\"control\"", "\"other\"");
        let rights = "[cell.rights]\nevl = true\n";
        let text = format!("{LEAST}{first}\n[[cell]]{other}{second}\n{rights}");
        parse(&text).err().unwrap_or_default()
    };
    let apart = "give each `cpus` of its own, or the first class = \"other\"";
    for (first, second, whereabouts) in [
        ("", "", "may be placed on the same cpu"),
        ("cpus = [1]", "", "may be placed on the same cpu"),
        ("cpus = [0, 1]", "cpus = [1, 2]", "share cpu 1"),
    ] {
        let found = found(first, second);
        let sentence = format!(
            "cells `control` and `other` {whereabouts}, and the latter's threads out of band run before all of Linux; {apart}"
        );
        assert!(found.ends_with(&sentence), "{found}");
    }
    assert_eq!(found("cpus = [1]", "cpus = [2]"), "");
    let best_effort = found("class = \"other\"", "");
    assert!(!best_effort.contains("out of band"), "{best_effort}");
}

#[test]
fn time_partitions_of_evl_take_any_reservation_of_a_cell_that_may_have_them() {
    let of = |enforcer: &str, rights: &str| {
        let text = LEAST.replace(
            "[[cell]]",
            &format!("enforcer = \"{enforcer}\"\n\n[[cell]]"),
        );
        parse(&(text + rights))
            .map(drop)
            .map_err(|why| why.to_string())
    };
    assert_eq!(
        of("evl-tp", "class = \"fifo\"\nrights = { evl = true }\n"),
        Ok(())
    );
    let why = of("evl-tp", "class = \"fifo\"\n").unwrap_err();
    assert!(why.contains("`evl-tp` holds threads of EVL only"), "{why}");
    // Whether it may have them is not known then.
    let why = of("evl-tp", "class = \"fifo\"\nrights = { evl = 1 }\n").unwrap_err();
    assert_eq!(why.lines().count(), 1, "{why}");
    let text = LEAST.replace("[[cell]]", "enforcer = \"evl-tp\"\n\n[[cell]]");
    let own = "reservation = { budget = \"3ms\", period = \"10ms\" }\n";
    let task = "task = [{ name = \"t\", wcet = \"1ms\", period = \"10ms\" }]\n";
    let rights = "class = \"fifo\"\nrights = { evl = true }\n";
    let why = parse(&text.replace(own, &(rights.to_owned() + task))).unwrap_err();
    let said = "cell `control` names no reservation, and none is computed for the enforcer `evl-tp`; add `reservation`, from which the \
        windows of its cpu are computed";
    assert!(why.ends_with(said), "{why}");
}

#[test]
fn a_quota_of_evl_holds_threads_of_evl_that_name_it() {
    let own = "reservation = { budget = \"3ms\", period = \"10ms\" }\n";
    let of = |more: &str| {
        let text = LEAST.replace("[[cell]]", "enforcer = \"evl-quota\"\n\n[[cell]]");
        parse(&text.replace(own, &format!("class = \"fifo\"\n{more}")))
    };
    let reserved =
        |budget: &str| format!("reservation = {{ budget = \"{budget}\", period = \"1s\" }}\n");
    let rights = "rights = { evl = true }\n";
    assert_eq!(of(&(reserved("300ms") + rights)).err(), None);
    for (more, said) in [
        (
            reserved("300ms"),
            "holds threads of EVL only, which cell `control` cannot have",
        ),
        (reserved("305ms") + rights, "a whole percent of its period"),
        (
            reserved("300ms").replace("1s", "2s") + rights,
            "have that of its core, 1s",
        ),
        (
            format!("{rights}task = [{{ name = \"t\", wcet = \"1ms\", period = \"10ms\" }}]\n"),
            "none is computed for the enforcer `evl-quota`; add `reservation`, a whole percent",
        ),
    ] {
        let why = of(&more).unwrap_err();
        assert!(why.contains(said), "{why}");
    }
}
