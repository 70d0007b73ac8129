//! Interprets three successive reads of a slot: its counters, its ring, its counters again. Pure, so that anything that a
//! cell could write can be tested.

use timecell_client::layout::RING;

use super::counters::{self, RawCounters, RawRing};
use super::{Job, News, Nonsense, Running, Totals};

/// The state of a slot at earlier scans.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    /// Number of the first job that was not reported yet.
    pub(super) next: u64,
    /// The application's counts at the last scan.
    pub(super) totals: Totals,
}

/// The news of a slot; `now_ns` is later than the reads.
pub(super) fn interpret(
    known: &mut Known,
    first: &RawCounters,
    ring: &RawRing,
    second: &RawCounters,
    now_ns: i64,
) -> News {
    let (first, second) = (counters::totals(first), counters::totals(second));
    let mut news = News {
        heartbeats: first.heartbeats.saturating_sub(known.totals.heartbeats),
        totals: first,
        ..News::default()
    };
    let (over, begun) = (first.ended, second.begun);
    if over > begun {
        news.nonsense = Some(Nonsense::Counters { begun, ended: over });
    } else if over < known.next {
        let (from, to) = (known.next, over);
        news.nonsense = Some(Nonsense::WentBack { from, to });
        known.next = over;
    } else {
        jobs(known.next..over, begun, ring, now_ns, &mut news);
        news.unseen = over - known.next - news.jobs.len() as u64;
        known.next = over;
    }
    // Late jobs among those that were seen are recognised by their times; the count is for the others.
    if news.unseen > 0 {
        let late = first.late.saturating_sub(known.totals.late);
        news.unseen_late = late.min(news.unseen);
    }
    let settled = (first.begun, first.ended) == (second.begun, second.ended);
    if settled && over.checked_add(1) == Some(begun) {
        news.running = running(ring, over, now_ns);
    }
    known.totals = first;
    news
}

fn jobs(over: std::ops::Range<u64>, begun: u64, ring: &RawRing, now_ns: i64, news: &mut News) {
    // A record is written again only while the count of begun jobs is a ring further.
    let whole = begun.saturating_sub(RING as u64 - 1);
    for number in whole.max(over.start)..over.end {
        match job(ring, number, now_ns) {
            Ok(job) => news.jobs.push(job),
            Err(nonsense) => news.nonsense = news.nonsense.or(Some(nonsense)),
        }
    }
}

fn job(ring: &RawRing, number: u64, now_ns: i64) -> Result<Job, Nonsense> {
    let raw = counters::job(ring, number);
    if raw.number != number {
        return Err(Nonsense::Record { job: number });
    }
    let past = 0..=now_ns;
    let ends = raw.end_ns == 0
        || past.contains(&raw.end_ns) && raw.begin_ns <= raw.end_ns && raw.release_ns <= raw.end_ns;
    // A job may be released later than it begins: clocks wake threads up early, too.
    if !ends || raw.release_ns < 0 || !past.contains(&raw.begin_ns) {
        return Err(Nonsense::Times { job: number });
    }
    Ok(Job {
        number,
        release_ns: raw.release_ns,
        begin_ns: raw.begin_ns,
        end_ns: (raw.end_ns != 0).then_some(raw.end_ns),
    })
}

