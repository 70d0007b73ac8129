//! `timecell top`: shows all that runs now, cell by cell. The command is here; the rows come from [`scene`] and [`mission`], the columns are in
//! [`columns`], order and filter in [`order`], the terminal in [`screen`].

mod columns;
mod mission;
mod order;
mod scene;
mod screen;

use std::io::IsTerminal;
use std::thread::sleep;
use std::time::Duration;

use bench::BenchError;
use supervise::control::ControlError;

use crate::cli::Top;
use crate::commands::control::locate;
use crate::exit::{CommandError, Ended};
use crate::out;
use mission::{Mission, is_up};
use scene::{Running, Scene, Source};

/// Shows all that runs until the user quits; without a terminal, or if asked to, prints it.
pub fn run(options: &Top) -> Result<Ended, CommandError> {
    stand_back();
    let interval = Duration::from_nanos(options.interval.ns().unsigned_abs());
    let mut source = source(options)?;
    let source = source.as_mut();
    if let Some(why) = source.kind().refuses(options.sort) {
        return Err(why.into());
    }
    if options.json {
        return lines(source, interval, options.count.unwrap_or(1));
    }
    if options.once || !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return once(source, interval, options);
    }
    let order = order::Order::of(options.sort, options.filter.clone());
    screen::show(source, interval, order).map_err(|source| CommandError::File {
        path: "the terminal".into(),
        doing: "draw on it",
        source,
    })?;
    Ok(Ended::Fine)
}

/// The named mission, else the running experiment, else the only running mission.
fn source(options: &Top) -> Result<Box<dyn Source>, CommandError> {
    let (name, dir) = (options.which.name(), options.which.which.dir.as_deref());
    let named = name.is_some() || dir.is_some();
    let mut running = Running::new();
    if !named && running.is_there() {
        return Ok(Box::new(running));
    }
    match locate(name, dir) {
        Ok(dir) if named || is_up(&dir) => Ok(Box::new(Mission::new(dir))),
        Err(error) if named => Err(error),
        // Several missions run: the user must name one.
        Err(error @ CommandError::Control(ControlError::Several { .. })) => Err(error),
        _ => Ok(Box::new(running)),
    }
}

/// Gives this process the least share among ordinary ones: watching must not disturb the watched cells.
fn stand_back() {
    // Watching works even if this is refused.
    let _ = rustix::process::setpriority_process(None, 19);
}

fn once(source: &mut dyn Source, interval: Duration, options: &Top) -> Result<Ended, CommandError> {
    let scene = second_look(source, interval)?;
    let order = order::Order::of(options.sort, options.filter.clone());
    out::print(&columns::table(&scene, &order));
    Ok(Ended::Fine)
}

/// Prints one JSON object per line.
fn lines(source: &mut dyn Source, interval: Duration, count: u32) -> Result<Ended, CommandError> {
    let mut scene = second_look(source, interval)?;
    for left in (0..count).rev() {
        out::print(&scene.json());
        if left > 0 {
            sleep(interval);
            scene = something(source)?;
        }
    }
    Ok(Ended::Fine)
}

/// Looks twice: shares of a cpu are known from the second look on.
fn second_look(source: &mut dyn Source, interval: Duration) -> Result<Scene, CommandError> {
    something(source)?;
    sleep(interval);
    something(source)
}

fn something(source: &mut dyn Source) -> Result<Scene, CommandError> {
    source
        .look()
        .map_err(|why| CommandError::Bench(BenchError::Unmet(why)))
}
