//! `timecell board`: boots boards, and runs timecell in them.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use guest::image::{self, WORK};
use guest::machine::{self, Boots};
use guest::{Cache, GuestError, Program, card, kernel};
use model::{Board, InputError, RootSystem};
use record::output::Output;

use super::common::unused;
use super::fetched;
use super::found::program;
use crate::cli::{self, BoardCommand, Builds, Images, Parts, Runs};
use crate::exit::{CommandError, Ended};
use crate::out;

/// Carries out what `board` is asked for.
pub fn run(options: &cli::Board) -> Result<Ended, CommandError> {
    match &options.command {
        BoardCommand::List => list(),
        BoardCommand::Fetch {
            board,
            root,
            refresh,
        } => fetch_only(board, *root, *refresh),
        BoardCommand::Build(builds) => build(builds),
        BoardCommand::Image(images) => write_card(images),
        BoardCommand::Boot(boots) => boot(boots),
        BoardCommand::Run(runs) => run_in(runs),
    }
}

fn list() -> Result<Ended, CommandError> {
    let boards: Result<Vec<_>, GuestError> = machine::built_in()
        .map(|(name, _)| machine::board(name))
        .collect();
    let mut text =
        String::from("board           processor  cpus  memory  kernel                what it is\n");
    for (board, name) in boards? {
        let kernel = board.kernel.package.as_deref().unwrap_or_default();
        let (processor, memory) = (board.architecture.name(), board.memory.to_string());
        text += &format!(
            "{name:<15} {processor:<10} {:>4}  {memory:<6}  {kernel:<20}  {}\n",
            board.cpus, board.title
        );
    }
    out::print(&text);
    Ok(Ended::Fine)
}

fn fetch_only(name: &str, root: RootSystem, refresh: bool) -> Result<Ended, CommandError> {
    let (mut board, _) = machine::board(name)?;
    board.set_root(root);
    let cache = Cache::of_user()?;
    let kernel = kernel::get(&cache, &board, refresh, &tell)?;
    image::packages(&cache, &board, refresh, &tell)?;
    out::print(&kernel.image.display().to_string());
    Ok(Ended::Fine)
}

fn tell(what: &str) {
    out::note(&format!("note    {what}"));
}

/// A board by its name, and timecell for its processor.
fn board_and_program(parts: &Parts) -> Result<((Board, String), Program), CommandError> {
    let mut board = machine::board(&parts.board)?;
    board.0.set_root(parts.root);
    let given = parts.guest_binary.as_deref();
    let program = program(board.0.architecture, given, "--guest-binary")?;
    Ok((board, program))
}

fn parts(parts: &Parts) -> Result<Boots, CommandError> {
    let (board, program) = board_and_program(parts)?;
    let made = Boots::new(board, &program, &parts.with, parts.refresh, &tell)?;
    Ok(made)
}

fn make(boots: &cli::Boots) -> Result<Boots, CommandError> {
    let made = match &boots.sd {
        Some(sd) => Boots::from_card(machine::board(&boots.parts.board)?, sd)?,
        None => parts(&boots.parts)?,
    };
    made.fits()?;
    Ok(made)
}

fn build(options: &Builds) -> Result<Ended, CommandError> {
    let mut made = parts(&options.parts)?;
    let arguments = made.arguments();
    let named = || PathBuf::from(&made.name);
    let dir = options.output.clone().unwrap_or_else(named);
    unused(&dir, options.force)?;
    let kernel = &made.kernel;
    let image = File::open(&kernel.image).map_err(fetched::told(&kernel.image, "read it"))?;
    let files = [
        ("kernel", "kernel", Some(image)),
        (
            "device_tree",
            "device-tree.dtb",
            made.kernel.device_tree.take(),
        ),
        (
            "initramfs",
            "initramfs.cpio",
            made.image.take().map(|image| image.file),
        ),
    ];
    let (mut json, mut text) = (serde_json::Map::new(), String::new());
    let write = |begun: &Path| {
        for (key, name, file) in files {
            let Some(mut file) = file else { continue };
            let path = dir.join(name);
            let mut out = Output::create(&begun.join(name))?;
            let copied = file.rewind().and_then(|()| {
                let bytes = std::io::copy(&mut file, &mut out)?;
                out.flush()?;
                file.rewind()?;
                Ok((bytes, guest::digest(&file)?))
            });
            let (bytes, sha256) = copied.map_err(fetched::told(&path, "write it"))?;
            out.finish()?;
            text += &format!(
                "{key:<12} {bytes:>10} bytes  sha256:{sha256}  {}\n",
                path.display()
            );
            let about = serde_json::json!({ "path": path, "bytes": bytes, "sha256": sha256 });
            json.insert(key.to_owned(), about);
        }
        Ok(())
    };
    fetched::whole(&dir, write)?;
    let modules: Vec<&str> = made
        .kernel
        .modules
        .iter()
        .map(|module| &*module.name)
        .collect();
    let from = &made.kernel.from;
    if options.json {
        json.extend([
            ("schema".to_owned(), 1.into()),
            ("board".to_owned(), made.name.clone().into()),
            ("kernel_from".to_owned(), from.clone().into()),
            ("modules".to_owned(), modules.into()),
            ("arguments".to_owned(), arguments.into()),
        ]);
        out::print(&format!("{:#}", serde_json::Value::from(json)));
    } else {
        let modules = if modules.is_empty() {
            "none".to_owned()
        } else {
            modules.join(", ")
        };
        text += &format!("from         {from}\nmodules      {modules}\narguments    {arguments}\n");
        out::print(&text);
    }
    Ok(Ended::Fine)
}

