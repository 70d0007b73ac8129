//! Trials that took turns: their comparisons, within which states, and the results.

use crate::synthetic::{Chance, GO, Synthetic, cell};
use model::EngineKind;
use record::summary::Metric;
use record::summary::{CellSummary, InTurns, RunSummary};
use record::trial::TurnsRecord;
use stats::Verdict;
use study::{JobsStudy, study};
use timecell_report::{Style, findings, html, table};

const TURN: u32 = 12;
const LAPS: u32 = 40;
const ROUNDS: u32 = 6;
/// Slots of a lap: a turn, and the gap between two.
const SLOT_NS: i64 = 14_000_000;

const PLAN: &str = "schema = 1\nname = \"t\"\nrounds = 6\nbaseline = \"bare\"\n[workload]\nkind = \"mac\"\njobs = 480\n[turns]\n\
    [[trial]]\nname = \"bare\"\ncells = [\"bare\"]\n[[trial]]\nname = \"again\"\ncells = [\"bare\"]\n\
    [[trial]]\nname = \"slow\"\ncells = [\"crun\"]\n\
    [[trial]]\nname = \"bare-cpu\"\ncells = [\"bare\"]\nloads = [\"cpu\"]\n\
    [[trial]]\nname = \"slow-cpu\"\ncells = [\"crun\"]\nloads = [\"cpu\"]\n";

/// The effect of the machine's states.
#[derive(Clone, Copy, PartialEq)]
enum Slows {
    Nothing,
    Work,
    WakeUps,
    /// Nothing, but the baseline once more takes 2 % longer than itself.
    Repetition,
}

/// The machine that all arms of a session share: two states, the slow one 1.9 times, in stays of 10 to 160 slots of time.
struct Machine {
    chance: Chance,
    slows: Slows,
}

impl Machine {
    /// The factor in each millisecond of a session of so many arms.
    fn session(&mut self, arms: i64, laps: u32) -> Vec<f64> {
        let length = usize::try_from(i64::from(laps) * arms * SLOT_NS / 1_000_000).unwrap();
        let mut factors = Vec::new();
        let mut slow = false;
        while factors.len() < length {
            let stay = 10.0 * 16_f64.powf(self.chance.unit());
            let factor = match self.slows {
                Slows::Work | Slows::WakeUps if slow => 1.9,
                _ => 1.0,
            };
            factors.extend(std::iter::repeat_n(factor, stay as usize));
            slow = !slow;
        }
        factors
    }
}

/// Six rounds of two groups: in each, arm 0 and 1 are alike and the last takes 5 % longer, and wakes up 5 % later where the
/// machine slows that down.
fn run(base: &std::path::Path, slows: Slows) -> (Synthetic, JobsStudy) {
    run_of(base, PLAN, slows, LAPS)
}

