//! Tables by their exact text; the promises of the HTML page and of the figures.

use crate::synthetic::{Synthetic, cell, lacking, miss, provenance, taking};
use model::EngineKind::{Bare, Podman, PodmanRootless};
use record::run::Status;
use study::{compare, study};
use timecell_report::{Style, compare_html, compare_table, figures, findings, html, table};

const PLAN: &str = "schema = 1\nname = \"overhead\"\nquestion = \"What <script>alert(1)</script> does it cost?\"\nrounds = 3\n\
                    [workload]\nkind = \"mac\"\njobs = 400\n[[trial]]\ncells = [\"bare\"]\n\
                    [[trial]]\ncells = [\"podman\"]\n[[trial]]\ncells = [\"docker\"]\n";

/// `base` + 0, 1, 2, ... ns.
fn ramp(base: i64, jobs: i64) -> Vec<(i64, i64, i64)> {
    taking(&(0..jobs).map(|k| base + k).collect::<Vec<_>>())
}

fn overhead(base: &std::path::Path, jobs: i64) -> Synthetic {
    let mut run = Synthetic::new(base, PLAN);
    lacking(&mut run.manifest);
    for round in [1, 2, 3] {
        run.trial(
            "bare",
            round,
            vec![cell("1-bare", Bare, &ramp(270_000, jobs))],
        );
        let mut podman = cell("1-podman", Podman, &ramp(297_000, jobs));
        miss(&mut podman, 3, 1);
        run.trial("podman", round, vec![podman]);
    }
    run
}

#[test]
fn the_table_has_the_shape_that_was_promised() {
    let base = tempfile::tempdir().unwrap();
    let run = overhead(base.path(), 400);
    let text = table(&study(&run.run).unwrap(), Style::default());
    let wanted = "\
execution time of a job

cell       median        p99        max   wake-up p99   wake-up max   against bare (ratio, 95 % interval)   late (95 % interval)   skipped
bare     270.2 us   270.4 us   270.4 us       2.00 us       2.00 us   1                                             0 (0..1.5 %)         0
podman   297.2 us   297.4 us   297.4 us       2.00 us       2.00 us   1.100 (1.099..1.100) slower                   0 (0..1.5 %)         3
docker   not measured: no daemon answers on /run/docker.sock (apt install docker.io)
note: bounding p99.9 takes 2,995 jobs of each cell (--rounds 8), p99.99 29,956 (--rounds 75)
note: no number of jobs bounds the maximum; the largest of 1,200 independent jobs shows, with 95 % confidence, that at
   most 0.25 % of all exceed it
podman: the median execution time is 10 % longer than that of bare: 1.100 (1.099..1.100) times as long.
";
    assert_eq!(text, wanted);
}

#[test]
fn too_few_samples_print_how_many_are_needed() {
    let base = tempfile::tempdir().unwrap();
    let run = overhead(base.path(), 90);
    let summary = study(&run.run).unwrap();
    let text = table(&summary, Style::default());
    assert!(
        text.contains("bare     270.0 us   needs 299   270.1 us     needs 299       2.00 us   1"),
        "{text}"
    );
    let page = html(&summary);
    assert!(page.contains("needs 299") && page.contains("needs 2,995"));
    // As the doctor counts them.
    assert!(page.contains("2 warnings in 5 checks"));
    let found = findings(&summary).join(" ");
    assert!(
        found.contains("no cell has the 299 samples that a p99 needs"),
        "{found}"
    );
    assert!(!found.contains("p99 is"), "{found}");
}

#[test]
fn colour_adds_nothing_but_colour() {
    let base = tempfile::tempdir().unwrap();
    let run = overhead(base.path(), 400);
    let summary = study(&run.run).unwrap();
    let colour = Style {
        colour: true,
        ..Style::default()
    };
    let painted = table(&summary, colour);
    assert!(painted.contains("\u{1b}[33m1.100 (1.099..1.100) slower\u{1b}[0m"));
    let plain = ["\u{1b}[33m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[0m"]
        .iter()
        .fold(painted, |text, code| text.replace(code, ""));
    assert_eq!(plain, table(&summary, Style::default()));
}

fn not_real_time(base: &std::path::Path) -> Synthetic {
    let plan = PLAN.replace("\"docker\"", "\"podman-rootless\"");
    let mut run = Synthetic::new(base, &plan);
    run.trial("bare", 1, vec![cell("1-bare", Bare, &ramp(270_000, 400))]);
    let mut other = cell("1-podman-rootless", PodmanRootless, &ramp(280_000, 400));
    other.record.class_wanted = "OTHER".to_owned();
    other.record.class_got = Some("OTHER".to_owned());
    other.record.real_time = false;
    run.trial("podman-rootless", 1, vec![other]);
    run.manifest.status = Status::Interrupted;
    run.finish();
    run
}

