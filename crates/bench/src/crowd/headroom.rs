//! What the machine has left for a crowd: memory that is not to be taken, and the limit that will end a larger one.

use host::limits::{self, Kind, Limit};
use host::process::bytes;
use host::root::Root;
use record::crowd::GaveOut;

/// The part of the machine's memory that a crowd leaves to everybody else.
const RESERVE_PART: u64 = 20;
/// The least of it, bytes.
const RESERVE_BYTES: u64 = 128 << 20;

/// What gave out where less memory is available than the reserve; `None` while there is enough, or where nobody can tell.
pub(super) fn short_of_memory(root: &Root) -> Option<GaveOut> {
    let text = root.read("/proc/meminfo").ok()?;
    let total = bytes(&text, "MemTotal")?;
    let available = bytes(&text, "MemAvailable")?;
    let reserve = (total / RESERVE_PART).max(RESERVE_BYTES).min(total / 2);
    (available < reserve).then(|| GaveOut {
        what: "memory of the machine".to_owned(),
        limit: "the reserve that a crowd leaves".to_owned(),
        value: Some(format!(
            "{} of {} MB are available, and {} are kept",
            available >> 20,
            total >> 20,
            reserve >> 20
        )),
        mend: "end other work, or give the machine more memory".to_owned(),
    })
}

/// The limits as they stand for this user.
pub(super) fn limits() -> Vec<Limit> {
    // SAFETY: no arguments, cannot fail.
    let uid = unsafe { libc::geteuid() };
    limits::all(&Root::live(), uid)
}

/// Which limit is certain to end a crowd of so many cells: each is a process at least, and an open file of the coordinator's.
pub(super) fn certain(limits: &[Limit], cells: usize) -> Option<String> {
    let cells = u64::try_from(cells).ok()?;
    let (room, limit) = (limits.iter())
        .filter(|limit| limit.kind == Kind::Processes || limit.name == "RLIMIT_NOFILE")
        .filter_map(|limit| Some((limit.most.saturating_sub(limit.used?), limit)))
        .min_by_key(|(room, _)| *room)?;
    (room < cells).then(|| {
        format!(
            "{} ({}) will end it at {room} cells or before: {}; {}",
            limit.what,
            limit.name,
            limit.value(),
            limit.mend
        )
    })
}

/// Which limit ends larger crowds of this kind, by what `cells` have taken of each between `before` and `after`; `None` where
/// they took nothing that could be told from the rest of the machine.
pub(super) fn forecast(before: &[Limit], after: &[Limit], cells: usize) -> Option<String> {
    let cells = u64::try_from(cells).ok().filter(|cells| *cells > 0)?;
    let (most, limit, taken) = (after.iter())
        .filter_map(|limit| {
            let earlier = before
                .iter()
                .find(|b| b.what == limit.what && b.name == limit.name)?;
            let used = limit.used?;
            let taken = used.checked_sub(earlier.used?)?;
            // Less than a unit for every two cells may as well be somebody else's.
            (taken > cells / 2).then(|| {
                let room = limit.most.saturating_sub(used);
                (cells + room.saturating_mul(cells) / taken, limit, taken)
            })
        })
        .min_by_key(|(most, _, _)| *most)?;
    let each = taken as f64 / cells as f64;
    Some(format!(
        "the limit that ends larger ones is {} ({}), at about {most} cells: {}, {each:.1}{} for each cell",
        limit.what,
        limit.name,
        limit.value(),
        limit.unit
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(what: &str, used: u64, most: u64) -> Limit {
        Limit {
            kind: Kind::Processes,
            what: what.to_owned(),
            name: format!("/{what}"),
            used: Some(used),
            most,
            unit: "",
            mend: String::new(),
        }
    }

    #[test]
    fn the_limit_that_comes_first_is_forecast() {
        let before = [
            limit("pids", 100, 32_768),
            limit("keys", 10, 200),
            limit("files", 5, 9),
        ];
        let after = [
            limit("pids", 116, 32_768),
            limit("keys", 18, 200),
            limit("files", 6, 9),
        ];
        let said = forecast(&before, &after, 8).unwrap();
        assert!(
            said.contains("keys (/keys), at about 190 cells: 18 of 200, 1.0 for each"),
            "{said}"
        );
        assert_eq!(forecast(&before, &before, 8), None);
        let said = certain(&before[..1], 32_669).unwrap();
        assert!(
            said.contains("will end it at 32668 cells or before"),
            "{said}"
        );
        assert_eq!(certain(&before[..1], 32_668), None);
        assert_eq!(forecast(&before, &after, 0), None);
    }

    #[test]
    fn a_reserve_of_memory_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        let with = |total_mb: u64, available_mb: u64| {
            let text = format!(
                "MemTotal: {} kB\nMemAvailable: {} kB\n",
                total_mb << 10,
                available_mb << 10
            );
            std::fs::write(dir.path().join("proc/meminfo"), text).unwrap();
            short_of_memory(&Root::at(dir.path()))
        };
        assert_eq!(with(8_000, 500), None);
        let short = with(8_000, 300).unwrap();
        assert_eq!(
            short.value.unwrap(),
            "300 of 8000 MB are available, and 400 are kept"
        );
        assert!(with(1_000, 127).is_some() && with(1_000, 129).is_none());
        assert_eq!(with(100, 60), None, "a small machine keeps half");
    }
}
