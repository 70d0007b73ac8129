//! Whether a machine has the things that a mission names.

use std::path::Path;

use super::machine;
use super::reservation::candidates;
use super::rights::is_below;
use super::swaps;
use super::tasks::runs_by_deadline;
use super::top::list;
use crate::Enforcer;
use crate::file::Faults;
use crate::mission::machine::resolve;
use crate::mission::{
    Cell, Image, KernelBounds, Latency, Machine, Mission, PathKind, Place, Rights,
};

/// Reports the things that the mission names and the machine does not have.
pub(in crate::mission) fn check(
    file: &str,
    mission: &Mission,
    machine: &dyn Machine,
    faults: &mut Faults<'_>,
) {
    let mut check = Check {
        file,
        machine,
        cpus: machine.cpus(),
        bounds: machine.bounds(),
        faults,
    };
    let top = Place::top();
    check.cpus(&mission.cpus, &top);
    check.cpus(&mission.supervisor.cpus, &top.key("supervisor"));
    if let Some(Latency::Run(run)) = &mission.latency {
        check.path(run, &top.key("latency_run"), "run", &[PathKind::Directory]);
    }
    if let Some(run) = &mission.supply_run {
        check.path(run, &top.key("supply_run"), "run", &[PathKind::Directory]);
    }
    if let Some(program) = mission.notify.first() {
        let place = top.key("notify").item(0);
        check.path(Path::new(program), &place, "program", &[PathKind::Program]);
    }
    if let Some(jailhouse) = &mission.jailhouse {
        let place = top.key("jailhouse").key("system");
        check.path(&jailhouse.system, &place, "system configuration", FILES);
    }
    check.engines(&mission.cells);
    for (index, cell) in mission.cells.iter().enumerate() {
        let place = Place::cell(index);
        check.cpus(&cell.cpus, &place);
        check.image(cell, &place.key("image"));
        check.program(cell, &place);
        if cell.engine.is_machine() {
            check.machine(cell, &place);
        }
        check.partition(mission, cell, &place);
        check.rights(cell, &place.key("rights"));
        check.bounds(mission, cell, &place);
    }
    swaps::check(file, mission, machine, faults);
}

/// Files that are read, whether they may be executed or not.
const FILES: &[PathKind] = &[PathKind::File, PathKind::Program];

struct Check<'c, 'f> {
    file: &'c str,
    machine: &'c dyn Machine,
    cpus: Vec<u32>,
    bounds: KernelBounds,
    faults: &'c mut Faults<'f>,
}

impl Check<'_, '_> {
    fn cpus(&mut self, cpus: &[u32], table: &Place) {
        let place = table.key("cpus");
        if !self.faults.is_clear(&place) {
            return;
        }
        for (at, cpu) in cpus.iter().enumerate() {
            if !self.cpus.contains(cpu) {
                self.faults.report_at(
                    &place.item(at),
                    format!("cpu {cpu} is not available for cells on this machine"),
                    format!("it has {}", list(&self.cpus)),
                );
            }
        }
    }

    /// Whether the path is of one of the kinds.
    fn path(&mut self, path: &Path, place: &Place, what: &str, wanted: &[PathKind]) {
        if !self.faults.is_clear(place) || path.as_os_str().is_empty() {
            return;
        }
        let path = resolve(self.file, path);
        let found = self.machine.path(&path);
        if wanted.contains(&found) {
            return;
        }
        let shown = path.display();
        let wanted: Vec<&str> = wanted.iter().map(|kind| kind.name()).collect();
        match found {
            PathKind::Absent => self.faults.report_at(
                place,
                format!("there is no {what} `{shown}`"),
                "create it, or correct the path",
            ),
            found => self.faults.report_at(
                place,
                format!("the {what} `{shown}` is {}", found.name()),
                format!("it must be {}", wanted.join(" or ")),
            ),
        }
    }

