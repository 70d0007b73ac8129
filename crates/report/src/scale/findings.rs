//! A scale study's findings, engine by engine, in sentences with figures.

use model::Enforcer;
use model::EngineKind;
use record::crowd::CrowdRecord;
use record::scale::{GrowthOf, ScaleEngine, ScalePoint, ScaleSummary};
use stats::{Even, Growth};
use study::median_of;
use text::units::{exact, percent, time};
use text::words::{count, plural, ratio};

/// The sentences of every engine.
pub(super) fn findings(summary: &ScaleSummary) -> Vec<(EngineKind, Vec<String>)> {
    let of_engine = |engine: &ScaleEngine| {
        let points: Vec<&ScalePoint> = summary.of(engine.engine).collect();
        let sentences = [
            reach(engine, &points),
            gave_out(&points),
            reserved(&points),
            fair(&points),
            saturated(engine, &points, &summary.remarks),
            knee(engine),
            skew(engine, &points),
            creation(&points),
            waiting(&points),
            unguarded(&points),
        ];
        (engine.engine, sentences.into_iter().flatten().collect())
    };
    summary.engines.iter().map(of_engine).collect()
}

/// Where the guard rails were incomplete: for the largest number of cells.
fn unguarded(points: &[&ScalePoint]) -> Option<String> {
    let of_point = |point: &&ScalePoint| {
        let noted = point.crowds.iter().filter_map(|c| c.watchdog?.priorities);
        let mut open = noted.filter(|priorities| !priorities.guarded());
        open.next().map(|priorities| (point.count, priorities))
    };
    let all = points.iter().filter_map(of_point);
    let (cells, priorities) = all.max_by_key(|(count, _)| *count)?;
    let class = |priority: u8| match priority {
        0 => "no real-time class".to_owned(),
        priority => format!("FIFO {priority}"),
    };
    Some(format!(
        "the coordinator ({}) and the watchdog ({}) did not both run above the {} (FIFO {}): only the kernel's real-time throttling would \
         have stopped cells that never rest",
        class(priorities.coordinator),
        class(priorities.watchdog),
        plural(cells.into(), "cell"),
        priorities.cells,
    ))
}

/// The largest point that is in the figures.
fn largest<'a>(points: &[&'a ScalePoint]) -> Option<&'a ScalePoint> {
    let good = points.iter().filter(|point| point.rounds > 0);
    good.max_by_key(|point| point.count).copied()
}

fn reach(engine: &ScaleEngine, points: &[&ScalePoint]) -> Option<String> {
    let Some(most) = engine.largest else {
        return Some("no trial succeeded".to_owned());
    };
    let point = points.iter().find(|point| point.count == most)?;
    let armed: u32 = point.cpus.iter().map(|cpu| cpu.cells).sum();
    let jobs = plural(point.executed, "job");
    let accounted = match (point.skipped, point.lost_with_cells + point.unexplained) {
        (0, 0) => format!("{jobs} ran and none was lost"),
        (skipped, 0) => format!(
            "{jobs} ran, {} were skipped and counted, none was lost",
            count(skipped)
        ),
        (skipped, lost) => format!(
            "{jobs} ran, {} were skipped and counted, {} were lost with their cells",
            count(skipped),
            count(lost)
        ),
    };
    let accounted = match point.not_reached {
        0 => accounted,
        rest => format!(
            "{accounted}; {} were not reached, as the trial was cut off",
            count(rest)
        ),
    };
    let accounted = match &point.out_of_band {
        Some(how) => format!("{accounted}; {how}"),
        None => accounted,
    };
    Some(format!(
        "{} ran together on {}, released at one instant; {accounted}",
        plural(armed.into(), "cell"),
        plural(point.cpus.len() as u64, "cpu"),
    ))
}

fn gave_out(points: &[&ScalePoint]) -> Option<String> {
    let told = |point: &&&ScalePoint| crowd(point).is_some_and(|crowd| crowd.gave_out.is_some());
    let point = points.iter().find(told)?;
    let gave_out = crowd(point)?.gave_out.as_ref()?;
    let value = match &gave_out.value {
        Some(value) => format!(" ({value})"),
        None => String::new(),
    };
    Some(format!(
        "with {} {} ran out: {}{value}; {}",
        plural(point.count.into(), "cell"),
        gave_out.what,
        gave_out.limit,
        gave_out.fix
    ))
}

