//! Tails in words: curves, periodic spikes, states of one cell.

use record::summary::{CellSummary, Metric, RunSummary, TailSummary};
use stats::{OwnStates, Spikes, TAIL_JOBS};
use text::units::{Scale, time};
use text::words::{count, plural, share_of_jobs};

/// The name of a curve of this metric.
pub(crate) fn curve_name(metric: Metric) -> &'static str {
    match metric {
        Metric::ExecutionTime => "pWCET",
        Metric::ResponseTime => "pWCRT",
        Metric::WakeupLatency => "tail of the wake-up latency",
        Metric::StartTime => "tail of the time to start",
        Metric::ExitTime => "tail of the time to exit",
    }
}

/// For each cell its finding: of the primary metric, else of the first other one that has something.
fn of_cells<'a, T>(
    summary: &'a RunSummary,
    what: impl Fn(&'a TailSummary) -> Option<T>,
) -> Vec<(&'a TailSummary, T)> {
    let mut found: Vec<(&TailSummary, T)> = Vec::new();
    for tail in &summary.tails {
        let known = |(other, _): &(&TailSummary, T)| {
            (&other.trial, &other.cell) == (&tail.trial, &tail.cell)
        };
        if found.iter().any(known) {
            continue;
        }
        found.extend(what(tail).map(|what| (tail, what)));
    }
    found
}

/// At most this many cells are named one by one.
const NAMED: usize = 4;

/// A difference of at least this share of the period matters: a careful choice of a deadline or a budget leaves over a hundredth of it
/// anyway, and on most machines the tick or a colder cache makes as much.
const MATERIAL: f64 = 0.01;
/// States matter when both take at least this share of jobs: rarer ones show in p99 and the maximum.
const MATERIAL_SHARE: f64 = 0.01;

/// How much a job differs, as a share of the period; without a period everything matters.
fn of_period(difference_ns: i64, period_ns: i64) -> f64 {
    if period_ns <= 0 {
        return f64::INFINITY;
    }
    difference_ns as f64 / period_ns as f64
}

/// The findings that matter, the largest difference first, and how many others there are.
struct Material<'a, T> {
    found: Vec<(&'a TailSummary, &'a T)>,
    others: usize,
}

fn material<'a, T>(
    all: Vec<(&'a TailSummary, &'a T)>,
    size: impl Fn(&TailSummary, &T) -> Option<f64>,
) -> Material<'a, T> {
    let count = all.len();
    let mut sized: Vec<_> = all
        .into_iter()
        .filter_map(|(tail, what)| Some((size(tail, what).filter(|s| *s >= MATERIAL)?, tail, what)))
        .collect();
    sized.sort_by(|a, b| b.0.total_cmp(&a.0));
    let found: Vec<_> = sized
        .into_iter()
        .map(|(_, tail, what)| (tail, what))
        .collect();
    Material {
        others: count - found.len(),
        found,
    }
}

/// The states of a cell whose jobs show them by themselves; `None` where they were compared within the states that the
/// machine showed in all cells, which say more.
pub(crate) fn states_alone<'a>(
    summary: &RunSummary,
    tail: &'a TailSummary,
) -> Option<&'a OwnStates> {
    let is_of = |cell: &&CellSummary| (&cell.trial, &cell.cell) == (&tail.trial, &tail.cell);
    let in_turns = (summary.cells.iter().filter(is_of)).flat_map(|cell| &cell.in_turns);
    let is_shared = in_turns
        .filter(|turns| turns.metric == tail.metric)
        .any(|turns| turns.within.is_some());
    tail.tail.states.as_ref().filter(|_| !is_shared)
}

fn states(summary: &RunSummary) -> Material<'_, OwnStates> {
    material(
        of_cells(summary, |t| states_alone(summary, t)),
        |tail, r| {
            let share = r.fast.share.min(r.slow.share);
            let apart = r.slow.median_ns.saturating_sub(r.fast.median_ns);
            (share >= MATERIAL_SHARE).then(|| of_period(apart, tail.period_ns))
        },
    )
}

fn spikes(summary: &RunSummary) -> Material<'_, Spikes> {
    material(of_cells(summary, |t| t.tail.spikes.as_ref()), |tail, s| {
        let above = s.height_ns.saturating_sub(s.median_ns);
        Some(of_period(above, tail.period_ns))
    })
}

/// Whether a cell has states by itself that matter.
pub(crate) fn has_states(summary: &RunSummary) -> bool {
    !states(summary).found.is_empty()
}

/// Advice where jobs showed periodic spikes.
const OF_SPIKES: &str = "Against periodic spikes: measure again with another period, which tells their true one, and look for what \
    comes as often, such as the kernel's tick (4 ms for 250 Hz, 1 ms for 1,000 Hz; `nohz_full=` keeps it off a cpu).";

