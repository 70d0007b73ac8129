//! How a cell's tasks are scheduled among themselves.

/// How a cell's tasks are scheduled among themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Preemptive fixed priorities, as SCHED_FIFO schedules.
    Fixed(Order),
    /// Earliest deadline first, as SCHED_DEADLINE schedules.
    Edf,
    /// Tasks without a priority by earliest deadline first, above all others, which have fixed priorities: threads of SCHED_DEADLINE above
    /// those of SCHED_FIFO.
    EdfOverFixed,
    /// Fixed priorities with two levels of criticality: once a job runs beyond its wcet, tasks of low criticality are
    /// dropped (adaptive mixed criticality).
    AmcRtb(Order),
    /// EDF with two levels of criticality: tasks of high criticality have shorter, virtual deadlines until one of them runs
    /// beyond its wcet.
    EdfVd,
    /// Global fixed priorities on this number of cpus; a job may migrate.
    GlobalFixed(Order, u32),
    /// Global earliest deadline first on this number of cpus.
    GlobalEdf(u32),
}

impl Policy {
    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Fixed(_) => "fp",
            Policy::Edf => "edf",
            Policy::EdfOverFixed => "edf-over-fp",
            Policy::AmcRtb(_) => "amc-rtb",
            Policy::EdfVd => "edf-vd",
            Policy::GlobalFixed(..) => "global-fp",
            Policy::GlobalEdf(_) => "global-edf",
        }
    }

    /// Where the priorities come from, if they are fixed.
    pub const fn order(self) -> Option<Order> {
        match self {
            Policy::Fixed(order) | Policy::AmcRtb(order) | Policy::GlobalFixed(order, _) => {
                Some(order)
            }
            Policy::Edf | Policy::EdfOverFixed | Policy::EdfVd | Policy::GlobalEdf(_) => None,
        }
    }

    /// Whether it is analysed on a whole cpu only.
    pub const fn is_whole(self) -> bool {
        self.is_mixed() || matches!(self, Policy::EdfOverFixed)
    }

    /// The same policy with priorities from elsewhere; EDF has none.
    #[must_use]
    pub const fn ordered(self, order: Order) -> Policy {
        match self {
            Policy::Fixed(_) => Policy::Fixed(order),
            Policy::AmcRtb(_) => Policy::AmcRtb(order),
            Policy::GlobalFixed(_, cpus) => Policy::GlobalFixed(order, cpus),
            Policy::Edf | Policy::EdfOverFixed | Policy::EdfVd | Policy::GlobalEdf(_) => self,
        }
    }

    /// The number of cpus of global scheduling; `None`: one cpu.
    pub const fn cpus(self) -> Option<u32> {
        match self {
            Policy::GlobalFixed(_, cpus) | Policy::GlobalEdf(cpus) => Some(cpus),
            _ => None,
        }
    }

    /// Whether tasks have a criticality.
    pub const fn is_mixed(self) -> bool {
        matches!(self, Policy::AmcRtb(_) | Policy::EdfVd)
    }
}

choice! {
    /// Where fixed priorities come from.
    pub enum Order {
        /// Each task's `priority`; a larger number is more urgent, as in sched(7).
        Priority = "priority",
        /// Deadline monotonic: a shorter deadline is more urgent; ties in the order of the file.
        Deadline = "dm",
        /// Rate monotonic: a shorter period is more urgent; ties in the order of the file.
        Rate = "rm",
        /// The order of the file, most urgent first.
        Listed = "file",
        /// An order with which every deadline holds, to be found by Audsley's algorithm; only with [`Policy::Fixed`].
        Audsley = "audsley",
    }
}
