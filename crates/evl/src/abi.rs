//! Numbers and structures of EVL's user interface.

use std::mem::size_of;

/// Directions of a request, as in the kernel's `_IOC`.
const NONE: u32 = 0;
const WRITE: u32 = 1;
const READ: u32 = 2;

const fn request<T>(direction: u32, group: u8, number: u8) -> u32 {
    numbered(direction, group, number, size_of::<T>())
}

const fn numbered(direction: u32, group: u8, number: u8, bytes: usize) -> u32 {
    direction << 30 | (bytes as u32) << 16 | (group as u32) << 8 | number as u32
}

/// Levels of the ABI that are known.
pub const LEVELS: std::ops::RangeInclusive<u32> = 23..=43;
/// The first level with an option of prctl of its own for calls out of band.
pub(crate) const OWN_OPTION_SINCE: u32 = 36;
/// Marks a call out of band in the number of the call, to level 35; the option of prctl from then on.
pub(crate) const OOB_BIT: i64 = 0x1000_0000;
pub(crate) const PR_OOB_SYSCALL: i64 = 0x4f4f_4243;
/// Number of the call out of band that is an ioctl.
pub(crate) const OOB_IOCTL: i64 = 2;

/// The core's answer about itself.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CoreInfo {
    pub base: u32,
    pub level: u32,
    pub fpu: u32,
    pub shared_bytes: u64,
}

/// What makes an element, such as a thread.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clone {
    /// Address of its name; 0: the core makes one up, which never clashes.
    pub name: u64,
    pub attributes: u64,
    pub flags: u32,
    pub minor: u32,
    pub handle: u32,
    pub state_offset: u32,
    /// Its file, once made.
    pub file: u32,
}

/// Policy and priority of a thread.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attributes {
    pub policy: i32,
    pub priority: i32,
    /// A quantum, the number of a quota group, or that of a partition.
    pub of_policy: [i64; 2],
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadState {
    pub attributes: Attributes,
    pub cpu: u32,
    pub state: u32,
    pub in_band_switches: u32,
    pub context_switches: u32,
    pub calls: u32,
    pub remote_wakeups: u32,
    pub cpu_ns: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Time {
    pub seconds: i64,
    pub nanoseconds: i64,
}

/// A request about the policy of threads on one cpu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PolicyRequest {
    pub policy: i32,
    pub cpu: i32,
    /// Addresses of the request's own structure, and of that for the answer; 0: none.
    pub asked: u64,
    pub answer: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QuotaAsked {
    pub operation: i32,
    pub group: i32,
    /// Percent of the period, and the most with what earlier periods left.
    pub percent: i32,
    pub peak: i32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QuotaAnswer {
    pub group: i32,
    pub percent: i32,
    pub peak: i32,
    /// Of all groups of the cpu, percent.
    pub sum: i32,
}

pub(crate) const QUOTA_ADD: i32 = 0;
pub(crate) const QUOTA_REMOVE: i32 = 1;
pub(crate) const QUOTA_SET: i32 = 3;
pub(crate) const QUOTA_GET: i32 = 4;

/// A window of a schedule of time partitions.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TpWindow {
    pub offset: Time,
    pub duration: Time,
    /// [`TP_IDLE`]: of nobody.
    pub partition: i32,
    pub padding: u32,
}

/// Head of a request or answer about a schedule; its windows follow. An answer has the count first.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TpHead {
    pub operation: i32,
    pub windows: i32,
}

pub(crate) const TP_IDLE: i32 = -1;
pub(crate) const TP_INSTALL: i32 = 0;
pub(crate) const TP_UNINSTALL: i32 = 1;
pub(crate) const TP_START: i32 = 2;
pub(crate) const TP_GET: i32 = 4;

/// Policies beside those of Linux.
pub(crate) const SCHED_QUOTA: i32 = 44;
pub(crate) const SCHED_TP: i32 = 45;