fn write_card(options: &Images) -> Result<Ended, CommandError> {
    let ((board, name), program) = board_and_program(&options.parts)?;
    let path = &options.sd;
    if path.exists() && !path.is_file() {
        let fix = "name a file, and write it to the card with dd";
        return Err(InputError::new(path.display().to_string(), "it is no file", fix).into());
    }
    if path.is_file() && !options.force {
        let fix = "name another, or overwrite it with --force";
        return Err(InputError::new(path.display().to_string(), "it already exists", fix).into());
    }
    let out = Output::create(path)?;
    let (with, again) = (&options.parts.with, options.parts.refresh);
    let file = out
        .file()
        .map(|file| card::write((&board, &name), &program, with, again, (path, file), &tell));
    let sizes = file.transpose()?;
    out.finish()?;
    let mib = |bytes: u64| bytes >> 20;
    if let Some(sizes) = sizes {
        out::print(&format!(
            "card    {}: {} MiB (FAT32 {} MiB, ext4 {} MiB)",
            path.display(),
            mib(sizes.card),
            mib(sizes.boot),
            mib(sizes.root)
        ));
    }
    out::note(
        "note    a real board starts with its vendor's BOOT.BIN (first-stage loader, PMU firmware, TF-A, U-Boot), which is not in the image: \
         take it from AMD's release image for the board, or make it with PetaLinux, and copy it onto the first partition",
    );
    Ok(Ended::Fine)
}

fn boot(options: &cli::Boots) -> Result<Ended, CommandError> {
    let made = make(options)?;
    Ok(Ended::Program(machine::console(
        &made,
        options.accel,
        &tell,
    )?))
}

fn run_in(options: &Runs) -> Result<Ended, CommandError> {
    let began = Instant::now();
    let made = make(&options.boots)?;
    let see: fn(&[u8]) = if options.console {
        out::foreign_note
    } else {
        |_| ()
    };
    let booted = machine::boot(&made, options.boots.accel, see)?;
    let label = if booted.kvm {
        "by KVM"
    } else {
        host::virt::NOT_REPRESENTATIVE
    };
    let ready = &booted.ready;
    out::note(&format!(
        "board   {}, {} cpus, Linux {} ({label}); up after {:.1} s",
        made.name,
        ready.cpus,
        ready.kernel,
        began.elapsed().as_secs_f64()
    ));
    if let Some(why) = &booted.note {
        out::note(&format!("note    {why}"));
    }
    let mut guest = booted.guest;
    let mut words = vec![options.program.clone()];
    words.extend(options.args.iter().cloned());
    let status = guest.run(&words, false, &mut show)?;
    let runs = format!("{WORK}/runs");
    let fill = |dir: &Path| guest.fetch(&made.cache, &runs, dir);
    fetched::keep(&options.out, fill, |dir| Ok(dir.to_owned()))?;
    if guest.lost() > 0 {
        out::note(&format!(
            "note    {} messages of the guest were lost on the line",
            guest.lost()
        ));
    }
    if !guest.off() {
        out::note("note    the guest did not switch itself off, and was ended");
    }
    Ok(Ended::Program(status))
}

pub(super) fn show(of: machine::Output, bytes: &[u8]) {
    match of {
        machine::Output::Out => out::foreign_raw(bytes),
        machine::Output::Err => out::foreign_note(bytes),
    }
}
