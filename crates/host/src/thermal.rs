//! The cpu's temperature, where the machine has a sensor for it: thermal zones and hwmon.

use std::path::PathBuf;

use crate::root::Root;

/// Words in the type of a thermal zone that make it the cpu's: Intel's package, Arm's cpu and SoC zones.
const ZONES: [&str; 5] = ["x86_pkg_temp", "cpu", "soc", "coretemp", "acpitz"];
/// Drivers of hwmon that show the cpu's temperature as `temp1_input`.
const DRIVERS: [&str; 6] = [
    "coretemp",
    "k10temp",
    "zenpower",
    "cpu_thermal",
    "soc_thermal",
    "k8temp",
];
/// Temperatures that a cpu can have; another reading is a sensor that is not there, millicelsius.
const PLAUSIBLE: std::ops::RangeInclusive<i64> = -60_000..=200_000;

/// A temperature sensor of the cpu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sensor {
    /// Its name in the kernel, such as `x86_pkg_temp`.
    pub name: String,
    root: Root,
    file: PathBuf,
}

impl Sensor {
    /// The temperature now, millicelsius; `None` when the sensor gives none.
    pub fn read(&self) -> Option<i64> {
        let value = self.root.read(&self.file).ok()?.parse().ok()?;
        PLAUSIBLE.contains(&value).then_some(value)
    }
}

/// The cpu's sensor; `None` on machines without one, as most virtual ones.
pub fn cpu_sensor() -> Option<Sensor> {
    cpu_sensor_at(&Root::live())
}

/// [`cpu_sensor`] under another root.
pub fn cpu_sensor_at(root: &Root) -> Option<Sensor> {
    let zones = devices(root, "/sys/class/thermal", "thermal_zone", "type", "temp");
    let hwmon = devices(root, "/sys/class/hwmon", "hwmon", "name", "temp1_input");
    let of_zone = |word: &&str| {
        let of_cpu = |sensor: &&Sensor| sensor.name.to_lowercase().contains(*word);
        zones.iter().find(of_cpu).cloned()
    };
    let of_driver = |driver: &&str| hwmon.iter().find(|s| s.name == **driver).cloned();
    (ZONES.iter().find_map(of_zone)).or_else(|| DRIVERS.iter().find_map(of_driver))
}

/// The sensors below a directory that give a temperature, in the order of their numbers.
fn devices(root: &Root, dir: &str, prefix: &str, name: &str, value: &str) -> Vec<Sensor> {
    let mut numbers: Vec<u32> = std::fs::read_dir(root.path(dir))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let file = entry.file_name();
            file.to_str()?.strip_prefix(prefix)?.parse().ok()
        })
        .collect();
    numbers.sort_unstable();
    let sensor = |number: u32| {
        let device = format!("{dir}/{prefix}{number}");
        Some(Sensor {
            name: root.read(format!("{device}/{name}")).ok()?,
            root: root.clone(),
            file: PathBuf::from(format!("{device}/{value}")),
        })
    };
    numbers
        .into_iter()
        .filter_map(sensor)
        .filter(|sensor| sensor.read().is_some())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn the_package_comes_before_other_zones_and_before_hwmon() {
        let (_dir, root) = tree(&[
            ("sys/class/thermal/thermal_zone0/type", "acpitz\n"),
            ("sys/class/thermal/thermal_zone0/temp", "27800\n"),
            ("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n"),
            ("sys/class/thermal/thermal_zone1/temp", "51000\n"),
            ("sys/class/hwmon/hwmon0/name", "coretemp\n"),
            ("sys/class/hwmon/hwmon0/temp1_input", "52000\n"),
        ]);
        let sensor = cpu_sensor_at(&root).unwrap();
        assert_eq!(
            (sensor.name.as_str(), sensor.read()),
            ("x86_pkg_temp", Some(51_000))
        );
    }

    #[test]
    fn a_board_and_a_desktop_have_one() {
        let (_dir, board) = tree(&[
            ("sys/class/thermal/thermal_zone0/type", "cpu-thermal\n"),
            ("sys/class/thermal/thermal_zone0/temp", "48312\n"),
        ]);
        assert_eq!(cpu_sensor_at(&board).unwrap().read(), Some(48_312));
        let (_dir, desktop) = tree(&[
            ("sys/class/hwmon/hwmon0/name", "nvme\n"),
            ("sys/class/hwmon/hwmon0/temp1_input", "30000\n"),
            ("sys/class/hwmon/hwmon1/name", "k10temp\n"),
            ("sys/class/hwmon/hwmon1/temp1_input", "40125\n"),
        ]);
        assert_eq!(cpu_sensor_at(&desktop).unwrap().name, "k10temp");
    }

    #[test]
    fn a_sensor_without_a_plausible_reading_is_none() {
        let (_dir, root) = tree(&[
            ("sys/class/thermal/thermal_zone0/type", "cpu-thermal\n"),
            ("sys/class/thermal/thermal_zone0/temp", "-274000\n"),
            ("sys/class/thermal/thermal_zone1/type", "battery\n"),
            ("sys/class/thermal/thermal_zone1/temp", "31000\n"),
        ]);
        assert_eq!(cpu_sensor_at(&root), None);
        let (_dir, nothing) = tree(&[]);
        assert_eq!(cpu_sensor_at(&nothing), None);
    }
}
