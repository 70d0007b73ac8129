//! The missions that are shipped.

use super::{LEAST, json, parse, shipped, validator};
use crate::Enforcer;
use crate::mission::{
    Action, Cell, CellClass, Criticality, Image, Latency, Network, Observed, Ready, Restart,
    RestartPolicy, Seccomp, WhenShed,
};
use crate::taskset::{Order, Policy, TaskCell};
use crate::{Duration, EngineKind};

#[test]
fn every_shipped_mission_is_read_and_fits_the_schema() {
    let validator = validator();
    let missions = shipped();
    assert!(missions.len() >= 3);
    for (name, text) in missions {
        let mission = parse(&text).unwrap_or_else(|errors| panic!("{name}: {errors}"));
        let errors: Vec<String> = validator
            .iter_errors(&json(&text))
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}");
        assert_eq!(parse(&mission.to_toml()), Ok(mission), "{name}");
    }
}

#[test]
fn the_least_mission_grants_nothing() {
    let mission = parse(LEAST).unwrap();
    assert_eq!(mission.enforcer, None);
    assert_eq!(mission.modes, None);
    let cell = &mission.cells[0];
    assert_eq!(cell.engine, EngineKind::Embedded);
    assert_eq!(cell.class, None);
    assert_eq!(cell.criticality, Criticality::Low);
    assert!(cell.cpus.is_empty() && cell.is_real_time());
    assert_eq!(cell.ready, Ready::Started);
    assert_eq!(cell.stop_timeout, Cell::STOP_TIMEOUT);
    let second = 1_000_000_000;
    assert_eq!(
        cell.restart,
        Restart {
            policy: RestartPolicy::OnFailure,
            backoff_min: Duration::from_ns(second / 10),
            backoff_max: Duration::from_ns(10 * second),
            limit: 5,
            window: Duration::from_ns(60 * second),
        }
    );
    let rights = &cell.rights;
    assert_eq!(rights.network, Network::None);
    assert_eq!(rights.seccomp, Seccomp::Default);
    assert!(!rights.writable_root && rights.capabilities.is_empty());
    assert!(rights.devices.is_empty() && rights.mounts.is_empty() && rights.tmpfs.is_empty());
    assert_eq!((rights.user, rights.memory, rights.pids), (None, None, 64));
    assert_eq!((rights.pending_signals, rights.open_files), (256, 1024));
    assert_eq!(rights.message_queues.bytes(), 800 << 10);
}

#[test]
fn the_satellite_is_what_its_file_says() {
    let (_, text) = shipped()
        .into_iter()
        .find(|(name, _)| name == "satellite.toml")
        .unwrap();
    let mission = parse(&text).unwrap();
    assert_eq!(mission.enforcer, Some(Enforcer::RtCgroup));
    assert_eq!(
        mission.latency,
        Some(Latency::Allowance(Duration::from_ns(150_000)))
    );
    let attitude = mission.cell("attitude").unwrap();
    assert_eq!(attitude.argv().count(), 3);
    assert_eq!(attitude.band(), attitude.priorities);
    assert_eq!(attitude.health[0].action_after(3), Action::Shed);
    assert_eq!(attitude.health[0].action_after(2), Action::Restart);
    assert!(matches!(
        attitude.health[1].when,
        Observed::DeadlineMisses {
            misses: 2,
            jobs: 10,
            ..
        }
    ));
    let tasks: TaskCell = attitude.analysed(CellClass::Fifo);
    assert_eq!(tasks.policy, Policy::Fixed(Order::Priority));
    assert_eq!(tasks.tasks[0].deadline, Duration::from_ns(8_000_000));
    let payload = mission.cell("payload").unwrap();
    assert!(matches!(&payload.image, Image::Reference(_)));
    assert_eq!(payload.when_shed, WhenShed::Stop);
    assert!(!mission.cell("telemetry").unwrap().is_real_time());

    let names = |order: Vec<usize>| -> Vec<&str> {
        order
            .into_iter()
            .map(|at| mission.cells[at].name.as_str())
            .collect()
    };
    assert_eq!(
        names(mission.start_order()),
        ["attitude", "camera", "tracker", "telemetry", "payload"]
    );
    assert_eq!(
        names(mission.shed_order()),
        ["payload", "tracker", "camera"]
    );
    let camera = mission.position("camera").unwrap();
    assert_eq!(names(mission.dependents(camera)), ["tracker"]);
}

#[test]
fn a_band_comes_from_the_tasks_where_the_file_says_none() {
    let (_, text) = shipped()
        .into_iter()
        .find(|(name, _)| name == "mixed-criticality.toml")
        .unwrap();
    let mission = parse(&text).unwrap();
    let band = mission.cell("guidance").unwrap().band().unwrap();
    assert_eq!((band.lowest, band.highest), (89, 90));
    let guidance = mission.cell("guidance").unwrap();
    assert_eq!(
        guidance.tasks[1].timing.wcet_high,
        Some(Duration::from_ns(3_000_000))
    );
    assert_eq!(
        mission.cell("mapping").unwrap().tasks[0].timing.wcet_high,
        None
    );
}
