//! One trial of budgets received beside each other.

use std::path::PathBuf;

use host::sched::Class;
use model::Enforcer;
use probe::{SpinClass, SupplyArgs, prepare_gaps};
use record::Budget;
use record::isolation::{ReceivedCell, ReceivedTrial};
use record::run::Run;

use super::root_domain::OwnDomain;
use super::setting::Setting;
use crate::held::{Holds, Wanted, end_all, group_name, hold_all};
use crate::launch::Stage;
use crate::supply::{Reservation, stolen};
use crate::together::{self, Around, Member, cell_name};

/// A trial of received budgets that is to take place.
pub(super) struct Received<'a> {
    pub enforcer: Enforcer,
    pub reservations: &'a [Reservation],
    pub round: u32,
    pub setting: &'a Setting,
    pub around: Around<'a>,
    pub run: &'a Run,
}

impl Received<'_> {
    /// Runs it. What fails is on the record; nothing of the trial stays on the machine.
    pub(super) fn run(&self) -> ReceivedTrial {
        let domain = (self.enforcer == Enforcer::Deadline)
            .then(|| OwnDomain::of(self.setting, &self.around.stage.place, self.around.number));
        let cpus = match &domain {
            Some(domain) => domain.cpus.clone(),
            None => vec![self.setting.spot.cpu],
        };
        let before = stolen(&cpus);
        let measured = self.measure(&cpus, domain.as_ref());
        let stolen = before.zip(stolen(&cpus));
        let root_domain = domain.as_ref().map(|domain| domain.found.clone());
        let put_back = domain.map_or(Ok(()), OwnDomain::end);
        ReceivedTrial {
            number: self.around.number,
            round: self.round,
            cells: (0..self.reservations.len())
                .map(|place| ReceivedCell {
                    held: self.held(place),
                    class: self.class(place).to_string(),
                })
                .collect(),
            cpus,
            root_domain,
            steal_ns: stolen.map(|(before, after)| after.saturating_sub(before)),
            failure: measured.and(put_back).err(),
        }
    }

    fn held(&self, place: usize) -> Budget {
        Budget {
            enforcer: self.enforcer,
            budget_ns: self.reservations[place].budget_ns,
            period_ns: self.reservations[place].period_ns,
        }
    }

    fn spin_class(&self, place: usize) -> SpinClass {
        let Budget {
            budget_ns,
            period_ns,
            ..
        } = self.held(place);
        match self.enforcer {
            Enforcer::Deadline => SpinClass::Deadline {
                budget_ns,
                period_ns,
            },
            _ => SpinClass::Fifo {
                priority: self
                    .setting
                    .spot
                    .priority
                    .saturating_sub(place as u8)
                    .max(1),
            },
        }
    }

    fn class(&self, place: usize) -> Class {
        match self.spin_class(place) {
            SpinClass::Fifo { priority } => Class::Fifo { priority },
            SpinClass::Deadline {
                budget_ns,
                period_ns,
            } => Class::Deadline {
                runtime_ns: budget_ns,
                deadline_ns: period_ns,
                period_ns,
            },
        }
    }

    fn gaps(&self, place: usize) -> PathBuf {
        self.around.stage.shared.join(format!("{place}.gaps"))
    }

    fn measure(&self, cpus: &[u32], domain: Option<&OwnDomain>) -> Result<(), String> {
        let wanted: Vec<_> = (0..self.reservations.len())
            .map(|place| Some(self.wanted(place)))
            .collect();
        let holds = hold_all(&wanted)?;
        let measured = self.while_held(cpus, &holds, domain);
        let ended = end_all(holds);
        measured.and(ended)
    }

    fn wanted(&self, place: usize) -> Wanted {
        let name = cell_name(self.around.number, &member(place));
        Wanted {
            held: self.held(place),
            cpu: self.setting.spot.cpu,
            id: Stage::id(&name),
            rt_group: format!("{}/{}", group_name(), place + 1),
        }
    }

    fn while_held(
        &self,
        cpus: &[u32],
        holds: &Holds,
        domain: Option<&OwnDomain>,
    ) -> Result<(), String> {
        let mut members = Vec::new();
        for (place, held) in holds.iter().enumerate() {
            let path = self.gaps(place);
            prepare_gaps(&path, 1).map_err(|error| format!("{}: {error}", path.display()))?;
            let args = SupplyArgs {
                control: "/cell/control".to_owned(),
                slot: place,
                gaps: format!("/cell/{place}.gaps"),
                class: self.spin_class(place),
                beside: 0,
                cpus: cpus.to_vec(),
                stretches: vec![(self.setting.received_ns, 0)],
                rest_ns: 0,
                grid_ns: i64::try_from(self.setting.tick_ns).unwrap_or(i64::MAX),
            };
            members.push(Member {
                name: member(place),
                words: args.to_words(),
                slots: place..place + 1,
                classes: vec![self.class(place)],
                rtprio: self.setting.spot.priority,
                held: held.as_deref(),
            });
        }
        let partition = domain.and_then(OwnDomain::group);
        let ran = together::run(
            &self.around,
            &members,
            partition,
            None,
            self.setting.received_ns,
        );
        for place in 0..members.len() {
            let path = self.gaps(place);
            if ran.is_ok() {
                (self.run)
                    .keep_cell_gaps(self.around.number, place as u32 + 1, &path)
                    .map_err(|error| error.to_string())?;
            }
            let _ = std::fs::remove_file(&path);
        }
        ran
    }
}

/// What the cell at this place is called.
fn member(place: usize) -> String {
    format!("cell-{}", place + 1)
}