    /// Whether the engines make cells here; reported at the first cell of each.
    fn engines(&mut self, cells: &[Cell]) {
        let mut asked = Vec::new();
        for (index, cell) in cells.iter().enumerate() {
            let place = Place::cell(index).key("engine");
            if asked.contains(&cell.engine) || !self.faults.is_clear(&place) {
                continue;
            }
            asked.push(cell.engine);
            if let Some(lacking) = self.machine.lacks(cell.engine) {
                let what = format!("{} makes no cells here: {}", cell.engine, lacking.reason);
                (self.faults).report_at(&place, what, lacking.fix.unwrap_or_default());
            }
        }
    }

    fn image(&mut self, cell: &Cell, place: &Place) {
        let at = place.key(cell.image.key());
        if !self.faults.is_clear(place) {
            return;
        }
        match &cell.image {
            Image::Rootfs(path) => {
                self.path(path, &at, "root filesystem", &[PathKind::Directory]);
            }
            Image::Binary(path) => self.path(path, &at, "binary", &[PathKind::Program]),
            Image::Inmate(path) => self.path(path, &at, "inmate", FILES),
            Image::Bundle(path) => {
                self.path(path, &at, "bundle", &[PathKind::Directory]);
                let directory = self.machine.path(&resolve(self.file, path));
                if directory == PathKind::Directory {
                    let config = path.join("config.json");
                    self.path(&config, &at, "configuration", FILES);
                }
            }
            Image::Reference(name) => {
                let engine = cell.engine;
                let asked = engine.makes(cell.image.kind())
                    && self.faults.is_clear(&at)
                    && !name.is_empty();
                if asked && self.machine.knows_image(engine, name) == Some(false) {
                    self.faults.report_at(
                        &at,
                        format!("{engine} has no image `{name}`"),
                        format!(
                            "pull, build or load it first; `{engine} images` lists those that it has"
                        ),
                    );
                }
            }
        }
    }

    /// Whether the virtual machine can be had, with a virtual cpu for each task.
    fn machine(&mut self, cell: &Cell, place: &Place) {
        if !self.faults.is_clear(place) {
            return;
        }
        let (tasks, at) = (cell.tasks.len(), place.key("machine"));
        self.cpus(&cell.machine.helpers.cpus, &at.key("helpers"));
        match self.machine.vcpus(cell) {
            Ok(vcpus) if tasks > vcpus as usize => {
                let what = machine::too_few(tasks, vcpus);
                self.faults.report(&at, &["vcpus"], what, machine::MORE);
            }
            Ok(_) => self.memory_of_machine(cell, place),
            Err(need) => {
                let what = format!("{}: {}", need.what, need.reason);
                let fix = need.fix.unwrap_or_default();
                let keys = ["machine", "engine"];
                self.faults.report(place, &keys, what, fix);
            }
        }
    }

    /// Whether the files of a partition are there, and the machine can have it.
    fn partition(&mut self, mission: &Mission, cell: &Cell, place: &Place) {
        let at = place.key("partition");
        let (Some(partition), Some(jailhouse)) = (&cell.partition, &mission.jailhouse) else {
            return;
        };
        for (index, load) in partition.load.iter().enumerate() {
            let at = at.key("load").item(index).key("file");
            self.path(&load.file, &at, "file", FILES);
        }
        let inmate = cell.image.path().map(|path| (path, partition.entry));
        let loads = partition
            .load
            .iter()
            .map(|load| (load.file.as_path(), load.at));
        let files: Vec<_> = (inmate.into_iter().chain(loads))
            .map(|(file, at)| (resolve(self.file, file), at))
            .collect();
        let system = resolve(self.file, &jailhouse.system);
        let mut read = files.iter().map(|(file, _)| file).chain([&system]);
        let of_system = Place::top().key("jailhouse");
        let is_whole = [&of_system, place].map(|place| self.faults.is_whole(place)) == [true; 2];
        if !is_whole
            || !cell.engine.is_partition()
            || !read.all(|file| FILES.contains(&self.machine.path(file)))
        {
            return;
        }
        let before = mission
            .cells
            .iter()
            .take_while(|other| other.name != cell.name);
        let beside: Vec<_> = before
            .filter_map(|other| Some((other.name.as_str(), other.partition.as_ref()?)))
            .collect();
        for why in
            self.machine
                .refuses_partition((mission, cell), partition, &system, &files, &beside)
        {
            let (what, fix) = why.split_once("; ").unwrap_or((&why, ""));
            self.faults.report_at(&at, what, fix);
        }
    }

