use super::*;
use model::Size;
use record::series::{Quantity, SERIES_SUMMARY_SCHEMA, SeriesFigure, Swept};

/// A run with figures (subject, part, share of, unit, median).
fn run(scenario: &str, figures: &[(&str, &str, Option<&str>, Quantity, i64)]) -> SeriesSummary {
    let figure =
        |&(subject, part, of, unit, median): &(&str, &str, Option<&str>, _, i64)| SeriesFigure {
            subject: subject.to_owned(),
            part: part.to_owned(),
            of: of.map(str::to_owned),
            unit,
            count: 10,
            failed: 0,
            least: median - 1,
            median,
            median_interval: None,
            mean: median as f64 + 0.5,
            sd: Some(2.0),
            p90: None,
            p99: None,
            worst: median + 7,
            against_baseline: None,
            rounds_compared: 0,
        };
    SeriesSummary {
        schema: SERIES_SUMMARY_SCHEMA,
        run: "r".to_owned(),
        scenario: scenario.to_owned(),
        baseline_subject: None,
        figures: figures.iter().map(figure).collect(),
        not_measured: Vec::new(),
        unmet: Vec::new(),
        notes: Vec::new(),
        sweep: Vec::new(),
        failures: Vec::new(),
    }
}

/// The line of each published figure of this metric: (subject, kind, our labels, our first value).
fn lines(summary: &SeriesSummary, about: About) -> Vec<(String, Kind, Vec<String>, f64)> {
    let beside = set_beside(&published(), &single(summary), "here".to_owned());
    assert!(beside.blocks.iter().all(|block| block.metric == about));
    let lines = beside.blocks.into_iter().flat_map(|block| block.lines);
    lines
        .map(|line| {
            let labels = line.ours.iter().map(|ours| ours.label.clone()).collect();
            (line.subject, line.kind, labels, line.ours[0].value)
        })
        .collect()
}

#[test]
fn the_reboot_of_a_crashed_cell_stands_beside_cells_made_again_after_their_payload_was_killed() {
    let ns = Quantity::Ns;
    let summary = run(
        "recovery",
        &[
            ("bare", "payload killed", None, ns, 1_000_000),
            (
                "bare",
                "payload killed: restart",
                Some("payload killed"),
                ns,
                900_000,
            ),
            ("bare", "payload wedged", None, ns, 11_000_000),
            ("crun", "payload killed", None, ns, 20_000_000),
            (
                "crun attached",
                "payload lived on",
                None,
                Quantity::Count,
                1,
            ),
        ],
    );
    let labels = vec![
        "bare, payload killed, 10 rounds".to_owned(),
        "crun, payload killed, 10 rounds".to_owned(),
    ];
    let reboot = |kind, value| {
        (
            "Linux non-root cell reboot".to_owned(),
            kind,
            labels.clone(),
            value,
        )
    };
    assert_eq!(
        lines(&summary, About::Recovery),
        [
            reboot(Kind::Mean, 1_000_000.5),
            reboot(Kind::Median, 1_000_000.0),
            reboot(Kind::Sd, 2.0)
        ]
    );
}

#[test]
fn a_mission_stands_beside_an_ecosystem_of_cells() {
    let ns = Quantity::Ns;
    let summary = run(
        "mission",
        &[
            ("plane", "boot of the mission", None, ns, 1_000),
            ("plane", "reboot of the mission", None, ns, 3_000),
            ("plane", "end of the mission", None, ns, 2_000),
            ("motor", "reboot of a cell", None, ns, 500),
            ("motor", "recovery of a cell", None, ns, 700),
        ],
    );
    let found: Vec<(String, String)> = (lines(&summary, About::Recovery).into_iter())
        .filter(|(_, kind, ..)| *kind == Kind::Median)
        .map(|(subject, _, labels, _)| (subject, labels.join("; ")))
        .collect();
    let of = |subject: &str, ours: &str| (subject.to_owned(), format!("{ours}, 10 rounds"));
    assert_eq!(
        found,
        [
            of("Jailhouse boot", "plane, boot of the mission"),
            of("Linux non-root cell reboot", "motor, reboot of a cell"),
            of("Jailhouse reboot", "plane, reboot of the mission"),
        ]
    );
}

