//! How the measuring loop waits: in band, or out of band as a thread of EVL.

use crate::clock;

/// How it waits. Compiled into the loop for each kind.
pub(crate) trait Sleep {
    /// Until CLOCK_MONOTONIC reaches this instant, ns; not at all if it has passed.
    fn until(&self, instant_ns: i64);
    /// For so long.
    fn period(&self, ns: i64);
}

/// By the calls of Linux.
pub(crate) struct InBand;

impl Sleep for InBand {
    #[inline(always)]
    fn until(&self, instant_ns: i64) {
        clock::sleep_until(instant_ns);
    }

    #[inline(always)]
    fn period(&self, ns: i64) {
        clock::sleep_for(ns);
    }
}

impl Sleep for evl::Thread {
    #[inline(always)]
    fn until(&self, instant_ns: i64) {
        self.sleep_until(instant_ns);
    }

    #[inline(always)]
    fn period(&self, ns: i64) {
        self.sleep_until(clock::now() + ns);
    }
}
