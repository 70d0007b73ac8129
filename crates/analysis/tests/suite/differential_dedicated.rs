//! Fixed priorities against the crate `response-time-analysis`, an implementation of analyses proved in Prosa.

use proptest::prelude::*;
use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::RBF;
use response_time_analysis::fixed_priority::{
    floating_nonpreemptive, fully_nonpreemptive, fully_preemptive, limited_preemptive,
};
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::wcet::Scalar;
use timecell_analysis::fp::{self, Response, Section};
use timecell_analysis::{Ns, Task};

/// Its analyses give up beyond this.
const LIMIT: Ns = 1_000_000;

fn arrivals(task: &Task) -> Sporadic {
    Sporadic::new(Duration::from(task.period), Duration::from(task.jitter))
}

fn rbf(task: &Task) -> RBF<Sporadic, Scalar> {
    RBF::new(arrivals(task), Scalar::new(Service::from(task.wcet)))
}

/// Sets at most 90% full, so that their busy periods stay short of the limit; jitter below the period.
fn sets() -> impl Strategy<Value = Vec<Task>> {
    let task = (1u64..90, 20u64..400, 0u64..100, 0u64..150);
    prop::collection::vec(task, 1..9).prop_map(|tasks| {
        let count = tasks.len() as u64;
        tasks
            .into_iter()
            .map(|(share, period, jitter, deadline)| {
                let wcet = (period * share / (100 * count)).max(1);
                Task::new(wcet, period)
                    .jittered(period * jitter / 250)
                    .due(period * (deadline + 50) / 100)
            })
            .collect()
    })
}

/// Ours count from the arrival, theirs from the release: they agree for a task that has no jitter of its own.
fn without_own_jitter(tasks: &[Task], index: usize) -> (Task, Vec<RBF<Sporadic, Scalar>>) {
    (
        tasks[index].jittered(0),
        tasks[..index].iter().map(rbf).collect(),
    )
}

fn bound(
    found: Result<Duration, response_time_analysis::fixed_point::SearchFailure>,
) -> Option<Ns> {
    found.ok().map(Ns::from)
}

/// Their `None` is a search beyond [`LIMIT`].
fn agrees(ours: &Response, theirs: Option<Ns>, deadline: Ns) -> Result<(), TestCaseError> {
    match (ours, theirs) {
        (Response::Meets(ours), Some(theirs)) => {
            prop_assert_eq!(*ours, theirs);
            prop_assert!(theirs <= deadline);
        }
        (Response::Misses(Some(ours)), Some(theirs)) => {
            prop_assert_eq!(*ours, theirs);
            prop_assert!(theirs > deadline);
        }
        (Response::Misses(ours), None) => {
            // A busy period beyond the limit may still have a bound within it.
            prop_assert!(ours.is_none_or(|ours| ours > deadline));
        }
        other => return Err(TestCaseError::fail(format!("{other:?}"))),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn preemptive(tasks in sets()) {
        for index in 0..tasks.len() {
            let (task, higher) = without_own_jitter(&tasks, index);
            let theirs = fully_preemptive::dedicated_uniproc_rta(&rbf(&task), &higher, Duration::from(LIMIT));
            agrees(&fp::response_time(&task, &tasks[..index]), bound(theirs), task.deadline)?;
        }
    }

    #[test]
    fn non_preemptive_limited_and_floating(tasks in sets(), cuts in prop::collection::vec((1u64..12, 1u64..12), 9)) {
        let whole: Vec<Section> = tasks.iter().map(Section::whole).collect();
        let limited: Vec<Section> = tasks.iter().zip(&cuts).map(|(task, cut)| {
            let longest = cut.0.min(task.wcet);
            Section { longest, last: cut.1.min(longest) }
        }).collect();
        let floating: Vec<Section> = limited.iter().map(|section| Section::floating(section.longest)).collect();
        for index in 0..tasks.len() {
            let (task, higher) = without_own_jitter(&tasks, index);
            let mut set = tasks.clone();
            set[index] = task;
            let limit = Duration::from(LIMIT);
            let below = |sections: &[Section]| {
                Service::from(sections[index + 1..].iter().map(|section| section.longest - 1).max().unwrap_or(0))
            };
            let ours = |sections: &[Section]| fp::response_times_with_sections(&set, sections)[index].clone();

            let theirs = fully_nonpreemptive::dedicated_uniproc_rta(
                &fully_nonpreemptive::TaskUnderAnalysis {
                    wcet: Scalar::new(Service::from(task.wcet)),
                    arrivals: &arrivals(&task),
                    blocking_bound: below(&whole),
                },
                &higher,
                limit,
            );
            agrees(&ours(&whole), bound(theirs), task.deadline)?;

            let theirs = limited_preemptive::dedicated_uniproc_rta(
                &limited_preemptive::TaskUnderAnalysis {
                    wcet: Scalar::new(Service::from(task.wcet)),
                    arrivals: &arrivals(&task),
                    last_np_segment: Service::from(limited[index].last),
                    blocking_bound: below(&limited),
                },
                &higher,
                limit,
            );
            agrees(&ours(&limited), bound(theirs), task.deadline)?;

            let theirs = floating_nonpreemptive::dedicated_uniproc_rta(
                &floating_nonpreemptive::TaskUnderAnalysis {
                    rbf: &rbf(&task),
                    blocking_bound: below(&floating),
                },
                &higher,
                limit,
            );
            agrees(&ours(&floating), bound(theirs), task.deadline)?;
        }
    }
}
