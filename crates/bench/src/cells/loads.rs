//! The loads beside the cells of a trial, and why a trial cannot go on.

use record::LoadRecord;

use crate::BenchError;
use crate::load::{self, Running, Start, with_words};

/// The first of these loads that failed, and why.
pub(crate) fn load_failure(loads: &[LoadRecord]) -> Option<String> {
    (loads.iter()).find_map(|load| Some(format!("load {}: {}", load.name, load.failure.as_ref()?)))
}

/// Why a trial cannot go on.
pub(crate) enum Ended {
    /// The trial failed; the run goes on.
    Failed(String),
    /// The run cannot go on.
    Error(BenchError),
}

impl From<BenchError> for Ended {
    fn from(error: BenchError) -> Ended {
        Ended::Error(error)
    }
}

impl From<Ended> for String {
    fn from(ended: Ended) -> String {
        match ended {
            Ended::Failed(why) => why,
            Ended::Error(error) => error.to_string(),
        }
    }
}

/// The loads of a trial, in the order in which they were started.
#[derive(Default)]
pub(super) struct Loads(Vec<(Option<Running>, LoadRecord)>);

impl Loads {
    /// Starts another load and waits until it is seen at work or `stop` says so; its record holds why it failed. `watch` gets its place
    /// and pid.
    pub(super) fn start(
        &mut self,
        start: &Start<'_>,
        stop: &mut dyn FnMut() -> bool,
        watch: impl FnOnce(usize, i32),
    ) -> Result<(), BenchError> {
        let mut record = load::record(start.planned, &start.setting);
        let running = match load::start(start)? {
            Ok(running) => {
                watch(self.0.len(), running.pid());
                let at_work = running.wait_until_at_work(stop);
                record.failure = (at_work.err()).map(|why| with_words(&why, &running.last_words()));
                // A load that was not seen at work is ended like the others.
                Some(running)
            }
            Err(why) => {
                record.failure = Some(why);
                None
            }
        };
        self.0.push((running, record));
        Ok(())
    }

    /// The first that failed, or is dead by its place, and why.
    pub(super) fn failure(&mut self, is_dead: impl Fn(usize) -> bool) -> Option<String> {
        for (place, (running, record)) in self.0.iter_mut().enumerate() {
            if is_dead(place) {
                let said = running
                    .as_ref()
                    .map(Running::last_words)
                    .unwrap_or_default();
                let ended = || with_words("ended before the cells were done", &said);
                record.failure.get_or_insert_with(ended);
            }
        }
        (self.0.iter()).find_map(|(_, record)| load_failure(std::slice::from_ref(record)))
    }

    pub(super) fn each(&mut self, of: impl Fn(&mut Running)) {
        self.0
            .iter_mut()
            .filter_map(|(running, _)| running.as_mut())
            .for_each(of);
    }

    /// Ends them all: their records, and failed removals.
    pub(super) fn stop(self) -> (Vec<LoadRecord>, Vec<String>) {
        let mut left = Vec::new();
        let stop = |(running, mut record): (Option<Running>, LoadRecord)| {
            let stopped = running.map_or(Ok(()), |mut running| running.stop(&mut record));
            left.extend(stopped.err());
            record
        };
        (self.0.into_iter().map(stop).collect(), left)
    }
}
