//! A thread's jobs: the work between one wait for its timer and the next.

use model::Duration;
use model::InputError;

use super::json::{Object, Source};

/// Why a thread that takes no time from any other is not a task.
pub(super) const IDLE: &str = "they do no work between two waits for their timer";

/// A job of a thread: the longest work between two waits for its timer, and the timer's shortest period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) work: Duration,
    pub(super) period: Duration,
}

/// The meaning of an event for the analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Works for a time.
    Work,
    /// Waits for a timer.
    Timer,
    /// Neither waits nor works for long.
    Harmless,
    /// Waits for something else, or works for a time that the file does not state.
    Other,
}

/// rt-app's events in the order in which it compares the beginnings of keys.
const EVENTS: [(&str, Kind); 20] = [
    ("lock", Kind::Other),
    ("unlock", Kind::Other),
    ("wait", Kind::Other),
    ("signal", Kind::Harmless),
    ("broad", Kind::Harmless),
    ("sync", Kind::Other),
    ("sleep", Kind::Other),
    ("runtime", Kind::Work),
    ("run", Kind::Work),
    ("timer", Kind::Timer),
    ("suspend", Kind::Other),
    ("resume", Kind::Harmless),
    ("memrun", Kind::Other),
    ("mem", Kind::Other),
    ("iorun", Kind::Other),
    ("yield", Kind::Harmless),
    ("barrier", Kind::Other),
    ("fork", Kind::Other),
    ("sem_post", Kind::Harmless),
    ("sem_wait", Kind::Other),
];

#[derive(Debug, Clone, Copy)]
enum Event {
    Work(i64),
    Timer(i64),
}

/// The job of a thread with these phases (a thread without phases is its own), each with its number of rounds; the inner
/// error says why there is none.
///
/// A phase that is repeated is followed by itself and by the next one; two rounds show both. After the last phase comes the
/// first: of a thread that ends there this counts more work in one job than there is, never less.
pub(super) fn job(
    source: &Source<'_>,
    phases: &[(Object<'_>, i64)],
) -> Result<Result<Job, String>, InputError> {
    let mut timer: Option<String> = None;
    let mut all = Vec::new();
    for (phase, rounds) in phases {
        let mut events = Vec::new();
        for (key, raw) in &phase.0 {
            let Some((event, kind)) = EVENTS.iter().find(|(event, _)| key.starts_with(event))
            else {
                continue;
            };
            match kind {
                Kind::Harmless => {}
                Kind::Other => return Ok(Err(format!("they use `{event}`"))),
                Kind::Work => events.push(Event::Work(source.micros(key, raw)?.ns())),
                Kind::Timer => {
                    let object = source.object(raw, key)?;
                    let what = "it must be a text, the name of the timer";
                    let name: String = source.value(&object, "ref", what)?.unwrap_or_default();
                    if timer.get_or_insert_with(|| name.clone()) != &name {
                        return Ok(Err("they wait for several timers".to_owned()));
                    }
                    let Some(period) = source.time(&object, "period")? else {
                        return Err(source.fault(
                            raw,
                            format!("`{key}` has no `period`"),
                            "it must be a number of microseconds",
                        ));
                    };
                    events.push(Event::Timer(period.ns()));
                }
            }
        }
        all.extend(&events);
        if *rounds != 1 {
            all.extend(&events);
        }
    }
    Ok(longest(&all))
}

/// The job of a thread that repeats these events.
fn longest(events: &[Event]) -> Result<Job, String> {
    let Some(first) = events.iter().position(|e| matches!(e, Event::Timer(_))) else {
        return Err("they have no timer, so no period".to_owned());
    };
    let (mut work, mut most, mut period) = (0i64, 0i64, i64::MAX);
    let around = events.iter().cycle().skip(first).take(events.len() + 1);
    for event in around {
        match *event {
            Event::Work(ns) => work = work.saturating_add(ns),
            Event::Timer(ns) => {
                most = most.max(work);
                period = period.min(ns);
                work = 0;
            }
        }
    }
    if most == 0 {
        return Err(IDLE.to_owned());
    }
    Ok(Job {
        work: Duration::from_ns(most),
        period: Duration::from_ns(period),
    })
}