/// Sentences about spikes, states and curves.
pub(crate) fn findings(summary: &RunSummary) -> Vec<String> {
    let mut sentences = Vec::new();
    let Material {
        found: states,
        others,
    } = states(summary);
    for (tail, states) in states.iter().take(NAMED) {
        let of = tail.metric.title();
        sentences.push(format!(
            "{}: the {of} {}.",
            tail.label,
            states_text(states, tail)
        ));
    }
    let Material {
        found: spikes,
        others: more,
    } = spikes(summary);
    for (tail, spikes) in spikes.iter().take(NAMED) {
        let of = tail.metric.title();
        sentences.push(format!(
            "{}: the {of} {}. {}",
            tail.label,
            spikes_text(spikes, tail),
            alias_text(spikes, tail)
        ));
    }
    sentences.extend((!spikes.is_empty()).then(|| OF_SPIKES.to_owned()));
    let others = others + more;
    let more = states.len().saturating_sub(NAMED) + spikes.len().saturating_sub(NAMED);
    if more > 0 {
        sentences.push(format!(
            "The section on tails has {} more of this kind.",
            count(more as u64)
        ));
    }
    if others > 0 {
        sentences.push(format!(
            "The section on tails also has {} of less than {:.0} % of the period or of jobs.",
            plural(others as u64, "such pattern"),
            MATERIAL * 100.0
        ));
    }
    sentences.extend(curves(summary));
    sentences
}

/// How many cells have a curve of the primary metric.
fn curves(summary: &RunSummary) -> Option<String> {
    let fit = |tail: &&TailSummary| tail.metric == summary.primary && tail.tail.jobs >= TAIL_JOBS;
    let tails: Vec<&TailSummary> = summary.tails.iter().filter(fit).collect();
    let given: Vec<&TailSummary> = tails
        .iter()
        .filter(|tail| !tail.tail.curve.is_empty())
        .copied()
        .collect();
    let name = match curve_name(summary.primary) {
        "pWCET" => "pWCET curve",
        "pWCRT" => "pWCRT curve",
        _ => "curve of rare wake-up latencies",
    };
    let measured = summary
        .cells
        .iter()
        .filter(|cell| !cell.metrics.is_empty())
        .count();
    let short = measured.saturating_sub(tails.len()) as u64;
    let enough = match short {
        0 => String::new(),
        _ if tails.len() == 1 => format!(" that has the {} jobs for it", count(TAIL_JOBS)),
        _ => format!(" that have the {} jobs for it", count(TAIL_JOBS)),
    };
    let cells = format!("{}{enough}", plural(tails.len() as u64, "cell"));
    let short = match short {
        0 => String::new(),
        short => format!(" ({} more with fewer)", count(short)),
    };
    match (tails.as_slice(), given.as_slice()) {
        ([], _) => None,
        (_, []) => Some(format!(
            "No {name} is given for any of {cells}{short}: their jobs do not pass the tests that it rests on."
        )),
        ([one], _) => Some(format!("{}: {}.", one.label, last_text(one)?)),
        _ => {
            let named: Vec<String> = given
                .iter()
                .take(NAMED)
                .filter_map(|tail| Some(format!("{}, {}", tail.label, last_text(tail)?)))
                .collect();
            Some(format!(
                "A {name} is given for {} of {cells}{short}: {}.",
                given.len(),
                named.join("; ")
            ))
        }
    }
}

/// The findings that matter, each with the cell's name, and the number of the others.
pub(crate) fn lines(summary: &RunSummary) -> Vec<(String, String)> {
    let (states, spikes) = (states(summary), spikes(summary));
    let mut lines = Vec::new();
    for (tail, states) in states.found.iter().take(NAMED) {
        let line = format!(
            "two states of its own: {} for {} of jobs, {}{} at a time on average; else {}",
            time(states.slow.median_ns as f64),
            share_text(&states.slow),
            jobs(states.slow.dwell_jobs),
            stay_in_time(&states.slow, tail),
            time(states.fast.median_ns as f64),
        );
        lines.push((tail.label.clone(), with_metric(summary, tail, line)));
    }
    for (tail, spikes) in spikes.found.iter().take(NAMED) {
        let line = format!(
            "spikes to {} in the median every {}{}",
            time(spikes.height_ns as f64),
            jobs(spikes.period_jobs),
            in_time(spikes.period_jobs, tail),
        );
        lines.push((tail.label.clone(), with_metric(summary, tail, line)));
    }
    let mut curves = 0;
    for tail in summary.tails.iter().filter(|t| t.metric == summary.primary) {
        if let Some(last) = last_text(tail) {
            curves += 1;
            if curves <= NAMED {
                let line = format!("{}: {last}", curve_name(tail.metric));
                lines.push((tail.label.clone(), line));
            }
        }
    }
    let more = [states.found.len(), spikes.found.len(), curves];
    let more: usize = more.iter().map(|found| found.saturating_sub(NAMED)).sum();
    let others = states.others + spikes.others;
    let mut rest = Vec::new();
    if more > 0 {
        rest.push(format!(
            "{} more of such states, spikes and curves",
            count(more as u64)
        ));
    }
    if others > 0 {
        rest.push(format!(
            "{} of less than {:.0} % of the period or of jobs",
            plural(others as u64, "pattern"),
            MATERIAL * 100.0
        ));
    }
    if !rest.is_empty() {
        lines.push((
            String::new(),
            format!("note: report.html has {}", rest.join(", and ")),
        ));
    }
    lines
}