pub(crate) const GET_COREINFO: u32 = request::<CoreInfo>(READ, b'C', 0);
pub(crate) const SCHEDCTL: u32 = request::<PolicyRequest>(READ | WRITE, b'C', 1);
pub(crate) const CLONE: u32 = request::<Clone>(READ | WRITE, b'f', 0);
pub(crate) const SLEEP: u32 = request::<Time>(WRITE, b'c', 0);
pub(crate) const SET_SCHEDPARAM: u32 = request::<Attributes>(WRITE, b'T', 1);
pub(crate) const GET_STATE: u32 = request::<ThreadState>(READ, b'T', 4);
pub(crate) const SWITCH_OOB: u32 = numbered(NONE, b'T', 5, 0);
pub(crate) const DETACH_SELF: u32 = numbered(NONE, b'T', 7, 0);
pub(crate) const SET_MODE: u32 = request::<u32>(READ | WRITE, b'T', 8);
pub(crate) const CLEAR_MODE: u32 = request::<u32>(READ | WRITE, b'T', 9);

/// Modes: the core warns when a thread leaves the stage out of band; by the signal.
pub(crate) const WARN_ON_SWITCH: u32 = 0x8000;
pub(crate) const BY_SIGNAL: u32 = 0x10_0000;
/// The upper half of the signal's value; the lower one is the cause.
pub(crate) const SIGNAL_MARK: u32 = 0xfccf_0000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes and numbers as a C compiler gives them for the headers of levels 23, 32 and 43, on x86-64 and 64-bit ARM alike.
    #[test]
    fn requests_are_those_of_the_headers() {
        assert_eq!(size_of::<CoreInfo>(), 24);
        assert_eq!(size_of::<Clone>(), 40);
        assert_eq!(size_of::<Attributes>(), 24);
        assert_eq!(size_of::<ThreadState>(), 56);
        assert_eq!(size_of::<QuotaAnswer>(), 16);
        assert_eq!((size_of::<TpHead>(), size_of::<TpWindow>()), (8, 40));
        assert_eq!(GET_COREINFO, 0x8018_4300);
        assert_eq!(SCHEDCTL, 0xc018_4301);
        assert_eq!(CLONE, 0xc028_6600);
        assert_eq!(SLEEP, 0x4010_6300);
        assert_eq!(SET_SCHEDPARAM, 0x4018_5401);
        assert_eq!(GET_STATE, 0x8038_5404);
        assert_eq!(SWITCH_OOB, 0x5405);
        assert_eq!(DETACH_SELF, 0x5407);
        assert_eq!(SET_MODE, 0xc004_5408);
        assert_eq!(CLEAR_MODE, 0xc004_5409);
    }

    fn bytes<T>(of: &T) -> Vec<u8> {
        // SAFETY: a structure without padding.
        unsafe { std::slice::from_raw_parts((&raw const *of).cast(), size_of::<T>()) }.to_vec()
    }

    /// The bytes that a C compiler writes for the same values.
    #[test]
    fn requests_about_policies_have_their_bytes() {
        let request = PolicyRequest {
            policy: SCHED_QUOTA,
            cpu: 3,
            asked: 0x1122,
            answer: 0x3344,
        };
        let golden = [44, 0, 0, 0, 3, 0, 0, 0, 0x22, 0x11, 0, 0, 0, 0, 0, 0];
        assert_eq!(bytes(&request)[..16], golden);
        assert_eq!(bytes(&request)[16..], [0x44, 0x33, 0, 0, 0, 0, 0, 0]);
        let set = QuotaAsked {
            operation: QUOTA_SET,
            group: 0x0102,
            percent: 30,
            peak: 40,
        };
        let golden = [3, 0, 0, 0, 2, 1, 0, 0, 30, 0, 0, 0, 40, 0, 0, 0];
        assert_eq!(bytes(&set), golden);
        let in_group = Attributes {
            policy: SCHED_QUOTA,
            priority: 80,
            of_policy: [7, 0],
        };
        assert_eq!(
            bytes(&in_group)[..12],
            [44, 0, 0, 0, 80, 0, 0, 0, 7, 0, 0, 0]
        );
    }
}
