//! The real-time group that the cells of a run share.

use host::rtgroup::RtGroup;

use crate::{BenchError, Place};

/// One rt cgroup with all the free budget except so many us of every second, noted in the place before it is created; `None` if the kernel
/// has no such groups.
pub(crate) fn shared_rt_group(
    place: &mut Place,
    kept_us: u64,
) -> Result<Option<RtGroup>, BenchError> {
    if host::rtgroup::detect().is_err() {
        return Ok(None);
    }
    let failed = |error: host::rtgroup::RtGroupError| {
        BenchError::Failed(format!("cannot give the cells a real-time budget: {error}"))
    };
    let free = host::rtgroup::largest_free_runtime().map_err(failed)?;
    let free = if free > 2 * kept_us {
        free - kept_us
    } else {
        free
    };
    let name = format!("timecell-{}", std::process::id());
    place.note_rt_group(&name)?;
    RtGroup::create(&name, free, 1_000_000)
        .map(Some)
        .map_err(failed)
}
