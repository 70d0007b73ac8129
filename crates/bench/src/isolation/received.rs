//! One trial of budgets received side by side.

use std::path::PathBuf;

use model::Enforcer;
use probe::{SpinClass, SupplyArgs, prepare_gaps};
use record::Budget;
use record::isolation::{ReceivedCell, ReceivedTrial};
use record::run::Run;

use super::root_domain::OwnDomain;
use super::setting::Setting;
use crate::held::{class_of, group_name};
use crate::supply::{Reservation, stolen_while};
use crate::together::{self, Around, Member};

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
    /// Runs it. Failures are on the record; nothing of the trial stays on the machine.
    pub(super) fn run(&self) -> ReceivedTrial {
        let domain = OwnDomain::of(Some(self.enforcer), self.setting, &self.around);
        let (steal_ns, measured) = stolen_while(&domain.cpus, || self.measure(&domain));
        let (cpus, root_domain) = (domain.cpus.clone(), domain.found.clone());
        let put_back = domain.end();
        ReceivedTrial {
            number: self.around.number,
            round: self.round,
            cells: (0..self.reservations.len())
                .map(|place| ReceivedCell {
                    held: self.held(place),
                    class: class_of(self.spin_class(place)).to_string(),
                })
                .collect(),
            cpus,
            root_domain,
            steal_ns,
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

    fn gaps(&self, place: usize) -> PathBuf {
        self.around.stage.shared.join(format!("{place}.gaps"))
    }

    fn measure(&self, domain: &OwnDomain) -> Result<(), String> {
        let mut members = Vec::new();
        for place in 0..self.reservations.len() {
            let path = self.gaps(place);
            prepare_gaps(&path, 1).map_err(|error| format!("{}: {error}", path.display()))?;
            let args = SupplyArgs {
                control: "/cell/control".to_owned(),
                slot: place,
                gaps: format!("/cell/{place}.gaps"),
                class: self.spin_class(place),
                beside: 0,
                group: None,
                cpus: domain.cpus.clone(),
                stretches: vec![(self.setting.received_ns, 0)],
                rest_ns: 0,
                grid_ns: i64::try_from(self.setting.tick_ns).unwrap_or(i64::MAX),
            };
            let group = format!("{}/{}", group_name(), place + 1);
            let (name, cpu) = (member(place), self.setting.spot.cpu);
            members.push(Member {
                held: Some((self.around).wanted(&name, self.held(place), cpu, group)),
                name,
                words: args.to_words(),
                slots: place..place + 1,
                classes: vec![class_of(self.spin_class(place))],
                rtprio: self.setting.spot.priority,
            });
        }
        let partition = domain.group();
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
        ran.map(drop)
    }
}

/// The name of the cell at this place.
fn member(place: usize) -> String {
    format!("cell-{}", place + 1)
}