#[test]
fn equal_notes_of_cells_are_told_once() {
    let base = tempfile::tempdir().unwrap();
    let four = "name = \"bare\"\ncells = [\"bare\", \"bare\", \"bare\", \"bare\"]";
    let plan = PLAN.replace("cells = [\"bare\"]", four);
    let mut run = Synthetic::new(base.path(), &plan);
    let noted = |id: &str, notes: &[&str]| {
        let mut cell = cell(id, Bare, &ramp(270_000, 400));
        cell.record.notes = notes.iter().map(|&note| note.to_owned()).collect();
        cell
    };
    let cells = ["1-bare", "2-bare", "3-bare"].map(|id| noted(id, &["shared by all", "of three"]));
    let last = noted("4-bare", &["shared by all", "of one"]);
    run.trial("bare", 1, cells.into_iter().chain([last]).collect());
    run.finish();
    let text = table(&study(&run.run).unwrap(), Style::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in [
        "note: 4 cells: shared by all",
        "note: bare/1-bare, bare/2-bare, bare/3-bare: of three",
        "note: bare/4-bare: of one",
    ] {
        assert_eq!(text.matches(told).count(), 1, "{told}: {text}");
    }
    assert_eq!(text.matches("shared by all").count(), 1, "{text}");
}

#[test]
fn what_was_not_real_time_says_so_everywhere() {
    let base = tempfile::tempdir().unwrap();
    let run = not_real_time(base.path());
    let summary = study(&run.run).unwrap();
    let text = table(&summary, Style::default());
    let line = text
        .lines()
        .find(|line| line.starts_with("podman-rootless"))
        .unwrap();
    assert!(
        line.ends_with(
            "undecided: one round                     0         0   OTHER, not real-time"
        ),
        "{line}"
    );
    assert!(text.contains("not real-time: 1 of 2 cells"), "{text}");
    let page = html(&summary);
    assert!(
        page.contains("<strong>not real-time:</strong> podman-rootless ran in no real-time class")
    );
    assert!(page.contains(
        "<th scope=\"row\">podman-rootless<br><span class=\"caution\">not real-time</span>"
    ));
    assert!(findings(&summary)[0].starts_with(
        "podman-rootless (not real-time): no ratio to bare can be computed from 1 round;"
    ));
    for (name, svg) in figures(&summary) {
        assert!(svg.contains(", not real-time"), "{name}");
    }
}

#[test]
fn a_run_that_did_not_end_well_opens_with_a_banner() {
    let base = tempfile::tempdir().unwrap();
    let mut run = not_real_time(base.path());
    for (status, word) in [
        (Status::Interrupted, "Interrupted:"),
        (Status::Failed, "Failed:"),
        (Status::Running, "Not finished:"),
        (Status::Complete, "Incomplete:"),
    ] {
        run.manifest.status = status;
        run.finish();
        let page = html(&study(&run.run).unwrap());
        assert!(
            page.contains(&format!(
                "<strong>{word}</strong> 2 of 9 planned trials are on record"
            )),
            "{word}"
        );
    }
    let whole = overhead(base.path(), 10);
    let page = html(&study(&whole.run).unwrap());
    assert!(!page.contains("planned trials are on record"));
}

/// Nothing outside is named, so nothing can be fetched, and no text becomes markup.
#[test]
fn the_page_is_alone_and_escaped() {
    let base = tempfile::tempdir().unwrap();
    let mut machine = provenance();
    machine.hostname = Some("<script>host</script>\u{1b}[31m".to_owned());
    machine.checks[0].found = "<script>found</script>".to_owned();
    let mut run = Synthetic::with(base.path(), PLAN, &machine);
    let mut one = cell("1-bare", Bare, &ramp(270_000, 400));
    one.record.notes.push("<script>note</script>".to_owned());
    one.record.class_got = Some("<script>class</script>".to_owned());
    run.trial_failed("bare", 1, vec![one], Some("<script>failure</script>"));
    run.trial("bare", 2, vec![cell("1-bare", Bare, &ramp(270_000, 400))]);
    run.manifest.requirements = vec![model::Requirement::unmet(
        "<script>", "<script>", "<script>",
    )];
    run.finish();
    let summary = study(&run.run).unwrap();
    let both = compare(&run.run, &run.run).unwrap();
    let mut pages = vec![html(&summary), compare_html(&both)];
    for page in &pages {
        for outside in [
            "http",
            "src=",
            "@import",
            "url(",
            "<link",
            "<iframe",
            "javascript",
        ] {
            assert!(!page.contains(outside), "{outside}");
        }
        for link in page.split("href=\"").skip(1) {
            assert!(link.starts_with('#'), "{}", &link[..20]);
        }
    }
    pages.extend(figures(&summary).into_iter().map(|(_, svg)| svg));
    for page in &pages {
        assert!(!page.contains("<script") && !page.contains('\u{1b}'));
    }
    assert!(pages[0].contains("What &lt;script&gt;alert(1)&lt;/script&gt; does it cost?"));
    assert!(pages[0].contains("&lt;script&gt;found") && pages[0].contains("&lt;script&gt;failure"));
}

#[test]
fn the_page_names_what_is_lacking_and_every_heading_is_linked() {
    let base = tempfile::tempdir().unwrap();
    let run = overhead(base.path(), 400);
    let page = html(&study(&run.run).unwrap());
    assert!(page.contains("<code>apt install docker.io</code>"));
    for link in page.split("href=\"#").skip(1) {
        let id = link.split('"').next().unwrap();
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    for figure in [
        "box-plot",
        "ratios",
        "ccdf",
        "tail-ratios",
        "time-series",
        "rounds",
        "creation",
    ] {
        assert!(
            page.contains(&format!("<title id=\"{figure}-t\">")),
            "{figure}"
        );
    }
    let warning = page.find(">warning<").unwrap();
    assert!(warning < page.find(">good<").unwrap());
}

#[test]
fn figures_stand_alone() {
    let base = tempfile::tempdir().unwrap();
    let run = overhead(base.path(), 400);
    let figures = figures(&study(&run.run).unwrap());
    assert_eq!(figures.len(), 7);
    for (name, svg) in figures {
        assert!(name.ends_with(".svg"));
        assert!(svg.starts_with("<svg") && svg.contains("xmlns=\"http://www.w3.org/2000/svg\""));
        assert!(
            svg.contains("fill:#ffffff") && !svg.contains("var("),
            "{name}"
        );
        assert_eq!(svg.matches("http").count(), 1, "{name}");
    }
}

#[test]
fn two_runs_are_set_side_by_side_with_their_cautions() {
    let base = tempfile::tempdir().unwrap();
    let first = overhead(base.path(), 400);
    let mut machine = provenance();
    machine.kernel_release = Some("6.19.0".to_owned());
    machine.checks[0].state = host::doctor::State::Good;
    let mut second = Synthetic::with(
        base.path(),
        &PLAN.replace("rounds = 3", "rounds = 1"),
        &machine,
    );
    second.trial("bare", 1, vec![cell("1-bare", Bare, &ramp(540_000, 400))]);
    let both = compare(&first.run, &second.run).unwrap();
    let text = compare_table(
        &both,
        Style {
            width: 200,
            ..Style::default()
        },
    );
    let wanted = "first    2026-11-21T210500-overhead
second   2026-11-21T210500-overhead-2
caution: The runs were made at different \
times and are not interleaved: a difference may come from the machine, not the cell.
caution: The runs have different numbers of rounds; \
each cell is compared over as many rounds as both have.
caution: The experiments differ, which may explain the ratios.

cell   first \
median   second median   second / first (over rounds, 95 % interval)   p99 ratio
bare       270.2 us        540.2 us   undecided: one \
round                          undecided: one round

note: each ratio is the geometric mean over rounds of the second run's median (or p99) divided by the first's; \
the medians beside it pool the rounds, so dividing them may give a different ratio

only in the first: podman
experiment differs: plan: 3 \
trials x 3 rounds x 400 jobs of mac (100,000 steps), period 1ms on an absolute grid, FIFO 80, cpu chosen on the machine | 3 trials x 1 \
round x 400 jobs of mac (100,000 steps), period 1ms on an absolute grid, FIFO 80, cpu chosen on the machine
machine differs: kernel: \
6.18.0 | 6.19.0
machine differs: doctor: preemption model: warning: PREEMPT_DYNAMIC, voluntary | good: PREEMPT_DYNAMIC, voluntary
";
    let joined = text.replace("\n    ", " ");
    assert_eq!(joined, wanted);
    let page = compare_html(&both);
    assert!(page.contains("6.19.0") && page.contains("not interleaved"));
}

#[test]
fn numbers_of_many_rounds_do_not_overlap() {
    for (rounds, first, last) in [(3, "round 1", "round 3"), (12, ">1<", ">12<")] {
        let base = tempfile::tempdir().unwrap();
        let plan = PLAN.replace("rounds = 3", &format!("rounds = {rounds}"));
        let mut run = Synthetic::new(base.path(), &plan);
        for round in 1..=rounds {
            let jobs = ramp(270_000, 40);
            run.trial("bare", round, vec![cell("1-bare", Bare, &jobs)]);
        }
        run.finish();
        let summary = study(&run.run).unwrap();
        let all = figures(&summary);
        let (_, svg) = all
            .iter()
            .find(|(name, _)| name.contains("time-series"))
            .unwrap();
        assert!(svg.contains(first) && svg.contains(last), "{svg}");
        // Labels of rounds are those in the lowest line: each as wide as its characters, at 7 px, and centred.
        let texts = svg
            .split("<text class=\"faint mid\" x=\"")
            .skip(1)
            .map(|text| {
                let (x, rest) = text.split_once('"').unwrap();
                let label = rest.split_once('>').unwrap().1.split_once('<').unwrap().0;
                (x.parse::<f64>().unwrap(), 7.0 * label.len() as f64)
            });
        let labels: Vec<(f64, f64)> = texts.collect();
        assert_eq!(labels.len(), rounds as usize, "{svg}");
        for two in labels.windows(2) {
            let gap = two[1].0 - two[0].0 - (two[0].1 + two[1].1) / 2.0;
            assert!(gap > 4.0, "{two:?}");
        }
    }
}
