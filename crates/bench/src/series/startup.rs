//! `startup`: from the request to run a program that ends at once until nothing of its cell is left.
//!
//! Every way of starting a program once per round: fork and exec, a bare clone3 with namespaces, OCI runtimes and container managers.
//! Where a launcher reports more than begin and end, the time is broken down into create, start, run, exit and delete; the payload's first
//! and last instant are its own clock readings.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use engine::{CellSpec, Manager, Network, Rights, Source, User};
use model::{EngineKind, InputErrors, Requirement, Size};
use probe::Life;
use record::Condition;
use record::series::{Quantity, Swept};

use super::bench::{
    Bench, OwnOption, Prepared, Reading, SeriesOptions, SeriesScenario, Task, Turn,
};
use super::cells;
use crate::BenchError;
use crate::here::allowed_cpus;
use crate::launch::{Clone3, Commands, ForkExec, Launched, Launcher, Oci, Stage, page_in_cell};
use crate::needs::Needs;

pub(super) const SCENARIO: SeriesScenario = SeriesScenario {
    name: "startup",
    question: "How long from the request to run a program until it has run, ended, and left nothing behind?",
    rounds: (100, 5),
    own: OwnOption::Sweep,
    prepare,
};

/// The figure that launchers are compared by.
const WHOLE: &str = "request to gone";
/// How soon the payload runs.
const FIRST: &str = "request to first instruction";

/// A way of starting a program, not yet set up.
#[derive(Debug, Clone)]
enum Way {
    ForkExec,
    Clone3,
    Oci {
        kind: EngineKind,
        user: Option<User>,
        in_steps: bool,
        limits: Size,
    },
    Manager {
        kind: EngineKind,
        user: Option<User>,
        source: Source,
        network: Network,
        limits: Size,
    },
    Machine(engine::Machine),
}

impl Way {
    fn set_up(
        &self,
        stage: &Stage,
        managers: &mut Managers,
    ) -> Result<Box<dyn Launcher>, BenchError> {
        Ok(match self {
            Way::ForkExec => Box::new(ForkExec),
            Way::Clone3 => Box::new(Clone3::new(stage)?),
            Way::Oci {
                kind,
                user,
                in_steps,
                limits,
            } => Box::new(Oci {
                kind: *kind,
                user: user.clone(),
                in_steps: *in_steps,
                limits: *limits,
            }),
            Way::Machine(machine) => {
                let name = format!(
                    "1-{}-{}-{}",
                    machine.name, machine.vcpus, machine.memory_bytes
                );
                let words = vec![stage.page().display().to_string()];
                let kind = EngineKind::Qemu;
                let spec = stage.spec(&name, kind, None, words, Rights::default())?;
                let spec = CellSpec {
                    machine: Some(machine.clone()),
                    ..spec
                };
                let log = engine::log_file(&spec.work_dir);
                Box::new(Commands {
                    make: Box::new(move || {
                        engine::boot_command(&spec).map_err(|error| error.to_string())
                    }),
                    log,
                })
            }
            Way::Manager {
                kind,
                user,
                source,
                network,
                limits,
            } => {
                let (source, network, limits) = (*source, *network, *limits);
                let (manager, log) = managers.of(stage, *kind, user.as_ref())?;
                Box::new(Commands {
                    make: Box::new(move || {
                        manager
                            .run(source, network, limits)
                            .map_err(|error| error.to_string())
                    }),
                    log,
                })
            }
        })
    }
}

/// Container managers that are set up: one for all ways that use it.
#[derive(Default)]
struct Managers(Vec<(EngineKind, Rc<Manager>, PathBuf)>);

impl Managers {
    fn of(
        &mut self,
        stage: &Stage,
        kind: EngineKind,
        user: Option<&User>,
    ) -> Result<(Rc<Manager>, PathBuf), BenchError> {
        if let Some((_, manager, log)) = self.0.iter().find(|(known, ..)| *known == kind) {
            return Ok((Rc::clone(manager), log.clone()));
        }
        let words = Life::ending(&page_in_cell());
        let name = format!("1-{kind}-manager");
        let spec = stage.spec(&name, kind, user, words, Rights::default())?;
        let manager = Rc::new(Manager::set_up(&spec)?);
        let log = spec.work_dir.join("log");
        self.0.push((kind, Rc::clone(&manager), log.clone()));
        Ok((manager, log))
    }
}

struct Startup {
    // Before the stage: launchers use its directories until they are gone.
    launchers: Vec<Box<dyn Launcher>>,
    stage: Stage,
}

impl Bench for Startup {
    fn measure(&mut self, turn: &mut Turn<'_>) -> Result<Vec<Reading>, String> {
        let launched = self.launchers[turn.task].launch(&self.stage, turn.number)?;
        Ok(readings(&launched))
    }
}

