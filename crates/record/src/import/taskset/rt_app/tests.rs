//! Files of rt-app as task sets.

use super::*;

const GOOD: &str = r#"{
    /* two tasks and one that is not for us */
    "tasks" : {
        "video" : {
            "instance" : 2,
            "policy" : "SCHED_DEADLINE",
            "dl-runtime" : 2000, "dl-period" : 16000, "dl-deadline" : 10000,
            "run" : 1000, "sleep" : 10, "run" : 500, // twice
        },
        "hard" : { "policy" : "SCHED_DEADLINE",
            "dl-runtime" : 500, "dl-period": 5000 },
        "other" : { "run" : 100, "timer" : { "ref" : "x", "period" : 1000 } },
    },
    "global" : { "duration" : 5 }
}"#;

fn read(name: &str, text: &str, options: Options) -> Result<Imported, InputErrors> {
    let format = crate::import::taskset::Format::named("rt-app");
    crate::import::taskset::import(format, name, text.as_bytes(), options)
}

fn on(cpus: u32, text: &str) -> Result<Imported, model::InputErrors> {
    let options = Options {
        cpus: Some(cpus),
        ..Options::default()
    };
    read("r.json", text, options)
}

fn good(text: &str) -> Imported {
    on(2, text).expect("good")
}

fn error(text: &str) -> String {
    on(2, text).expect_err("must be refused").to_string()
}

/// The file with these threads.
fn threads(threads: &str) -> String {
    format!(r#"{{"tasks":{{{threads}}}}}"#)
}

fn said(imported: &Imported, part: &str) -> bool {
    imported.notes.iter().any(|note| note.contains(part))
}

#[test]
fn deadline_threads_are_read_and_may_run_on_all_cpus() {
    let found = good(GOOD);
    let [all] = found.set.cells.as_slice() else {
        panic!("one cell: {:?}", found.set);
    };
    assert_eq!(
        (all.name.as_str(), all.policy),
        ("all", Policy::GlobalEdf(2))
    );
    let names: Vec<&str> = all.tasks.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["video", "video-2", "hard"]);
    assert_eq!(all.tasks[1].wcet.ns(), 2_000_000);
    assert_eq!(all.tasks[1].deadline.ns(), 10_000_000);
    assert!(said(&found, "assumed to be 2 cpus"), "{:?}", found.notes);
    for taken in [
        "`video` (SCHED_DEADLINE): dl-runtime 2ms in 16ms, due after 10ms",
        "`hard` (SCHED_DEADLINE): dl-runtime 500us in 5ms",
    ] {
        let told = found.notes.iter().any(|note| note == taken);
        assert!(told, "{taken} is not in {:?}", found.notes);
    }
    assert!(!said(&found, "calibrates"), "{:?}", found.notes);
    assert!(
        said(
            &found,
            "a higher class may run on their cpus (SCHED_DEADLINE): other"
        ),
        "{:?}",
        found.notes
    );
    assert_eq!(on(1, GOOD).expect("good").set.cells[0].policy, Policy::Edf);
    let unknown = read("r.json", GOOD, Options::default()).expect_err("unknown");
    assert!(unknown.to_string().contains("--cpus"), "{unknown}");
}