#[test]
fn containers_of_different_kinds_together_stand_beside_such_a_mixture_only() {
    use model::EngineKind::{Podman, PodmanRootless};
    let published = published();
    let skews = |mix: &[model::EngineKind]| -> Vec<f64> {
        let own = Own {
            about: About::StartSkew,
            kind: Kind::Value,
            label: String::new(),
            engine: None,
            subject: None,
            part: None,
            threads: None,
            preempt_rt: None,
            cells: mix.len() as u32,
            mix: mix.to_vec(),
            load: "idle".to_owned(),
            period_us: None,
            size: None,
            real_time: true,
            value: 1e6,
        };
        let groups = published.groups.iter();
        groups
            .filter(|group| group.metric == About::StartSkew)
            .flat_map(|group| group.values.iter().map(move |figure| (group, figure)))
            .filter(|(group, figure)| {
                counterparts(group, figure, std::slice::from_ref(&own)).is_ok()
            })
            .map(|(_, figure)| figure.value)
            .collect()
    };
    assert_eq!(skews(&[Podman, Podman]), [3.458]);
    assert_eq!(skews(&[Podman, PodmanRootless]), [22.276]);
    assert_eq!(skews(&[Podman, PodmanRootless, PodmanRootless]), [6.295]);
}

#[test]
fn what_a_document_says_of_sizes_stands_beside_the_ratio_of_means() {
    let ns = Quantity::Ns;
    let of = "qemu-microvm (emulated)";
    let sweep: Vec<Swept> = [(1, 1 << 28), (1, 1 << 30), (2, 1 << 28), (2, 1 << 30)]
        .into_iter()
        .map(|(vcpus, memory_bytes)| {
            let size = Size {
                vcpus: Some(vcpus),
                memory_bytes: Some(memory_bytes),
            };
            Swept {
                subject: format!("{of}, {size}"),
                of: of.to_owned(),
                size,
            }
        })
        .collect();
    let times = [2_000_000_000, 4_000_000_000, 1_000_000_000, 3_000_000_000];
    let figures: Vec<_> = (sweep.iter().zip(times))
        .map(|(one, time)| (one.subject.as_str(), "request to gone", None, ns, time))
        .collect();
    let summary = SeriesSummary {
        sweep: sweep.clone(),
        ..run("startup", &figures)
    };
    let beside = set_beside(&published(), &single(&summary), "here".to_owned());
    let block = |place: &str| {
        let mut blocks = beside.blocks.iter().filter(|block| block.place == place);
        let lines = blocks.next().map_or(&[][..], |block| &block.lines);
        lines
            .iter()
            .map(|line| {
                let ours = line.ours.iter();
                let ours =
                    ours.map(|ours| (ours.label.as_str(), (ours.value * 1e3).round() as u32));
                (line.published.as_str(), ours.collect::<Vec<_>>())
            })
            .collect::<Vec<_>>()
    };
    let more = [
        (
            "qemu-microvm (emulated), 1 vcpu: 2.00 s at 256MiB, 4.00 s at 1GiB",
            2_000,
        ),
        (
            "qemu-microvm (emulated), 2 vcpus: 1.00 s at 256MiB, 3.00 s at 1GiB",
            3_000,
        ),
    ];
    let second = [
        (
            "qemu-microvm (emulated), 256MiB: 2.00 s at 1 vcpu, 1.00 s at 2 vcpus",
            500,
        ),
        (
            "qemu-microvm (emulated), 1GiB: 4.00 s at 1 vcpu, 3.00 s at 2 vcpus",
            750,
        ),
    ];
    assert_eq!(
        block("section 4.2, text on Figs. 2 to 7"),
        [
            ("decreases", second.to_vec()),
            ("generally increases", more.to_vec())
        ]
    );
    // The table is of one size.
    let table = block("Table 2");
    let label = "qemu-microvm (emulated), 1 vcpu, 1GiB, 10 rounds";
    assert_eq!(table.len(), 2, "{table:?}");
    assert!(
        table
            .iter()
            .all(|(_, ours)| ours.len() == 1 && ours[0].0 == label)
    );
}

