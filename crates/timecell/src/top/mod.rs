//! `timecell top`: what runs now, cell by cell. Here lives the verb; where rows come from is [`scene`], what a column
//! says is [`columns`], order and filter are [`order`], the terminal is [`screen`].

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

/// Shows what runs until the user has seen enough; on no terminal, or if asked to, prints it.
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

/// The mission that is named, else what is measured, else the only mission that runs.
fn source(options: &Top) -> Result<Box<dyn Source>, CommandError> {
    let named = options.mission.is_some() || options.dir.is_some();
    let mut running = Running::new();
    if !named && running.is_there() {
        return Ok(Box::new(running));
    }
    match locate(options.mission.as_deref(), options.dir.as_deref()) {
        Ok(dir) if named || is_up(&dir) => Ok(Box::new(Mission::new(dir))),
        Err(error) if named => Err(error),
        // Several run, and which is meant has to be said.
        Err(error @ CommandError::Control(ControlError::Several { .. })) => Err(error),
        _ => Ok(Box::new(running)),
    }
}

/// Who watches must not be in the way of who is watched: the least share among ordinary processes.
fn stand_back() {
    // A refusal changes nothing.
    let _ = rustix::process::setpriority_process(None, 19);
}

fn once(source: &mut dyn Source, interval: Duration, options: &Top) -> Result<Ended, CommandError> {
    let scene = second_look(source, interval)?;
    let order = order::Order::of(options.sort, options.filter.clone());
    out::print(&columns::table(&scene, &order));
    Ok(Ended::Fine)
}

/// One JSON object a line.
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

/// Shares of a cpu are known from the second look on.
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
