//! The machine as it is while cells are measured.

use host::latency::DmaLatency;

use super::Session;
use super::elsewhere::Elsewhere;
use super::progress::Progress;

/// Keeps this process off the cells' cpus, and the cpus out of deep idle states; both are restored on drop.
pub(crate) struct Quiet {
    _elsewhere: Elsewhere,
    _awake: Option<DmaLatency>,
}

impl Quiet {
    /// For cells on these cpus; idle states are changed only for cells in a real-time class.
    pub(crate) fn around(
        cells: &[u32],
        real_time: bool,
        session: &mut Session,
        progress: &mut dyn Progress,
    ) -> Quiet {
        Quiet {
            _elsewhere: Elsewhere::than(cells),
            _awake: real_time.then(|| awake(session, progress)).flatten(),
        }
    }
}

/// As cyclictest does it.
fn awake(session: &mut Session, progress: &mut dyn Progress) -> Option<DmaLatency> {
    match DmaLatency::hold() {
        Ok(held) => Some(held),
        Err(why) => {
            session.remark(format!("idle states are left unchanged: {why}"), progress);
            None
        }
    }
}
