//! The reports of a page over one life of a cell.

use std::collections::BTreeMap;

use crate::health::Event;
use crate::page::{News, Nonsense};

/// The reports of a page over one life of a cell, so that nothing is reported twice.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    /// The last job of each slot that was seen to run.
    running: BTreeMap<usize, u64>,
    reports: bool,
    heartbeats: bool,
    nonsense: bool,
}

impl Told {
    pub(super) fn forget(&mut self) {
        *self = Told::default();
    }

    /// Whether the application has reported anything.
    pub(super) fn has_reports(&self) -> bool {
        self.reports
    }

    /// Whether the application reports by heartbeats, too.
    pub(super) fn has_heartbeats(&self) -> bool {
        self.heartbeats
    }

    /// The first thing that an honest application cannot have written, as a sentence; further ones are not reported.
    pub(super) fn nonsense_once(&mut self, what: Nonsense) -> Option<String> {
        let first = !std::mem::replace(&mut self.nonsense, true);
        first.then(|| format!("its job page is inconsistent: {what}"))
    }

    /// Whether something was reported that an honest application cannot have written.
    pub(super) fn is_unbelievable(&self) -> bool {
        self.nonsense
    }

    /// The events of the news, in the order in which they happened, each with its instant: between the look before and this
    /// one, which was `stalled` if it came later than it should have.
    pub(super) fn events(
        &mut self,
        all: &[News],
        since_ns: i64,
        now_ns: i64,
        stalled: bool,
    ) -> Vec<(i64, Event)> {
        let mut events = Vec::new();
        let within = |at_ns: i64| at_ns.clamp(since_ns.min(now_ns), now_ns);
        for news in all {
            let task = news.slot;
            if news.unseen > 0 {
                // They came before those that were seen, the last of them just before.
                let until_ns = news.jobs.first().map_or(now_ns, |job| job.begin_ns);
                events.push((
                    within(until_ns),
                    Event::JobsUnseen {
                        task,
                        jobs: news.unseen,
                        late: news.unseen_late,
                        stalled,
                    },
                ));
            }
            for job in &news.jobs {
                events.push(match (job.end_ns, job.response_ns()) {
                    (Some(end_ns), Some(response_ns)) => {
                        let ran_ns = None;
                        (
                            within(end_ns),
                            Event::JobEnded {
                                task,
                                response_ns,
                                ran_ns,
                            },
                        )
                    }
                    _ => (within(job.begin_ns), Event::JobsMissed { task, jobs: 1 }),
                });
            }
            if let Some(running) = &news.running
                && self.running.insert(task, running.number) != Some(running.number)
            {
                events.push((within(running.begin_ns), Event::JobBegun { task }));
            }
            if news.heartbeats > 0 {
                self.heartbeats = true;
                events.push((now_ns, Event::Heartbeat { task }));
            }
        }
        self.reports |= !events.is_empty();
        events.sort_by_key(|(at_ns, _)| *at_ns);
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Job, Running};

    #[test]
    fn events_are_in_order_and_a_running_job_is_told_once() {
        let job = |number, end_ns: Option<i64>| Job {
            number,
            release_ns: 90,
            begin_ns: 100,
            end_ns,
        };
        let first = News {
            slot: 0,
            jobs: vec![job(4, Some(150)), job(5, None)],
            unseen: 2,
            unseen_late: 1,
            running: Some(Running {
                number: 6,
                release_ns: 160,
                begin_ns: 170,
            }),
            ..News::default()
        };
        let second = News {
            slot: 1,
            jobs: vec![job(0, Some(120))],
            heartbeats: 3,
            ..News::default()
        };
        let mut told = Told::default();
        let events = told.events(&[first.clone(), second], 80, 200, false);
        let times: Vec<i64> = events.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [100, 100, 120, 150, 170, 200]);
        assert!(matches!(
            events[0].1,
            Event::JobsUnseen {
                jobs: 2,
                late: 1,
                ..
            }
        ));
        assert!(matches!(
            events[1].1,
            Event::JobsMissed { task: 0, jobs: 1 }
        ));
        assert!(matches!(events[5].1, Event::Heartbeat { task: 1 }));
        assert!(told.has_heartbeats());
        let again = News {
            jobs: Vec::new(),
            unseen: 0,
            ..first
        };
        assert_eq!(told.events(&[again], 200, 300, false), []);
        // Of jobs that left no records the last may have ended just now.
        let fast = News {
            unseen: 1_000,
            ..News::default()
        };
        let unseen = Event::JobsUnseen {
            task: 0,
            jobs: 1_000,
            late: 0,
            stalled: true,
        };
        assert_eq!(told.events(&[fast], 300, 400, true), [(400, unseen)]);
        let nonsense = Nonsense::Record { job: 3 };
        assert!(!told.is_unbelievable());
        assert!(told.nonsense_once(nonsense).is_some());
        assert!(told.is_unbelievable());
        assert_eq!(told.nonsense_once(nonsense), None);
    }
}