fn with_metric(summary: &RunSummary, tail: &TailSummary, line: String) -> String {
    if tail.metric == summary.primary {
        line
    } else {
        format!("{}: {line}", tail.metric.title())
    }
}

/// The last point of a curve in words.
pub(crate) fn last_text(tail: &TailSummary) -> Option<String> {
    let last = tail.tail.curve.last()?;
    let scale = Scale::of([last.low_ns, last.value_ns, last.high_ns]);
    let (value, ends) = scale.with_ends(last.value_ns, [last.low_ns, last.high_ns]);
    Some(format!(
        "one job in {} takes more than {value} (95 % band {ends})",
        count((1.0 / last.probability).round() as u64),
    ))
}

/// A number of jobs that need not be whole.
pub(crate) fn jobs(jobs: f64) -> String {
    if jobs >= 1_000.0 || (jobs - jobs.round()).abs() < 0.005 {
        plural(jobs.round() as u64, "job")
    } else if jobs >= 100.0 {
        format!("{jobs:.1} jobs")
    } else {
        format!("{jobs:.2} jobs")
    }
}

/// ` (1.2 s)`: how long so many jobs take, those of a cell that takes turns with the time in which it waits for the next.
fn in_time(jobs: f64, tail: &TailSummary) -> String {
    jobs_ns(jobs, tail).map_or_else(String::new, |ns| format!(" ({})", time(ns)))
}

/// How long so many jobs take, ns; `None` without a period.
pub(crate) fn jobs_ns(jobs: f64, tail: &TailSummary) -> Option<f64> {
    let of_period = (tail.period_ns > 0).then_some(tail.period_ns as f64);
    Some(jobs * tail.spacing_ns.or(of_period)?)
}

/// `20.4 % (18.1..22.9 %)`: the share of jobs in a state, with its interval where there is one.
fn share_text(state: &stats::State) -> String {
    share_of_jobs(state.share, state.share_interval)
}

/// ` (1.2 s)`: how long a stay in a state is, by the clock where it is known.
fn stay_in_time(state: &stats::State, tail: &TailSummary) -> String {
    match state.dwell_ns {
        Some(ns) => format!(" ({})", time(ns)),
        None => in_time(state.dwell_jobs, tail),
    }
}

/// `alternates between ...`
pub(crate) fn states_text(states: &OwnStates, tail: &TailSummary) -> String {
    let part = |state: &stats::State| {
        format!(
            "{} ({} of jobs in {}, mean {}{})",
            time(state.median_ns as f64),
            share_text(state),
            plural(state.visits, "stay"),
            jobs(state.dwell_jobs),
            stay_in_time(state, tail),
        )
    };
    format!(
        "alternates between two states of its own, with medians of {} and {}",
        part(&states.fast),
        part(&states.slow)
    )
}

/// `spikes every ...`
fn spikes_text(spikes: &Spikes, tail: &TailSummary) -> String {
    format!(
        "spikes to {} in the median (all jobs: {}) every {}{}, for {} each: {} of {} keep to this period, {:.2} % of all jobs; the \
         probability of this by chance is {}",
        time(spikes.height_ns as f64),
        time(spikes.median_ns as f64),
        jobs(spikes.period_jobs),
        in_time(spikes.period_jobs, tail),
        jobs(spikes.jobs_per_spike),
        count(spikes.in_phase),
        plural(spikes.spikes, "spike"),
        spikes.share * 100.0,
        chance(spikes.chance),
    )
}

/// A probability of less than one in a million.
pub(crate) fn chance(chance: f64) -> String {
    if chance < 1e-12 {
        "below 1e-12".to_owned()
    } else {
        format!("{chance:.0e}")
    }
}

/// Which faster disturbances would look the same, since they are seen once a job only.
fn alias_text(spikes: &Spikes, tail: &TailSummary) -> String {
    if tail.spacing_ns.is_none() && tail.period_ns <= 0 {
        return "Faster ones may look the same, as each job sees them only once.".to_owned();
    }
    match images(spikes, tail) {
        Some(images) => format!("Seen once per job, one {images} would look the same."),
        None => {
            "Its jobs come in turns, at uneven times: the period is counted in jobs, its time is a mean."
                .to_owned()
        }
    }
}

/// The slowest of the disturbances faster than jobs that would look the same; `None` where jobs are not evenly spaced, as in turns: a
/// faster one that is periodic in time looks the same nowhere.
pub(crate) fn images(spikes: &Spikes, tail: &TailSummary) -> Option<String> {
    if tail.spacing_ns.is_some() || tail.period_ns <= 0 {
        return None;
    }
    let job = tail.period_ns as f64;
    let frequency = 1.0 / spikes.period_jobs;
    let images = [job / (1.0 + frequency), job / (1.0 - frequency)];
    let scale = Scale::of(images);
    Some(format!(
        "every {} or every {}",
        scale.show(images[0]),
        scale.show(images[1])
    ))
}