/// The same of another plan of the same trials, and of so many laps.
fn run_of(base: &std::path::Path, plan: &str, slows: Slows, laps: u32) -> (Synthetic, JobsStudy) {
    let plan = plan.replace("jobs = 480", &format!("jobs = {}", TURN * laps));
    let mut run = Synthetic::new(base, &plan);
    run.jobs = u64::from(TURN * laps);
    let mut machine = Machine {
        chance: Chance(11),
        slows,
    };
    let again = match slows {
        Slows::Repetition => 1.02,
        _ => 1.0,
    };
    for round in 1..=ROUNDS {
        for (group, trials) in [
            [("bare", 1.0), ("again", again), ("slow", 1.05)].as_slice(),
            [("bare-cpu", 2.0), ("slow-cpu", 2.1)].as_slice(),
        ]
        .into_iter()
        .enumerate()
        {
            let arms = trials.len() as i64;
            let factors = machine.session(arms, laps);
            for (arm, (name, level)) in trials.iter().enumerate() {
                let jobs: Vec<(i64, i64, i64)> = (0..TURN * laps)
                    .map(|index| {
                        let (lap, job) = (i64::from(index / TURN), i64::from(index % TURN));
                        // A B C, C B A.
                        let place = if lap % 2 == 0 {
                            arm as i64
                        } else {
                            arms - 1 - arm as i64
                        };
                        let at = (lap * arms + place) * SLOT_NS + job * 1_000_000;
                        let factor = factors[(at / 1_000_000) as usize];
                        // The first two jobs of a turn are five times as long: they must not count.
                        let settling = if job < 2 { 5.0 } else { 1.0 };
                        let mut noise = || 1.0 + 0.01 * machine.chance.normal();
                        let (wake, long) = match slows {
                            Slows::WakeUps => (20_000.0 * level * factor * settling * noise(), 1.0),
                            _ => (3_000.0, factor),
                        };
                        let long = 50_000.0 * level * long * settling * noise();
                        let start = GO + at + wake as i64;
                        (GO + at, start, start + long as i64)
                    })
                    .collect();
                run.turns = Some(TurnsRecord {
                    jobs: TURN,
                    settle: 2,
                    arms: arms as u32,
                    arm: arm as u32,
                    seed: u64::from(round) * 10 + group as u64,
                });
                let engine = if name.starts_with("slow") {
                    EngineKind::Crun
                } else {
                    EngineKind::Bare
                };
                run.trial(
                    name,
                    round,
                    vec![cell(&format!("1-{engine}"), engine, &jobs)],
                );
            }
        }
    }
    run.finish();
    let summary = study(&run.run).unwrap();
    (run, summary)
}

fn of<'a>(summary: &'a RunSummary, trial: &str) -> (&'a CellSummary, &'a InTurns) {
    let cell = summary
        .cells
        .iter()
        .find(|cell| cell.trial == trial)
        .unwrap();
    (cell, &cell.in_turns[0])
}

#[test]
fn each_is_compared_with_whom_it_shared_the_machine() {
    let dir = tempfile::tempdir().unwrap();
    let (_, summary) = run(dir.path(), Slows::Work);
    let bare = summary
        .cells
        .iter()
        .find(|cell| cell.trial == "bare")
        .unwrap();
    assert!(bare.in_turns.is_empty());
    let (again, turns) = of(&summary, "again");
    assert_eq!(
        (turns.against.as_str(), turns.laps),
        ("bare", u64::from(LAPS * ROUNDS))
    );
    assert_eq!(again.against_baseline.as_ref(), Some(&turns.comparison));
    // Under the load it is the plain process under the same load.
    let (slow_cpu, turns) = of(&summary, "slow-cpu");
    assert_eq!(turns.against, "bare-cpu");
    let ratio = turns.comparison.ratio_of_medians.value;
    assert!((1.0..1.1).contains(&ratio), "{ratio}");
    // The table's column is against the baseline, which it took no turns with.
    let against = slow_cpu.against_baseline.as_ref().unwrap();
    assert!(against.ratio_of_medians.value > 1.8);
}

#[test]
fn the_baseline_and_its_repetition_are_one_for_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let (_, summary) = run(dir.path(), Slows::Repetition);
    let said = findings(&summary);
    let of_responses = "The median response time was shown to differ: bare from itself by ";
    assert!(
        said.iter().any(|said| said.starts_with(of_responses)),
        "{said:#?}"
    );
    let (_, again) = of(&summary, "again");
    let (_, slow) = of(&summary, "slow");
    let (_, slow_cpu) = of(&summary, "slow-cpu");
    assert!(again.pooled_with.is_empty() && slow_cpu.pooled_with.is_empty());
    assert_eq!(slow.pooled_with, ["again"]);
    assert_eq!(slow.laps, u64::from(LAPS * ROUNDS));
    for (turns, expected) in [(again, 1.02), (slow, 1.05 / 1.02_f64.sqrt())] {
        let ratio = turns.comparison.ratio_of_medians.value;
        assert!((ratio - expected).abs() < 0.002, "{ratio} {expected}");
    }
    let found = findings(&summary).join("\n");
    assert!(
        found.contains("On this machine bare differs from itself by 2.0 %")
            && found.contains("again: bare once more, compared with bare alone"),
        "{found}"
    );
}