/// A cell's reservation, such as `27.8 ms of 1 s`; `None` where nothing was reserved.
pub(super) fn part(point: &ScalePoint) -> Option<String> {
    let held = crowd(point)?.reservation?;
    Some(format!(
        "{} of {}",
        time(held.runtime_us as f64 * 1e3),
        exact(held.period_us.saturating_mul(1_000))
    ))
}

fn reserved(points: &[&ScalePoint]) -> Option<String> {
    let point = largest(points)?;
    let held = crowd(point)?.reservation?;
    let how = match held.enforcer.is_by_thread() {
        true => "on any cpu",
        false => "on each cpu",
    };
    let by = match held.enforcer {
        Enforcer::Deadline => "SCHED_DEADLINE",
        Enforcer::RtCgroup => "a real-time group of its own",
        other => other.name(),
    };
    Some(format!(
        "each of {} held {} {how}, an equal share, by {by}",
        plural(point.count.into(), "cell"),
        part(point)?
    ))
}

/// The thesis's last number of cells if there is one, and the largest.
fn fair(points: &[&ScalePoint]) -> Option<String> {
    let told = |point: &&&ScalePoint| {
        point
            .response
            .as_ref()
            .is_some_and(|b| b.fairness.is_some())
    };
    let last = points.iter().filter(told).max_by_key(|point| point.count)?;
    let between = last.response.as_ref()?;
    let fairness = between.fairness?;
    let cells = plural(last.cells.number.len() as u64, "cell");
    let which = match last.pinned {
        true => format!("of {cells}, those that share a cpu"),
        false => format!("{cells}, none of them pinned,"),
    };
    let differ = format!(
        "{which} differ in mean response time by {} (coefficient of variation)",
        percent(fairness.within),
    );
    Some(match fairness.verdict {
        Even::Even => format!(
            "{differ}; chance alone gives {}, so they were treated evenly",
            percent(fairness.chance)
        ),
        Even::Nearly => format!(
            "{differ}, {} of it beyond chance: nearly even, below the 5 % from which they would be called uneven",
            percent(fairness.beyond_chance)
        ),
        Even::Uneven => format!(
            "{differ}, {} of it beyond chance: they were not treated evenly",
            percent(fairness.beyond_chance)
        ),
    })
}

fn saturated(engine: &ScaleEngine, points: &[&ScalePoint], remarks: &[String]) -> Option<String> {
    let saturation = engine.saturation?;
    let last = points.iter().filter(|point| point.sharing.is_some());
    let last = last.max_by_key(|point| point.count)?;
    let sharing = last.sharing?;
    let said = format!(
        "a job needs {} of a cpu, so the cpus saturate at {:.1} cells; with {} they were used to {}, a job took {} from release to end, \
         {} of what processor sharing predicts ({})",
        time(sharing.demand_alone_ns),
        saturation,
        plural(last.cells.number.len() as u64, "cell"),
        percent(sharing.utilization),
        time(sharing.response_ns),
        ratio(sharing.response_ns / sharing.sharing_ns),
        time(sharing.sharing_ns),
    );
    let more = sharing.demand_ns / sharing.demand_alone_ns;
    let of_demand = if more > 1.05 {
        format!(
            "; a job then took {} of the cpu time that it takes alone",
            ratio(more)
        )
    } else {
        String::new()
    };
    let beyond = match (sharing.response_ns > 1.02 * sharing.ceiling_ns, remarks) {
        (false, _) => String::new(),
        (true, []) => {
            "; that is more than any sharing of the cpus among the cells explains".to_owned()
        }
        (true, some) => format!(
            "; that is more than any sharing of the cpus among the cells explains (remarks: {})",
            some.join("; ")
        ),
    };
    Some(said + &of_demand + &beyond)
}

fn growth_of<'a>(engine: &'a ScaleEngine, what: &str) -> Option<&'a GrowthOf> {
    engine.growth.iter().find(|growth| growth.what == what)
}

