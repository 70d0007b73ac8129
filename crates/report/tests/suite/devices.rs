//! Several devices side by side: names, largest values, and who is lower beyond intervals.

use crate::synthetic::{Chance, Synthetic, cell, provenance, taking};
use host::provenance::Provenance;
use model::EngineKind::{Bare, Qemu};
use record::export::{Form, write_csv, write_cyclictest};
use record::trial::MachineRecord;
use study::study;
use timecell_report::{Device, Style, devices_figures, devices_html, devices_table};

fn toml(periods: &str) -> String {
    format!(
        "schema = 1\nname = \"t\"\nrounds = 1\n[workload]\nkind = \"mac\"\njobs = 1000\n[matrix]\ncells = [[\"bare\"]]\n\
         periods = [{periods}]\n"
    )
}

/// A device whose jobs take this many ns at least, and its trials.
fn device(name: &str, least_ns: i64, periods: &[&str]) -> Device {
    device_on(&provenance(), name, (least_ns, None), periods)
}

/// The same on this machine, its cells perhaps machines.
fn device_on(
    on: &Provenance,
    name: &str,
    (least_ns, machine): (i64, Option<&MachineRecord>),
    periods: &[&str],
) -> Device {
    let dir = tempfile::tempdir().unwrap();
    let quoted: Vec<String> = periods.iter().map(|each| format!("\"{each}\"")).collect();
    let mut run = Synthetic::with(dir.path(), &toml(&quoted.join(", ")), on);
    let mut chance = Chance(least_ns as u64);
    for period in periods {
        let jobs: Vec<i64> = (0..1_000)
            .map(|_| least_ns + (10_000.0 * chance.unit()) as i64)
            .collect();
        let mut one = cell("1-bare", Bare, &taking(&jobs));
        one.record.machine = machine.cloned();
        run.trial(&format!("bare-{period}"), 1, vec![one]);
    }
    let study = study(&run.run).unwrap();
    Device {
        name: name.to_owned(),
        study,
        judged: None,
    }
}

#[test]
fn the_faster_of_several_is_so_in_the_trials_that_others_have() {
    let devices = [
        device("slow", 90_000, &["1ms", "2ms"]),
        device("fast <b>", 30_000, &["1ms", "2ms", "4ms"]),
        device("alike", 90_000, &["1ms"]),
    ];
    let text = devices_table(&devices, Style::default());
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    for (name, lowest) in [
        ("slow", "0 of 2"),
        ("fast <b>", "2 of 2"),
        ("alike", "0 of 1"),
    ] {
        assert!(line(name).ends_with(lowest), "{text}");
    }
    // A trial that one device alone has.
    let [slow, alike] = ["bare-2ms", "bare-4ms"].map(|name| line(name).matches(" us").count());
    assert_eq!([slow, alike], [2, 1], "{text}");
    assert!(
        text.contains("The largest execution time seen: slow "),
        "{text}"
    );
    let page = devices_html(&devices);
    for part in [
        "fast &lt;b&gt;",
        "ran another experiment than slow",
        "id=\"maxima\"",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<b>") && !page.contains("NaN"));
    // Three panels, with two, two and one bar, and a sample of each device.
    let (name, svg) = &devices_figures(&devices)[0];
    assert_eq!(name, "max-by-device.svg");
    assert_eq!(svg.matches("class=\"bar f").count(), 3 + 3 + 2 + 1);
}

/// A machine that QEMU's translator executes.
fn translated() -> MachineRecord {
    MachineRecord {
        board: "q35".to_owned(),
        kernel: "6.1".to_owned(),
        vcpus: 1,
        memory_bytes: 256 << 20,
        kvm: false,
        why_not_kvm: None,
        boot_ns: 1,
        clock_offset_ns: 0,
        clock_error_ns: 1,
        clock_drift_ns: 0,
        helpers: Vec::new(),
    }
}

const SAID: &str = "emulated: not representative of timing";

#[test]
fn emulated_devices_and_cells_are_labelled() {
    let mut emulated = provenance();
    emulated.virtualization.emulated = Some("qemu-tcg".to_owned());
    let devices = [
        device("real", 30_000, &["1ms"]),
        device_on(&emulated, "board", (90_000, None), &["1ms"]),
        device_on(
            &provenance(),
            "host",
            (50_000, Some(&translated())),
            &["2ms"],
        ),
    ];
    let text = devices_table(
        &devices,
        Style {
            width: 200,
            ..Style::default()
        },
    );
    let lines = |begin: &str| {
        text.lines()
            .filter(|line| line.starts_with(begin))
            .collect::<Vec<_>>()
    };
    assert!(
        lines("board").iter().all(|line| line.contains(SAID)),
        "{text}"
    );
    assert!(lines("host")[0].contains(SAID), "{text}");
    assert!(!lines("real")[0].contains("emulated"), "{text}");
    assert_eq!(lines("bare-2ms (emulated)").len(), 1, "{text}");
    assert_eq!(lines("bare-1ms (emulated)").len(), 0, "{text}");
    assert!(
        text.contains("board (emulated) 100.0 us (bare-1ms)"),
        "{text}"
    );
    assert!(text.contains("(bare-2ms (emulated))"), "{text}");
    assert!(
        devices_html(&devices).contains("Some bars are emulated: not representative of timing.")
    );
    assert!(
        devices_figures(&devices)[0]
            .1
            .contains(">board (emulated)<")
    );
}

#[test]
fn a_run_with_emulated_times_says_so_wherever_it_is_written() {
    let mut board = provenance();
    board.virtualization.emulated = Some("qemu-tcg".to_owned());
    let vm = toml("\"1ms\"").replace("bare", "qemu");
    for (on, toml, engine, label) in [
        (&provenance(), &toml("\"1ms\""), Bare, None),
        (&board, &toml("\"1ms\""), Bare, Some("(qemu-tcg)")),
        (&provenance(), &vm, Qemu, Some("(some cells)")),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut run = Synthetic::with(dir.path(), toml, on);
        let mut one = cell("1-cell", engine, &taking(&[90_000; 50]));
        one.record.machine = (engine == Qemu).then(translated);
        run.trial(
            if engine == Qemu {
                "qemu-1ms"
            } else {
                "bare-1ms"
            },
            1,
            vec![one],
        );
        let run = run.run;
        let caution = run.caution().unwrap();
        assert_eq!(caution, label.map(|label| format!("{SAID} {label}")));
        study::Studied::keep(&study(&run).unwrap(), &run).unwrap();
        let mut texts = vec![std::fs::read_to_string(run.dir().join("summary.json")).unwrap()];
        for form in [Form::Json, Form::Histogram] {
            texts.push(write_cyclictest(&run, form, 200).unwrap().text);
        }
        for text in &texts {
            assert_eq!(text.contains(SAID), caution.is_some(), "{text}");
        }
        // It is read as before.
        let summary: record::summary::RunSummary = run.read().unwrap();
        assert_eq!(summary.cells.len(), 1);
        let mut csv = Vec::new();
        write_csv(&run, run.dir(), &mut csv).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let rows = csv.lines().skip(1);
        assert!(
            rows.clone()
                .all(|row| row.contains("emulated") == caution.is_some()),
            "{csv}"
        );
        assert_eq!(rows.count(), 50);
        let both = study::Compared::of(&run, &run).unwrap();
        let said = timecell_report::compared_table(&both, Style::default());
        assert_eq!(
            said.replace('\n', " ").contains("emulated"),
            caution.is_some(),
            "{said}"
        );
    }
}