#[test]
fn within_states_five_percent_are_seen_that_drown_over_all_jobs() {
    let dir = tempfile::tempdir().unwrap();
    let (_, summary) = run(dir.path(), Slows::Work);
    let (_, turns) = of(&summary, "slow");
    assert!((turns.slow_over_fast.unwrap() - 1.9).abs() < 0.05);
    let within = turns.within.as_ref().unwrap();
    for ratio in [within.fast.as_ref().unwrap(), within.slow.as_ref().unwrap()] {
        assert_eq!(ratio.verdict, Verdict::Larger);
        assert!((ratio.value - 1.05).abs() < 0.005, "{ratio:?}");
    }
    assert!((0.3..0.7).contains(&within.slow_share_of_baseline.value));
    let said = table(&summary, Style::default());
    assert!(said.contains("in the fast state 1.05"), "{said}");
    assert!(said.contains("equal within noise"), "{said}");
    // The shares have their intervals, here and on the page.
    let share = &within.slow_share_of_other;
    let percent = |share: f64| format!("{:.0}", 100.0 * share);
    let [value, low, high] = [share.value, share.low.unwrap(), share.high.unwrap()].map(percent);
    let told = format!("{value} % ({low}..{high} %)");
    let sentence = format!("{told} of its jobs were in the slow state");
    // The terminal's lines are folded.
    let unfolded = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unfolded.contains(&sentence), "{sentence}: {said}");
    let page = html(&summary);
    assert!(page.contains(&told), "{told}");
}

/// A lap of three arms takes 42 ms, of which ten jobs of 1 ms count: jobs times period would be a quarter of the truth.
#[test]
fn stays_of_cells_in_turns_are_told_by_the_clock() {
    let dir = tempfile::tempdir().unwrap();
    let (_, summary) = run(dir.path(), Slows::Work);
    let mut tails = summary.tails.iter();
    let tail = tails
        .find(|tail| tail.trial == "bare" && tail.metric == Metric::ExecutionTime)
        .unwrap();
    let spacing_ms = tail.spacing_ns.unwrap() / 1e6;
    assert!((4.0..4.4).contains(&spacing_ms), "{spacing_ms}");
    let slow = tail.tail.states.unwrap().slow;
    let stay_ms = slow.dwell_ns.unwrap() / 1e6;
    let by_spacing = slow.dwell_jobs * spacing_ms;
    assert!((0.7..1.4).contains(&(stay_ms / by_spacing)), "{slow:?}");
    let (low, high) = slow.share_interval.unwrap();
    assert!(
        low < slow.share && slow.share < high && high < 1.0,
        "{slow:?}"
    );
    let said = findings(&summary).join("\n");
    assert!(
        !said.contains(&format!("({:.1} ms)", slow.dwell_jobs)),
        "{said}"
    );
    assert!(
        said.contains(&format!("({})", timecell_report::time(stay_ms * 1e6))),
        "{said}"
    );
}

#[test]
fn a_quiet_machine_has_one_state_and_a_plain_conclusion() {
    let dir = tempfile::tempdir().unwrap();
    let (_, summary) = run(dir.path(), Slows::Nothing);
    let (_, turns) = of(&summary, "again");
    assert_eq!((turns.slow_over_fast, &turns.within), (None, &None));
    let found = findings(&summary);
    assert!(
        found[0].starts_with("slow: the median execution time is 5.0 % longer than that of bare"),
        "{found:#?}"
    );
    assert!(found[1].starts_with("slow-cpu: "), "{found:#?}");
    // Told once: facts in the conclusion and the table get no further sentence.
    for again in ["slow: ", "slow-cpu: ", "again: the median"] {
        let told = found.iter().filter(|said| said.starts_with(again));
        assert!(told.count() <= 1, "{again}: {found:#?}");
    }
    let p99 = found
        .iter()
        .find(|said| said.starts_with("The p99 of the execution time"));
    assert!(p99.unwrap().contains("slow 1.04"), "{found:#?}");
    assert!(
        found[2].starts_with("No other was shown to change it: differences above 0."),
        "{found:#?}"
    );
    // 7,200 jobs that differ by 1 %.
    let least = turns.least_state_share.unwrap();
    assert!((0.02..=0.1).contains(&least), "{least}");
    let told = format!(
        "The execution time of all cells together shows no second state of the machine; one in which jobs take 1.5 times as long \
         for 10 to 160 jobs at a time would have been found if it held at least {} of jobs.",
        timecell_report::part(least)
    );
    assert!(found.contains(&told), "{told}: {found:#?}");
}

