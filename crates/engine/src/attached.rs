//! A cell whose runtime stays: it waits for the payload as its parent and deletes the container at its end,
//! as `crun run` and `runc run` do unless they are told to detach.

use std::time::{Duration, Instant};

use crate::engines::info;
use crate::error::{Result, refused};
use crate::made::{self, Payload};
use crate::{Cell, CellSpec, EngineError, oci, process, run_command};

/// How long a runtime may take to report the payload's pid.
const PATIENCE: Duration = Duration::from_secs(120);

/// Creates such a cell with an OCI runtime ([`model::EngineKind::runtimes`]); returns as soon as the payload's pid is known.
///
/// # Errors
/// In the engine's own words; all that was made until then is removed.
pub fn attach(spec: &CellSpec) -> Result<Box<dyn Cell>, EngineError> {
    made::create(spec, || make(spec), info(spec.engine).wipe)
}

fn make(spec: &CellSpec) -> Result<Payload> {
    let mut command = run_command(spec).map_err(|error| error.source)?;
    let log = made::log(spec);
    let mut helper = process::spawn(&mut command, &log)?;
    match wait_for_pid(spec, &mut helper) {
        Ok(pid) => Ok(Payload {
            pid,
            child: None,
            helper: Some(helper),
        }),
        Err(why) => {
            let _ = helper.kill();
            let _ = helper.wait();
            Err(why)
        }
    }
}

fn wait_for_pid(spec: &CellSpec, helper: &mut std::process::Child) -> Result<i32> {
    let began = Instant::now();
    let mut before = None;
    while began.elapsed() < PATIENCE {
        let told = oci::read_pid(&oci::pid_file(spec)).ok();
        // Twice the same: a file that is being written may be read half.
        if let Some(pid) = told
            && before == told
        {
            return Ok(pid);
        }
        before = told;
        if let Some(status) = helper.try_wait()? {
            let said = process::tail(&made::log(spec));
            return Err(refused!("the runtime ended with {status} {said}"));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Err(refused!("no pid within {} s", PATIENCE.as_secs()))
}