/// The whole, its shares as far as they are known, and the time until the payload ran.
fn readings(l: &Launched) -> Vec<Reading> {
    let share =
        |part: &str, from: i64, to: i64| Reading::share(part, WHOLE, Quantity::Ns, to - from);
    let mut readings = vec![Reading::whole(WHOLE, Quantity::Ns, l.gone - l.asked)];
    match l.created {
        Some(created) => {
            readings.push(share("create", l.asked, created));
            readings.push(share("start", created, l.first));
        }
        None => readings.push(share("create and start", l.asked, l.first)),
    }
    readings.push(share("run", l.first, l.last));
    match l.ended {
        Some(ended) => {
            readings.push(share("exit", l.last, ended));
            readings.push(share("delete", ended, l.gone));
        }
        None => readings.push(share("exit and delete", l.last, l.gone)),
    }
    readings.push(Reading::whole(FIRST, Quantity::Ns, l.first - l.asked));
    readings
}

/// Findings of checking the launchers against the machine.
struct Ways {
    ways: Vec<(String, Way, i64)>,
    needs: Needs,
    sizes: Vec<Size>,
    sweep: Vec<Swept>,
}

impl Ways {
    /// Adds a way whose cells have no size.
    fn add(&mut self, name: &str, mut needs: Vec<Requirement>, guess_ns: i64, way: Way) {
        if self.is_sweep() {
            let reason = "no group holds what it starts, so nothing limits its cpus and memory";
            let fix = "name other engines with --engine";
            needs.push(Requirement::unmet("limits", reason, fix));
        }
        if self.needs.note(name, needs) {
            self.ways.push((name.to_owned(), way, guess_ns));
        }
    }

    /// Adds a way for cells of each size, which needs more where a size does.
    fn add_sized(
        &mut self,
        name: &str,
        needs: &[Requirement],
        guess_ns: i64,
        way: impl Fn(Size) -> Result<Way, Requirement>,
    ) {
        if !self.needs.note(name, needs.to_vec()) {
            return;
        }
        for size in self.sizes.clone() {
            let subject = match self.is_sweep() {
                true => format!("{name}, {size}"),
                false => name.to_owned(),
            };
            match way(size) {
                Ok(way) => {
                    if self.is_sweep() {
                        self.sweep.push(Swept {
                            subject: subject.clone(),
                            of: name.to_owned(),
                            size,
                        });
                    }
                    self.ways.push((subject, way, guess_ns));
                }
                // One of so many cpus, with whichever memory, is refused once.
                Err(unmet) => {
                    let cpus = size.vcpus.map(Size::cpus_text).unwrap_or_default();
                    let trial = format!("{name}, {cpus}");
                    let mut refused = self.needs.not_measured.iter();
                    if refused.all(|none| none.trial != trial) {
                        self.needs.note(&trial, vec![unmet]);
                    }
                }
            }
        }
    }

    fn is_sweep(&self) -> bool {
        self.sizes != [Size::default()]
    }
}

fn prepare(options: &SeriesOptions) -> Result<Prepared, InputErrors> {
    let mut ways = Ways {
        ways: Vec::new(),
        needs: Needs::default(),
        sizes: options.sweep.sizes(),
        sweep: Vec::new(),
    };
    if options.wants(EngineKind::Bare) {
        ways.add("fork+exec", Vec::new(), 2_000_000, Way::ForkExec);
        let root = engine::root_requirement("a clone with namespaces");
        ways.add("clone3", vec![root], 4_000_000, Way::Clone3);
    }
    oci_ways(options, &mut ways);
    manager_ways(options, &mut ways);
    if options.wants(EngineKind::Qemu) {
        machine_ways(&mut ways);
    }
    let baseline = (!ways.is_sweep()).then(|| "fork+exec".to_owned());
    let Ways {
        ways, needs, sweep, ..
    } = ways;
    let tasks = ways
        .iter()
        .map(|(name, _, guess_ns)| Task {
            subject: name.clone(),
            part: WHOLE.to_owned(),
            guess_ns: *guess_ns,
        })
        .collect();
    Ok(Prepared {
        tasks,
        needs,
        conditions: conditions(!sweep.is_empty()),
        found: BTreeMap::new(),
        baseline,
        sweep,
        open: Box::new(move |run| {
            let stage = Stage::of_run(run)?;
            let mut managers = Managers::default();
            let launchers = ways
                .iter()
                .map(|(_, way, _)| way.set_up(&stage, &mut managers))
                .collect::<Result<_, _>>()?;
            Ok(Box::new(Startup { stage, launchers }))
        }),
    })
}

/// That the limit of a container is one on this host.
fn limit(limits: Size) -> Result<Size, Requirement> {
    let here = allowed_cpus().len();
    match limits.vcpus {
        Some(vcpus) if vcpus as usize > here => {
            let plural = if here == 1 { "" } else { "s" };
            let reason =
                format!("a limit of {vcpus} cpus is none: this host has {here} cpu{plural}");
            Err(Requirement::unmet("limits", reason, "ask for fewer vcpus"))
        }
        _ => Ok(limits),
    }
}