#[test]
fn where_no_cell_differs_it_is_told_what_would_have_been_seen() {
    let dir = tempfile::tempdir().unwrap();
    let (_, mut summary) = run(dir.path(), Slows::Nothing);
    summary
        .cells
        .retain(|cell| ["bare", "again"].contains(&cell.trial.as_str()));
    let found = findings(&summary);
    assert!(
        found[0].starts_with(
            "Nothing was shown to change the median execution time of bare: differences above 0."
        ),
        "{found:#?}"
    );
}

/// A cell slower by its own interval in the table, and not counted in the conclusion, is explained.
#[test]
fn an_interval_that_may_leave_out_one_by_chance_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (_, mut summary) = run(dir.path(), Slows::Nothing);
    let told = |summary: &RunSummary| {
        let found = findings(summary);
        found.into_iter().find(|said| said.contains("by chance"))
    };
    assert_eq!(told(&summary), None);
    for label in ["again", "slow-cpu"] {
        let cell = summary.cells.iter_mut().find(|cell| cell.label == label);
        let ratio = &mut cell.unwrap().in_turns[0].comparison.ratio_of_medians;
        (ratio.value, ratio.low, ratio.high) = (1.001, Some(1.00001), Some(1.002));
        ratio.verdict = Verdict::Larger;
    }
    let told = told(&summary).unwrap();
    assert!(
        told.contains("slow-cpu") && told.contains("of 3 such intervals") && told.contains("14 %"),
        "{told}"
    );
}

#[test]
fn states_of_wake_ups_are_found_and_shown_beside_the_ratios() {
    let dir = tempfile::tempdir().unwrap();
    let (_, summary) = run(dir.path(), Slows::WakeUps);
    let (cell, execution) = of(&summary, "slow");
    assert_eq!(
        (execution.metric, &execution.within),
        (Metric::ExecutionTime, &None)
    );
    let wakeup = cell
        .in_turns
        .iter()
        .find(|turns| turns.metric == Metric::WakeupLatency);
    let wakeup = wakeup.unwrap();
    assert!(
        (wakeup.slow_over_fast.unwrap() - 1.9).abs() < 0.05,
        "{wakeup:?}"
    );
    let within = wakeup.within.as_ref().unwrap();
    for ratio in [within.fast.as_ref().unwrap(), within.slow.as_ref().unwrap()] {
        assert_eq!(ratio.verdict, Verdict::Larger);
        assert!((ratio.value - 1.05).abs() < 0.005, "{ratio:?}");
    }
    // Not the conclusion's metric, and so in a table of its own.
    let said = table(&summary, Style::default());
    let line = |start: &str| {
        let part = said
            .split("the same jobs in turns, each against its own (ratio, 95 % interval)")
            .nth(1);
        let mut lines = part.unwrap_or_else(|| panic!("{said}")).lines();
        lines
            .find(|line| line.starts_with(start))
            .unwrap()
            .to_owned()
    };
    assert!(line("cell").ends_with("median of response time"), "{said}");
    assert!(line("slow-cpu").contains("bare-cpu   1.0"), "{said}");
    let page = html(&summary);
    let part = page
        .split("Wake-up latency in turns, against its own each")
        .nth(2)
        .unwrap();
    let part = part.split("</table>").next().unwrap();
    assert!(
        part.contains("in the slow state") && part.contains("1.05"),
        "{part}"
    );
    assert!(
        findings(&summary)
            .iter()
            .any(|said| said.contains("slow: wake-up latency: the machine has a state"))
    );
    let said = findings(&summary);
    let shown = said
        .iter()
        .find(|said| said.starts_with("The median response time was shown to differ: slow 5."));
    let shown = shown.unwrap_or_else(|| panic!("{said:#?}"));
    assert!(
        shown.contains("slow-cpu ") && !shown.contains("again"),
        "{shown}"
    );
    assert!(
        !said
            .iter()
            .any(|said| said.starts_with("The median execution time was shown"))
    );
}