fn knee(engine: &ScaleEngine) -> Option<String> {
    let said = |what: &str| Some(format!("the {what} {}", grows(growth_of(engine, what)?)?));
    let parts = [
        said("mean response time"),
        said("p99 of the execution time"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A line that rises by less than this share of its start counts as flat.
const FLAT: f64 = 0.1;

/// How a time grows, in words.
pub(super) fn grows(of: &GrowthOf) -> Option<String> {
    let (least, most) = (f64::from(of.cells.0), f64::from(of.cells.1));
    let flat = |slope: f64, from: f64, width: f64| (slope * width).abs() <= FLAT * from.abs();
    match &of.growth {
        Growth::TooFew => None,
        Growth::Straight {
            intercept,
            slope,
            worst_miss,
        } => {
            let begin = intercept + slope * least;
            let off = format!("no point is off by more than {}", percent(*worst_miss));
            Some(if flat(*slope, begin, most - least) {
                format!(
                    "stays at {} ({off})",
                    time(intercept + slope * (least + most) / 2.0)
                )
            } else {
                format!("grows linearly, by {} for each cell ({off})", time(*slope))
            })
        }
        Growth::Knee(knee) => {
            let begin = knee.intercept + knee.slope_before * least;
            let before = if flat(knee.slope_before, begin, knee.at - least) {
                format!("about {} before", time(begin))
            } else {
                format!("{} for each cell before", time(knee.slope_before))
            };
            Some(format!(
                "leaves the straight line at {:.1} cells ({:.1}..{:.1}): {before}, {} for each cell after",
                knee.at,
                knee.low,
                knee.high,
                time(knee.slope_after)
            ))
        }
    }
}

fn skew(engine: &ScaleEngine, points: &[&ScalePoint]) -> Option<String> {
    let last = points.iter().filter(|point| !point.skew_ns.is_empty());
    let last = last.max_by_key(|point| point.count)?;
    let first_of_cpu = median_of(&last.first_of_cpu_skew_ns).map_or(String::new(), |ns| {
        format!(", the first of each cpu within {}", time(ns))
    });
    let cpus = last.cpus.len().max(1) as f64;
    let slope = match growth_of(engine, "start skew").map(|of| of.growth) {
        Some(Growth::Straight { slope, .. }) => Some(slope),
        Some(Growth::Knee(knee)) => Some(knee.slope_after),
        _ => None,
    };
    let slope = slope.map_or(String::new(), |slope| {
        format!("; {} for each further cell on a cpu", time(slope * cpus))
    });
    Some(format!(
        "{} started within {}{first_of_cpu}{slope}",
        plural(last.cells.number.len() as u64, "cell"),
        time(median_of(&last.skew_ns)?),
    ))
}

/// The round in the middle by creation time.
pub(super) fn crowd(point: &ScalePoint) -> Option<&CrowdRecord> {
    let mut crowds: Vec<&CrowdRecord> = point.crowds.iter().collect();
    crowds.sort_by_key(|crowd| crowd.creation_ns);
    crowds.get(crowds.len().checked_sub(1)? / 2).copied()
}

/// Cells created in a second; `None` for no time.
pub(super) fn rate(crowd: &CrowdRecord) -> Option<f64> {
    let seconds = crowd.creation_ns as f64 / 1e9;
    (seconds > 0.0 && crowd.created > 0).then(|| f64::from(crowd.created) / seconds)
}

/// Bytes of one armed cell, payload and helpers; `None` where it was not looked at.
pub(super) fn memory(crowd: &CrowdRecord) -> Option<[f64; 2]> {
    let memory = crowd.memory.filter(|memory| memory.cells > 0)?;
    let cells = f64::from(memory.cells);
    Some([
        memory.payload_pss_bytes as f64 / cells,
        memory.helpers_pss_bytes as f64 / cells,
    ])
}

fn creation(points: &[&ScalePoint]) -> Option<String> {
    let point = largest(points)?;
    let crowd = crowd(point)?;
    let mut said = format!(
        "{} created in {}, {} at a time: {:.0} per second",
        plural(crowd.created.into(), "cell"),
        time(crowd.creation_ns as f64),
        crowd.parallel,
        rate(crowd)?,
    );
    if let Some([payload, helpers]) = memory(crowd) {
        said += &format!(
            "; an armed cell took {:.2} MB (proportional set), {:.2} MB of it helpers",
            (payload + helpers) / 1e6,
            helpers / 1e6
        );
    }
    Some(said)
}

fn waiting(points: &[&ScalePoint]) -> Option<String> {
    let crowds = points.iter().filter_map(|point| crowd(point));
    let crowd = crowds
        .filter(|crowd| crowd.waiting.is_some())
        .max_by_key(|crowd| crowd.armed)?;
    let waiting = crowd.waiting?;
    Some(format!(
        "{} waiting for the release used {} of cpu time together in {}",
        plural(crowd.armed.into(), "armed cell"),
        time(waiting.cpu_ns as f64),
        time(waiting.window_ns as f64)
    ))
}
