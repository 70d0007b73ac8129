//! The counters of a page, copied out.

use timecell_client::layout::{BUCKETS, Counters, JobRecord, RING, Responses, Ring};

use super::Totals;

/// A copy of the counters of a slot.
pub(super) type RawCounters = [u8; size_of::<Counters>()];
/// A copy of the ring of a slot.
pub(super) type RawRing = [u8; size_of::<Ring>()];
/// A copy of the response times of a slot.
pub(super) type RawResponses = [u8; size_of::<Responses>()];

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    let from = bytes.get(at..).unwrap_or_default();
    for (to, from) in word.iter_mut().zip(from) {
        *to = *from;
    }
    u64::from_ne_bytes(word)
}

fn signed(bytes: &[u8], at: usize) -> i64 {
    word(bytes, at).cast_signed()
}

pub(super) fn totals(raw: &RawCounters) -> Totals {
    use std::mem::offset_of;
    Totals {
        begun: word(raw, offset_of!(Counters, begun)),
        ended: word(raw, offset_of!(Counters, ended)),
        late: word(raw, offset_of!(Counters, late)),
        abandoned: word(raw, offset_of!(Counters, abandoned)),
        worst_response_ns: signed(raw, offset_of!(Counters, worst_response_ns)),
        heartbeats: word(raw, offset_of!(Counters, heartbeats)),
        responses_ns: word(raw, offset_of!(Counters, responses_ns)),
    }
}

pub(super) fn buckets(raw: &RawResponses) -> [u64; BUCKETS] {
    std::array::from_fn(|bucket| word(raw, bucket * size_of::<u64>()))
}

/// A job's record, nothing of it checked.
pub(super) struct RawJob {
    pub(super) number: u64,
    pub(super) release_ns: i64,
    pub(super) begin_ns: i64,
    pub(super) end_ns: i64,
}

pub(super) fn job(ring: &RawRing, number: u64) -> RawJob {
    use std::mem::offset_of;
    #[allow(clippy::cast_possible_truncation)]
    let at = (number % RING as u64) as usize * size_of::<JobRecord>();
    RawJob {
        number: word(ring, at + offset_of!(JobRecord, number)),
        release_ns: signed(ring, at + offset_of!(JobRecord, release_ns)),
        begin_ns: signed(ring, at + offset_of!(JobRecord, begin_ns)),
        end_ns: signed(ring, at + offset_of!(JobRecord, end_ns)),
    }
}