#[test]
fn p99_is_compared_or_it_is_said_what_it_takes() {
    let dir = tempfile::tempdir().unwrap();
    let column = |summary: &RunSummary| {
        let said = table(summary, Style::default());
        let part = said.split("the same jobs in turns").nth(1).unwrap();
        let mut lines = part.lines().skip(2);
        assert!(
            lines
                .next()
                .unwrap()
                .contains("   p99 of execution time   ")
        );
        let line = lines.find(|line| line.starts_with("slow ")).unwrap();
        line.to_owned()
    };
    let (_, summary) = run(dir.path(), Slows::Nothing);
    let line = column(&summary);
    assert!(
        line.starts_with("slow       bare       1.04") && line.contains(") slower "),
        "{line}"
    );
    // 20 turns, of which 10 jobs each are compared: 299 jobs take 30, and one more for skipped ones.
    let dir = tempfile::tempdir().unwrap();
    let (_, summary) = run_of(dir.path(), PLAN, Slows::Nothing, 20);
    let (_, turns) = of(&summary, "slow");
    assert_eq!(turns.comparison.ratio_of_p99, None);
    assert_eq!(turns.jobs_for_p99, Some(31 * TURN));
    let said = table(&summary, Style::default()).replace("\n   ", " ");
    let beside = "in turns against bare-cpu, under the same disturbances: 1.0";
    let beside = said.split(beside).nth(1).unwrap();
    assert!(
        beside
            .split_once('\n')
            .unwrap()
            .0
            .contains("p99 needs 372 jobs"),
        "{said}"
    );
    let line = column(&summary);
    assert!(
        line.starts_with("slow       bare       needs 372 jobs a round"),
        "{line}"
    );
    let page = html(&summary);
    assert!(page.contains("needs 372 jobs a round"));
    // With so many there is one.
    let dir = tempfile::tempdir().unwrap();
    let (_, summary) = run_of(dir.path(), PLAN, Slows::Nothing, 31);
    let (_, turns) = of(&summary, "slow");
    assert!(turns.comparison.ratio_of_p99.is_some());
    assert_eq!(turns.jobs_for_p99, None);
}

#[test]
fn executions_are_not_taken_for_the_programs_work_alone() {
    let told = "A job is one execution of the program: these times include its start and exit";
    let of = |kind: &str| {
        let dir = tempfile::tempdir().unwrap();
        let plan = PLAN.replace("kind = \"mac\"", kind);
        let (_, summary) = run_of(dir.path(), &plan, Slows::Nothing, 10);
        let said = table(&summary, Style::default());
        (findings(&summary).join("\n"), said)
    };
    let (found, said) = of("kind = \"program\"\nprogram = [\"./app\"]");
    let differs = "slow: the median execution time is 5.0 % longer";
    let (sentence, of_machine) = (found.find(told).unwrap(), found.find(differs).unwrap());
    assert!(of_machine < sentence, "{found}");
    assert!(
        said.starts_with(
            "execution time of a job, one execution of the program from its start to its exit\n"
        ),
        "{said}"
    );
    assert!(
        said.contains("A job is one execution of the program"),
        "{said}"
    );
    // Jobs that the program reports are its own work.
    let reports = "kind = \"program\"\nprogram = [\"./app\"]\nreports = true";
    for kind in [reports, "kind = \"mac\""] {
        let (found, said) = of(kind);
        assert!(!found.contains("one execution"), "{found}");
        assert!(said.starts_with("execution time of a job\n"), "{said}");
    }
}