#[test]
fn machines_have_their_least_memory_and_what_qemu_takes_with_it() {
    let bytes = Quantity::Bytes;
    let summary = run(
        "footprint",
        &[
            ("qemu-pvh", "least guest memory", None, bytes, 96 << 20),
            (
                "qemu-pvh",
                "mapped memory of QEMU with the least guest memory",
                None,
                bytes,
                500_000_000,
            ),
        ],
    );
    let found = lines(&summary, About::Memory);
    let values: Vec<(&str, f64)> = (found.iter())
        .map(|(subject, _, _, value)| (subject.as_str(), *value))
        .collect();
    assert_eq!(
        values,
        [
            ("KVM/QEMU, Linux guest of 128 MB", 500_000_000.0),
            ("KVM/QEMU, Linux guest", f64::from(96 << 20))
        ]
    );
}

#[test]
fn memory_by_pmap_stands_beside_the_mapped_memory_of_process_and_runtime() {
    let bytes = Quantity::Bytes;
    let summary = run(
        "footprint",
        &[
            ("crun", "mapped memory", None, bytes, 1),
            ("crun attached", "PSS", None, bytes, 2),
            ("crun attached", "mapped memory", None, bytes, 12_000_000),
            (
                "crun attached",
                "mapped memory of crun",
                Some("mapped memory"),
                bytes,
                3,
            ),
        ],
    );
    let label = "crun attached, mapped memory, median of 10 rounds".to_owned();
    let subject = "crun, process and runtime".to_owned();
    assert_eq!(
        lines(&summary, About::Memory),
        [(subject, Kind::Value, vec![label], 12_000_000.0)]
    );
}

#[test]
fn a_computation_stands_beside_one_on_as_many_threads_under_the_same_load() {
    let ns = Quantity::Ns;
    let mut summary = run(
        "nqueens",
        &[
            ("docker", "1 thread", None, ns, 100),
            ("docker", "2 threads", None, ns, 60),
            ("docker", "2 threads, cpu load elsewhere", None, ns, 70),
            ("docker", "cpu time, 2 threads", None, ns, 110),
            (
                "docker",
                "temperature before, 2 threads",
                None,
                Quantity::Millicelsius,
                4,
            ),
        ],
    );
    let found = lines(&summary, About::Computation);
    let line = |subject: &str, part: &str, value| {
        let label = format!("docker, {part}, 10 rounds");
        (subject.to_owned(), Kind::Mean, vec![label], value)
    };
    assert_eq!(
        found,
        [
            line("Docker, 1 thread", "1 thread", 100.5),
            line("Docker, 2 threads", "2 threads", 60.5)
        ]
    );
    assert!(single(&summary).iter().all(|own| own.real_time));
    summary.unmet = vec![model::Requirement::unmet("podman", "no", "install it")];
    assert!(single(&summary).iter().all(|own| own.real_time));
    summary.unmet = vec![model::Requirement::unmet("SCHED_FIFO 80", "no", "sudo")];
    assert!(single(&summary).iter().all(|own| !own.real_time));
}

/// A name that no scenario uses would never match anything.
#[test]
fn every_figure_of_single_measurements_names_a_series_and_a_part_that_can_occur() {
    for group in &published().groups {
        for figure in &group.values {
            let subject = figure.series.as_deref().or(figure.engine.map(|e| e.name()));
            let part = figure.part.as_deref();
            let (scenario, part, unit) = match group.metric {
                About::Recovery => ("recovery", part, Quantity::Ns),
                About::Memory => ("footprint", part, Quantity::Bytes),
                _ => continue,
            };
            let Some(part) = part else {
                assert_eq!(subject, None, "{}: {}", group.place, figure.subject);
                continue;
            };
            let subject = subject.unwrap_or("bare");
            let own = single(&run(scenario, &[(subject, part, None, unit, 1)]));
            assert!(
                counterparts(group, figure, &own).is_ok(),
                "{}",
                figure.subject
            );
        }
    }
}