#[test]
fn several_cpus_are_scheduled_globally_and_one_is_one() {
    let dl = |cpus: &str| {
        format!(
            r#"{{"policy":"SCHED_DEADLINE","dl-runtime":6000,"dl-period":10000,"cpus":{cpus}}}"#
        )
    };
    let two = threads(&format!(
        r#""a":{0},"b":{0},"c":{1}"#,
        dl("[0,1]"),
        dl("[2]")
    ));
    let set = good(&two).set;
    let cells: Vec<_> = (set.cells.iter())
        .map(|c| (c.name.as_str(), c.policy))
        .collect();
    assert_eq!(
        cells,
        [("cpus 0,1", Policy::GlobalEdf(2)), ("cpu 2", Policy::Edf)]
    );
    let partly = threads(&format!(r#""a":{},"b":{}"#, dl("[0,1]"), dl("[1,2]")));
    assert!(error(&partly).contains("threads a, b may run on different but overlapping"));
    let all = threads(&format!(r#""a":{},"b":{}"#, dl("[]"), dl("[1]")));
    assert!(error(&all).contains("overlapping sets"));
}

#[test]
fn a_slice_of_sched_other_is_no_reservation() {
    let text = threads(
        r#""slice":{"policy":"SCHED_OTHER","dl-runtime":100000,"run":20000,"timer":{"ref":"t","period":50000}},
           "default":{"dl-runtime":3000,"run":20,"timer":{"ref":"u","period":50}}"#,
    );
    let found = good(&text);
    let work: Vec<i64> = (found.set.cells[0].tasks.iter())
        .map(|t| t.wcet.ns())
        .collect();
    assert_eq!(work, [20_000_000, 20_000]);
    assert!(said(&found, "have no guarantee") && said(&found, "edf is assumed"));
    assert!(said(&found, "`slice` (no real-time class): 20ms in 50ms"));
    let set = on(2, &text.replacen('}', "", 0)).expect("good").set;
    assert_eq!(set.cells[0].policy, Policy::GlobalEdf(2));
    let deadline = text.replacen(
        "{\"tasks\"",
        r#"{"global":{"default_policy":"SCHED_DEADLINE"},"tasks""#,
        1,
    );
    let found = good(&deadline);
    assert_eq!(found.set.cells[0].tasks[0].wcet.ns(), 3_000_000);
}

#[test]
fn the_longest_work_between_two_timers_is_taken() {
    for (events, loops, work, period) in [
        (r#""run":5,"timer":{"ref":"t","period":30}"#, -1, 5, 30),
        (
            r#""run":5,"timer":{"ref":"t","period":30},"runtime":7"#,
            -1,
            12,
            30,
        ),
        (
            r#""run":5,"timer":{"ref":"t","period":30},"run1":9,"timer1":{"ref":"t","period":20}"#,
            1,
            9,
            20,
        ),
        (
            r#""resume":"x","run0":1,"yield":"","run1":2,"timer":{"ref":"t","period":30}"#,
            5,
            3,
            30,
        ),
    ] {
        let text = threads(&format!(r#""a":{{"loop":{loops},{events}}}"#));
        let task = good(&text).set.cells[0].tasks[0].clone();
        assert_eq!(
            (task.wcet.ns(), task.period.ns()),
            (work * 1_000, period * 1_000),
            "{events}"
        );
    }
    let phases = |heavy: &str| {
        threads(&format!(
            r#""a":{{"policy":"SCHED_FIFO","priority":7,"cpus":[1],"loop":1,"phases":{{
                "light":{{"loop":10,"run":3,"timer":{{"ref":"t","period":30}}}},
                "heavy":{heavy}}}}}"#
        ))
    };
    let found = good(&phases(
        r#"{"loop":10,"run":27,"timer":{"ref":"t","period":30}}"#,
    ));
    let cell = &found.set.cells[0];
    assert_eq!(
        (cell.name.as_str(), cell.policy),
        ("cpu 1", Policy::Fixed(Order::Priority))
    );
    assert_eq!(
        (cell.tasks[0].wcet.ns(), cell.tasks[0].priority),
        (27_000, Some(7))
    );
    assert!(
        said(&found, "`a` (SCHED_FIFO 7): 27us in 30us"),
        "{:?}",
        found.notes
    );
    // A round of the heavy phase follows its own last piece of work.
    let found = good(&phases(
        r#"{"loop":10,"timer":{"ref":"t","period":30},"run":14}"#,
    ));
    assert_eq!(found.set.cells[0].tasks[0].wcet.ns(), 17_000);
    let found = good(&phases(
        r#"{"loop":2,"run":1,"timer":{"ref":"t","period":30},"run2":14}"#,
    ));
    assert_eq!(found.set.cells[0].tasks[0].wcet.ns(), 17_000);
}

#[test]
fn a_thread_that_works_longer_than_its_period_is_never_left_out_of_a_verdict() {
    let high = r#""high":{"policy":"SCHED_FIFO","priority":50,"cpus":[0],"run":12000,"timer":{"ref":"t","period":10000}}"#;
    let low = r#""low":{"policy":"SCHED_FIFO","priority":10,"cpus":[0],"run":1000,"timer":{"ref":"u","period":10000}}"#;
    let error = error(&threads(&format!("{high},{low}")));
    assert!(error.contains("`high` works for up to 12ms"), "{error}");
    // Below a higher class it takes nothing from the other task.
    let fair = high
        .replace("SCHED_FIFO", "SCHED_OTHER")
        .replace("\"priority\":50,", "");
    let found = good(&threads(&format!("{fair},{low}")));
    assert_eq!(found.set.tasks(), 1);
}

#[test]
fn both_real_time_classes_are_one_cell_where_they_share_cpus() {
    let deadline = |cpus: &str| {
        format!(r#""dl":{{"policy":"SCHED_DEADLINE","dl-runtime":9000,"dl-period":10000{cpus}}}"#)
    };
    let fifo = |name: &str, cpus: &str| {
        format!(
            r#""{name}":{{"policy":"SCHED_FIFO","priority":20,"run":3000,"timer":{{"ref":"u","period":20000}}{cpus}}}"#
        )
    };
    let of = |all: &[String]| {
        let found = good(&threads(&all.join(",")));
        let cells = found.set.cells.iter();
        let cells: Vec<_> = cells
            .map(|cell| (cell.name.clone(), cell.policy, cell.tasks.len()))
            .collect();
        (cells, found.on_one_cpu, found.uncovered, found.set.enforcer)
    };
    let (zero, one, both) = (r#","cpus":[0]"#, r#","cpus":[1]"#, r#","cpus":[0,1]"#);
    let fixed = Policy::Fixed(Order::Priority);
    let apart = [deadline(zero), fifo("ff", zero), fifo("gg", one)];
    let (cells, on_one, uncovered, enforcer) = of(&apart);
    let named = |name: &str, policy, tasks| (name.to_owned(), policy, tasks);
    assert_eq!(
        cells,
        [
            named("cpu 0", Policy::EdfOverFixed, 2),
            named("cpu 1", fixed, 1)
        ]
    );
    assert!(on_one.is_empty() && uncovered.is_empty());
    assert_eq!(enforcer, Some(model::Enforcer::Deadline));
    // One that may run on both cpus joins the threads of each.
    let other = fifo("hh", one).replace("\"priority\":20", "\"priority\":21");
    let (cells, on_one, ..) = of(&[deadline(zero), fifo("ff", both), other]);
    assert_eq!(cells, [named("cpus 0,1", Policy::EdfOverFixed, 3)]);
    assert_eq!(on_one, ["cpus 0,1"]);
    let (cells, on_one, ..) = of(&[deadline(""), fifo("ff", "")]);
    assert_eq!(cells, [named("all", Policy::EdfOverFixed, 2)]);
    assert_eq!(on_one, ["all"]);
    // Alone they are as ever.
    let (cells, on_one, _, enforcer) = of(&[fifo("ff", zero), fifo("gg", one)]);
    assert_eq!(cells, [named("cpu 0", fixed, 1), named("cpu 1", fixed, 1)]);
    assert!(on_one.is_empty() && enforcer.is_none());
    // Equals among those below wait for each other's jobs.
    let equals = [deadline(zero), fifo("ff", zero), fifo("gg", zero)];
    let found = good(&threads(&equals.join(",")));
    let blocking = found.set.cells[0]
        .tasks
        .iter()
        .map(|task| task.blocking.ns());
    assert_eq!(blocking.collect::<Vec<_>>(), [0, 3_000_000, 0]);
}

#[test]
fn what_is_left_out_is_said_with_the_reason() {
    let good_one = r#""ok":{"cpus":[1],"run":1,"timer":{"ref":"t","period":9}}"#;
    for (thread, why) in [
        (r#"{"run":1,"sleep":5}"#, "they use `sleep`"),
        (r#"{"run":1}"#, "no timer"),
        (r#"{"timer":{"ref":"t","period":5}}"#, "do no work"),
        (
            r#"{"run":1,"timer":{"ref":"a","period":5},"timer2":{"ref":"b","period":5}}"#,
            "several timers",
        ),
        (
            r#"{"run":1,"suspend":"x","timer":{"ref":"a","period":5}}"#,
            "they use `suspend`",
        ),
        (
            r#"{"memrun":1,"timer":{"ref":"a","period":5}}"#,
            "they use `memrun`",
        ),
        (
            r#"{"instance":0,"run":1,"timer":{"ref":"a","period":5}}"#,
            "only other threads start them",
        ),
        (
            r#"{"policy":"SCHED_DEADLINE","cpus":[0],"run":1,"timer":{"ref":"a","period":5}}"#,
            "without dl-runtime",
        ),
        (
            r#"{"cpus":[0],"phases":{"p":{"policy":"SCHED_FIFO","run":1},"q":{"timer":{"ref":"a","period":5}}}}"#,
            "from phase to phase",
        ),
    ] {
        let found = good(&threads(&format!(r#"{good_one},"bad":{thread}"#)));
        assert_eq!(found.set.tasks(), 1, "{thread}");
        let line = found.notes.iter().find(|note| note.contains(why));
        assert!(
            line.is_some_and(|line| line.ends_with(": bad")),
            "{why}: {:?}",
            found.notes
        );
        // A thread that does not run takes nothing.
        let runs = !["do no work", "only other threads start them"].contains(&why);
        let uncovered = runs.then(|| "1 of 2 threads is left out: bad".to_owned());
        assert_eq!(found.uncovered, Vec::from_iter(uncovered), "{thread}");
        let alone = error(&threads(&format!(r#""bad":{thread}"#)));
        assert!(alone.contains("no task") && alone.contains(why), "{alone}");
    }
}

#[test]
fn no_verdict_for_a_thread_that_one_without_a_task_may_delay() {
    let set = |stranger: &str, thread: &str| {
        let thread =
            format!(r#""low":{{{thread},"run":1000,"timer":{{"ref":"t","period":10000}}}}"#);
        threads(&format!("{thread},\n\"busy\":{{{stranger}}}"))
    };
    let fifo = |priority: i64, cpus: &str| {
        format!(r#""policy":"SCHED_FIFO","priority":{priority},"cpus":{cpus}"#)
    };
    let fair = r#""policy":"SCHED_OTHER","cpus":[0]"#;
    let deadline =
        r#""policy":"SCHED_DEADLINE","dl-runtime":1000,"dl-period":10000,"cpus":[0]"#.to_owned();
    let endless = |sched: &str| format!(r#"{sched},"run":1000"#);
    let low = fifo(10, "[0]");
    for (stranger, thread) in [
        (endless(&fifo(50, "[0]")), low.clone()),
        (endless(&fifo(50, "[0]")), fair.to_owned()),
        // The order of equals is open.
        (endless(&fifo(10, "[0]")), low.clone()),
        (endless(&fifo(50, "[]")), low.clone()),
        (endless(&fifo(50, "[0]")), fifo(10, "[]")),
        (endless(&fifo(50, "[1,2]")), fifo(10, "[0,1]")),
        (
            format!(r#"{},"run":5,"sleep":5"#, fifo(50, "[0]")),
            low.clone(),
        ),
        (
            r#""policy":"SCHED_DEADLINE","run":5"#.to_owned(),
            deadline.clone(),
        ),
        // Of one that changes, the highest priority and every cpu count.
        (
            format!(
                r#""phases":{{"p":{{{},"run":5}},"q":{{{},"run":5}}}}"#,
                fifo(50, "[1]"),
                fifo(1, "[0]")
            ),
            low.clone(),
        ),
    ] {
        let error = error(&set(&stranger, &thread));
        assert!(
            error.starts_with("r.json:2: thread `low` may wait while `busy` ("),
            "{stranger} beside {thread}: {error}"
        );
        assert!(error.contains("left out because they "), "{error}");
    }
    for (stranger, thread) in [
        (endless(&fifo(9, "[0]")), low.clone()),
        (endless(&fifo(50, "[1]")), low.clone()),
        (endless(fair), low.clone()),
        (endless(fair), fair.to_owned()),
        (endless(&fifo(50, "[0]")), deadline),
        (
            format!(r#"{},"timer":{{"ref":"u","period":5}}"#, fifo(50, "[0]")),
            low.clone(),
        ),
    ] {
        let found = good(&set(&stranger, &thread));
        assert_eq!(found.set.tasks(), 1, "{stranger} beside {thread}");
        assert!(said(&found, ": busy"), "{:?}", found.notes);
    }
    // One that others start runs if they do.
    let child = format!(r#""instance":0,{},"run":5"#, fifo(50, "[0]"));
    assert_eq!(good(&set(&child, &low)).set.tasks(), 1);
    let fork = format!(r#"{child}}},"parent":{{"run":1,"phases":{{"p":{{"fork":"busy"}}}}"#);
    assert!(error(&set(&fork, &low)).contains("`busy` (priority 50)"));
}

#[test]
fn equals_of_sched_fifo_wait_for_each_other() {
    let fifo = |cpus: &str, policy: &str| {
        threads(&format!(
            r#""a":{{"instance":2,"policy":"{policy}","cpus":{cpus},"run":2,"timer":{{"ref":"t","period":20}}}},
               "b":{{"policy":"{policy}","priority":9,"cpus":{cpus},"run":3,"timer":{{"ref":"u","period":20}}}}"#
        ))
    };
    let found = good(&fifo("[0]", "SCHED_FIFO"));
    let tasks = &found.set.cells[0].tasks;
    let numbers: Vec<_> = (tasks.iter())
        .map(|t| (t.priority, t.blocking.ns()))
        .collect();
    assert_eq!(numbers, [(Some(3), 2_000), (Some(2), 0), (Some(1), 0)]);
    assert!(said(&found, "counted as blocking"));
    TaskSet::parse("x", &found.set.to_toml()).expect("a set");
    assert!(error(&fifo("[0]", "SCHED_RR")).contains("under SCHED_RR"));
    assert!(error(&fifo("[0,1]", "SCHED_FIFO")).contains("equal priority: a, a-2"));
}

#[test]
fn defaults_are_those_of_rt_app() {
    let text = threads(r#""a":{"policy":"SCHED_DEADLINE","dl-runtime":100}"#);
    let task = good(&text).set.cells[0].tasks[0].clone();
    assert_eq!((task.period.ns(), task.deadline.ns()), (100_000, 100_000));
    let old =
        threads(r#""a":{"policy":"SCHED_DEADLINE","runtime":100,"period":900,"deadline":800}"#);
    let task = good(&old).set.cells[0].tasks[0].clone();
    assert_eq!(
        (task.wcet.ns(), task.period.ns(), task.deadline.ns()),
        (100_000, 900_000, 800_000)
    );
}

#[test]
fn one_task_name_twice_is_two_tasks() {
    let one = |runtime: u32| {
        format!(r#""a":{{"policy":"SCHED_DEADLINE","dl-runtime":{runtime},"dl-period":9}}"#)
    };
    let set = good(&threads(&format!("{},{}", one(1), one(2)))).set;
    assert_eq!(set.cells[0].tasks[1].name, "a-2");
    assert_eq!(set.cells[0].tasks[1].wcet.ns(), 2_000);
}

#[test]
fn phases_that_agree_are_one_task() {
    let phases = |second: &str| {
        format!(
            r#"{{"tasks":{{"a":{{"policy":"SCHED_DEADLINE","phases":{{"p":{{"dl-runtime":1,"dl-period":9}},
            "q":{{"dl-runtime":{second},"dl-period":9}}}}}}}}}}"#
        )
    };
    assert_eq!(good(&phases("1")).set.tasks(), 1);
    assert!(error(&phases("2")).contains("r.json:2: phase `q`"));
}

#[test]
fn each_fault_has_its_line() {
    for (from, to, parts) in [
        ("2000,", "\"2 ms\",", ["r.json:7:", "microseconds"]),
        ("2000,", "-3,", ["r.json:7:", "negative"]),
        ("2000,", "20000,", ["r.json:4:", "at most the deadline"]),
        (
            "500, \"dl-period\"",
            "500, \"dl-runtime\": 600, \"dl-period\"",
            ["r.json:11:", "occurs twice"],
        ),
        (
            "\"instance\" : 2",
            "\"instance\" : 1e9",
            ["r.json:5:", "0 to 100000"],
        ),
        ("\"global\" :", "\"global\"", ["r.json:14:", "not JSON"]),
        ("\"tasks\" :", "\"task\" :", ["r.json:", "no `tasks`"]),
        ("SCHED_DEADLINE", "SCHED_DEAD", ["r.json:6:", "SCHED_RR"]),
        (
            "\"period\" : 1000",
            "\"mode\" : 1",
            ["r.json:12:", "no `period`"],
        ),
    ] {
        let error = error(&GOOD.replacen(from, to, 1));
        for part in parts {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
    }
    assert!(error(r#"{"tasks":[]}"#).contains("not an object"));
    assert!(error(&"[".repeat(100_000)).contains("not JSON"));
    let cpus = threads(r#""a":{"policy":"SCHED_DEADLINE","dl-runtime":1,"cpus":"all"}"#);
    assert!(error(&cpus).contains("a list of numbers"));
}

#[test]
fn keys_without_a_value_are_read_as_rt_apps_examples_have_them() {
    let text = r#"{
    "tasks" : {
        "sound" : { "policy" : "SCHED_FIFO", "priority" : 12, "loop" : -1, "cpus" : [0],
            "phases" : {
                "mix" : { "run" : 150, "timer" : { "ref" : "tick", "period" : 4000 } },
                "play" : { "run" : 275, "yield", "timer" : { "ref" : "tick", "period" : 4000 } }
            } },
        "helper" : { "policy" : "SCHED_FIFO", "priority" : 9, "cpus" : [0],
            "suspend", /* until it is needed */
            "run" : 120, "resume" : "sound" },
        "last" : { "run" : 10, "suspend"
        },
    },
    "global" : { "duration" : 3, "suspend", },
}"#;
    let found = good(text);
    let [cell] = found.set.cells.as_slice() else {
        panic!("one cell: {:?}", found.set);
    };
    let [sound] = cell.tasks.as_slice() else {
        panic!("one task: {:?}", cell.tasks);
    };
    assert_eq!((sound.wcet.ns(), sound.period.ns()), (275_000, 4_000_000));
    assert!(
        said(&found, "left out because they use `suspend`: helper, last"),
        "{:?}",
        found.notes
    );
    // A missing value is refused on its line, and text is no key.
    for key in [
        "dl-runtime",
        "cpus",
        "policy",
        "run",
        "timer",
        "instance",
        "phases",
    ] {
        let without = format!(
            "{{\"tasks\":{{\"a\":{{\"policy\":\"SCHED_DEADLINE\",\n\"{key}\",\"run\":5,\"dl-period\":9,\"dl-runtime\":7}}}}}}"
        );
        let read = on(2, &without);
        if key != "timer" && key != "run" {
            let error = read.expect_err(key).to_string();
            assert!(error.starts_with("r.json:2:"), "{key}: {error}");
        }
    }
    assert!(error(r#"{"tasks":{"a":"b" "c"}}"#).contains("not JSON"));
    assert!(error(r#"{"tasks":["a",{"b"}]}"#).contains("not an object"));
}