    /// Whether the limit of its memory leaves room for the virtual machine.
    fn memory_of_machine(&mut self, cell: &Cell, place: &Place) {
        let program = cell.image.path().map(|path| resolve(self.file, path));
        let takes = program.and_then(|program| self.machine.least_memory(cell, &program));
        if let Some((limit, takes)) = cell.rights.memory.zip(takes)
            && limit.bytes() < takes
        {
            let mib = takes.div_ceil(1 << 20);
            let what =
                format!("the limit of {limit} is too little: the virtual machine takes {mib} MiB");
            let fix = "raise it to that, remove it, or give the machine less `memory`";
            (self.faults).report(&place.key("rights"), &["memory"], what, fix);
        }
    }

    /// Whether the program that is executed is a file of the image.
    fn program(&mut self, cell: &Cell, place: &Place) {
        let image = place.key("image").key(cell.image.key());
        let is_clear = self.faults.is_clear(&image) && !cell.engine.is_partition();
        let Some(path) = cell.image.path().filter(|_| is_clear) else {
            return;
        };
        let path = resolve(self.file, path);
        if let Some(why) = self.machine.refuses_image(cell, &path) {
            let fix = "through a link in an image, a mount can end up in a directory of the host";
            return self.faults.report_at(&image, why, fix);
        }
        let Some(why) = self.machine.refuses_program(cell, &path) else {
            return;
        };
        let at = match cell.command.is_empty() {
            true => image,
            false => place.key("command"),
        };
        self.faults
            .report_at(&at, why, "a cell executes only what is in its image");
    }

    fn rights(&mut self, cell: &Cell, place: &Place) {
        for (index, device) in cell.rights.devices.iter().enumerate() {
            let at = place.key("devices").item(index).key("path");
            if is_below(&device.path, "/dev") {
                self.path(&device.path, &at, "device", &[PathKind::Device]);
            }
        }
        let at = place.key("evl");
        let is_device = |path: &&str| self.machine.path(Path::new(path)) == PathKind::Device;
        if cell.rights.evl
            && self.faults.is_clear(&at)
            && let Some(lacking) = Rights::OF_EVL.iter().find(|path| !is_device(path))
        {
            let what = format!(
                "cell `{}` asks for EVL, and there is no device `{lacking}`",
                cell.name
            );
            let fix = "boot a kernel with EVL (Xenomai 4), or remove `evl`";
            self.faults.report_at(&at, what, fix);
        }
        for (index, mount) in cell.rights.mounts.iter().enumerate() {
            let at = place.key("mounts").item(index).key("source");
            let kinds = [
                PathKind::Directory,
                PathKind::File,
                PathKind::Program,
                PathKind::Other,
            ];
            self.path(&mount.source, &at, "source of a mount", &kinds);
        }
    }

    /// Bounds of this kernel's settings.
    fn bounds(&mut self, mission: &Mission, cell: &Cell, place: &Place) {
        if !self.faults.is_clear(&place.key("class")) || !cell.is_real_time() {
            return;
        }
        if let Some(reservation) = &cell.reservation
            && self.faults.is_clear(&place.key("cpus"))
        {
            let cpus = cell.cpu_count();
            let beyond: Vec<_> = (candidates(mission, cell).into_iter())
                .map(|enforcer| self.bounds.beyond(enforcer, reservation, cpus))
                .collect();
            if beyond.iter().all(Option::is_some)
                && let Some((key, what, fix)) = beyond.into_iter().flatten().next()
            {
                let at = place.key("reservation");
                self.faults
                    .report(&at, &[key, "budget", "period"], what, fix);
            }
        }
        let threads = runs_by_deadline(mission, cell)
            && mission.enforcer.is_none_or(|e| e == Enforcer::Deadline);
        for (number, task) in cell.tasks.iter().enumerate().filter(|_| threads) {
            if let Some((key, what, fix)) = self.bounds.deadline_period(task.timing.period) {
                self.faults.report(&place.task(number), &[key], what, fix);
            }
        }
    }
}