fn oci_ways(options: &SeriesOptions, ways: &mut Ways) {
    for kind in EngineKind::runtimes() {
        if !options.wants(kind) {
            continue;
        }
        let needs = engine::by_kind(kind, &engine::Options::default()).requirements();
        let way = |user, in_steps, limits| Way::Oci {
            kind,
            user,
            in_steps,
            limits,
        };
        let limited = |in_steps| move |size| limit(size).map(|limits| way(None, in_steps, limits));
        ways.add_sized(kind.name(), &needs, 30_000_000, limited(false));
        if engine::has_steps(kind) {
            let name = format!("{kind} in steps");
            ways.add_sized(&name, &needs, 60_000_000, limited(true));
        }
        if kind == EngineKind::Embedded && crate::place::uid() != 0 {
            // Without root it is the rootless form already.
            continue;
        }
        let (user, needs) = without_root(options, needs);
        let name = format!("{kind} rootless");
        ways.add(&name, needs, 40_000_000, way(user, false, Size::default()));
    }
}

fn manager_ways(options: &SeriesOptions, ways: &mut Ways) {
    let engine_options = engine::Options {
        rootless_user: options.rootless_user.clone(),
    };
    for kind in (EngineKind::OF_BENCH.iter().copied()).filter(|kind| options.wants(*kind)) {
        for form in engine::forms(kind) {
            let mut needs = engine::by_kind(kind, &engine_options).requirements();
            needs.extend(engine::network_needs(kind, form.network));
            let user = kind.is_rootless().then(|| options.user().ok()).flatten();
            let way = |limits| Way::Manager {
                kind,
                user: user.clone(),
                source: form.source,
                network: form.network,
                limits,
            };
            const GUESS_NS: i64 = 500_000_000;
            match kind.is_rootless() {
                true => ways.add(form.name, needs, GUESS_NS, way(Size::default())),
                false => ways.add_sized(form.name, &needs, GUESS_NS, |size| limit(size).map(way)),
            }
        }
    }
}

/// The machines that come with timecell for cells.
fn machine_ways(ways: &mut Ways) {
    for (name, machine) in cells::machines(&mut ways.needs) {
        ways.add_sized(&name, &[], 8_000_000_000, |size| match size {
            size if size == Size::default() => Ok(Way::Machine(machine.clone())),
            size => machine.sized(size, None).map(Way::Machine),
        });
    }
}

/// The user for the same without root's powers, and the needs instead of root.
fn without_root(
    options: &SeriesOptions,
    needs: Vec<Requirement>,
) -> (Option<User>, Vec<Requirement>) {
    let mut needs: Vec<Requirement> = needs
        .into_iter()
        .filter(|need| need.what != "root" && need.what != "cgroup layout")
        .collect();
    needs.push(engine::users::namespaces());
    match options.user() {
        Ok(user) => (Some(user), needs),
        Err(unmet) => {
            needs.push(*unmet);
            (None, needs)
        }
    }
}

fn conditions(sweep: bool) -> Vec<Condition> {
    let sizes = sweep.then(|| {
        Condition::new(
            "sweep",
            "cpus and memory of virtual machines; of containers, limits of cpu time and of memory by their groups. Each is compared with \
             the first size of its kind",
        )
    });
    let always = [
        Condition::new(
            "payload",
            "our own static binary; it writes its first and its last clock reading to a shared page and ends",
        ),
        Condition::new(
            "cells",
            "the root filesystem is prepared and bundles are written before the time begins; caches are warm",
        ),
        Condition::new(
            "container managers",
            "in one call (podman run --rm, docker run --rm) with a storage of their own on tmpfs; \"podman\" and \
             \"docker\" start an image in a connected network namespace, the others say what they have instead; \
             rootless podman starts from a root directory, connected by slirp4netns",
        ),
        Condition::new(
            "virtual machines",
            "the kernel is in the cache, and the initial file system is made within the time; the first instruction is when the host hears \
             that timecell, the first process, is ready; then the machine is switched off. Without KVM its instructions are translated: \
             emulated, not representative of timing",
        ),
        Condition::new(
            "in steps",
            "create, start and delete as a command each; the time between them is in the whole",
        ),
        Condition::new(
            "order",
            "every launcher once per round, each round begins with the next one",
        ),
        Condition::new(
            "scheduling",
            "no real-time class, any cpu: this is how cells are usually started",
        ),
    ];
    always.into_iter().chain(sizes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_whole() {
        let all = Launched {
            asked: 10,
            created: Some(30),
            first: 60,
            last: 61,
            ended: Some(70),
            gone: 100,
            steps: Vec::new(),
        };
        let few = Launched {
            created: None,
            ended: None,
            ..all.clone()
        };
        for (launched, shares) in [(all, 5), (few, 3)] {
            let readings = readings(&launched);
            let of: Vec<&Reading> = readings.iter().filter(|r| r.of.is_some()).collect();
            assert_eq!(of.len(), shares);
            assert!(of.iter().all(|r| r.of.as_deref() == Some(WHOLE)));
            assert_eq!(of.iter().map(|r| r.value).sum::<i64>(), 90);
            assert_eq!(readings[0].value, 90);
            assert_eq!(readings.last().unwrap().value, 50);
        }
    }
}