fn running(ring: &RawRing, number: u64, now_ns: i64) -> Option<Running> {
    let raw = counters::job(ring, number);
    let plausible =
        raw.number == number && raw.release_ns >= 0 && (0..=now_ns).contains(&raw.begin_ns);
    plausible.then_some(Running {
        number,
        release_ns: raw.release_ns,
        begin_ns: raw.begin_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: i64 = 1_000_000;

    /// Counters and ring as a page of an application that has begun so many jobs, job k from 10k to 10k + 5.
    fn honest(begun: u64, ended: u64) -> (RawCounters, RawRing) {
        let mut counters = [0; size_of::<RawCounters>()];
        counters[..8].copy_from_slice(&begun.to_ne_bytes());
        counters[8..16].copy_from_slice(&ended.to_ne_bytes());
        let mut ring = [0; size_of::<RawRing>()];
        for number in begun.saturating_sub(RING as u64)..begun {
            let at = (number as usize % RING) * 32;
            let end = if number < ended { 10 * number + 5 } else { 0 };
            for (word, value) in [number, 10 * number, 10 * number + 1, end]
                .into_iter()
                .enumerate()
            {
                ring[at + 8 * word..at + 8 * word + 8].copy_from_slice(&value.to_ne_bytes());
            }
        }
        (counters, ring)
    }

    fn numbers(news: &News) -> Vec<u64> {
        news.jobs.iter().map(|job| job.number).collect()
    }

    #[test]
    fn each_job_is_told_once_and_what_was_written_over_is_counted() {
        let mut known = Known::default();
        let (counters, ring) = honest(5, 4);
        let news = interpret(&mut known, &counters, &ring, &counters, NOW);
        assert_eq!(numbers(&news), [0, 1, 2, 3]);
        assert_eq!(news.jobs[2].response_ns(), Some(5));
        assert_eq!(news.running.map(|running| running.number), Some(4));
        assert_eq!((news.unseen, news.nonsense), (0, None));

        let (counters, ring) = honest(100, 100);
        let news = interpret(&mut known, &counters, &ring, &counters, NOW);
        // The place of job 68 may be being written while 100 jobs are begun.
        assert_eq!(numbers(&news), (69..100).collect::<Vec<u64>>());
        assert_eq!((news.unseen, news.nonsense), (65, None));
        assert_eq!(news.running, None);
    }

    #[test]
    fn what_was_written_over_during_the_reads_is_not_looked_at() {
        let (first, _) = honest(40, 40);
        let (second, ring) = honest(60, 60);
        let news = interpret(&mut Known::default(), &first, &ring, &second, NOW);
        assert_eq!(numbers(&news), (29..40).collect::<Vec<u64>>());
        assert_eq!((news.unseen, news.nonsense), (29, None));
    }

    #[test]
    fn a_job_without_an_end_was_abandoned() {
        let (counters, mut ring) = honest(3, 3);
        ring[32 + 24..64].fill(0);
        let news = interpret(&mut Known::default(), &counters, &ring, &counters, NOW);
        assert_eq!(news.jobs[1].end_ns, None);
        assert_eq!(news.jobs[1].response_ns(), None);
        assert_eq!(news.nonsense, None);
    }

    #[test]
    fn a_count_that_goes_back_is_nonsense_and_the_next_scan_goes_on_from_there() {
        let mut known = Known {
            next: 50,
            ..Known::default()
        };
        let (counters, ring) = honest(10, 10);
        let news = interpret(&mut known, &counters, &ring, &counters, NOW);
        assert_eq!(news.nonsense, Some(Nonsense::WentBack { from: 50, to: 10 }));
        assert_eq!(news.jobs, []);
        let (counters, ring) = honest(12, 12);
        let news = interpret(&mut known, &counters, &ring, &counters, NOW);
        assert_eq!((numbers(&news), news.nonsense), (vec![10, 11], None));
    }

    #[test]
    fn times_that_cannot_be_are_not_passed_on() {
        let (counters, ring) = honest(3, 3);
        let news = interpret(&mut Known::default(), &counters, &ring, &counters, 14);
        assert_eq!(numbers(&news), [0]);
        assert_eq!(news.nonsense, Some(Nonsense::Times { job: 1 }));
        assert_eq!(news.unseen, 2);
    }

    proptest! {
        #[test]
        fn whatever_a_cell_writes_is_bounded_and_plausible(
            words in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..200, Just(u64::MAX), Just(1 << 63)], 16 + 128),
            matching in any::<bool>(),
            next in prop_oneof![any::<u64>(), 0u64..200],
        ) {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let first: RawCounters = bytes[..64].try_into().unwrap();
            let second: RawCounters = bytes[64..128].try_into().unwrap();
            let mut ring: RawRing = bytes[128..].try_into().unwrap();
            if matching {
                // Records that pass for the jobs which the counters claim.
                let ended = counters::totals(&first).ended;
                for number in ended.saturating_sub(RING as u64)..ended {
                    let at = (number % RING as u64) as usize * 32;
                    ring[at..at + 8].copy_from_slice(&number.to_ne_bytes());
                }
            }
            let mut known = Known { next, totals: Totals::default() };
            let news = interpret(&mut known, &first, &ring, &second, NOW);
            prop_assert!(news.jobs.len() < RING);
            prop_assert!(news.unseen_late <= news.unseen);
            if news.nonsense.is_none() || known.next > next {
                let over = counters::totals(&first).ended;
                prop_assert_eq!(known.next, over);
                prop_assert_eq!(news.unseen + news.jobs.len() as u64, over - next);
            }
            for job in &news.jobs {
                prop_assert!(job.number >= next && (0..=NOW).contains(&job.begin_ns) && job.release_ns >= 0);
                prop_assert!(job.end_ns.is_none_or(|end| (job.begin_ns..=NOW).contains(&end)));
                prop_assert!(job.response_ns().is_none_or(|ns| ns >= 0));
            }
            prop_assert!(news.jobs.is_sorted_by_key(|job| job.number));
        }
    }
}
