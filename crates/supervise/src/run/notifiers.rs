//! The program that is notified of incidents.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use crate::incident::Incident;

/// Notifiers that may run at the same time.
const MOST: usize = 16;
/// Bytes that a pipe takes without anybody reading; longer incidents go without their evidence.
const PIPE_BYTES: usize = 60 << 10;

/// The mission's `notify` program, started once for each incident.
#[derive(Debug, Default)]
pub(super) struct Notifiers {
    running: Vec<Child>,
}

impl Notifiers {
    /// Starts the program with the incident as one line of JSON on its standard input. It runs beside the supervisor, in no
    /// real-time class, and nobody waits for it.
    pub(super) fn start(&mut self, command: &[String], incident: &Incident) -> Result<(), String> {
        self.reap();
        let Some((program, args)) = command.split_first() else {
            return Ok(());
        };
        if self.running.len() >= MOST {
            return Err(format!("{MOST} instances of it still run"));
        }
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let text = line(incident).map_err(|error| error.to_string())?;
        let mut input = child.stdin.take();
        self.running.push(child);
        // It fits into the pipe, so that this waits for nobody; a program that does not read loses it.
        let written = input
            .as_mut()
            .map_or(Ok(()), |input| input.write_all(text.as_bytes()));
        written.map_err(|error| format!("{program}: {error}"))
    }

    /// Takes leave of those that have ended.
    pub(super) fn reap(&mut self) {
        // A process that cannot be asked is no longer ours.
        self.running
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}

fn line(incident: &Incident) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(incident)?;
    if text.len() > PIPE_BYTES {
        let mut short = incident.clone();
        short.evidence.jobs.clear();
        short.evidence.output_tail = None;
        text = serde_json::to_string(&short)?;
    }
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::tests::example;
    use std::time::{Duration, Instant};

    #[test]
    fn the_program_gets_the_incident_and_is_reaped() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("incident");
        let script = format!("cat > {0}.part && mv {0}.part {0}", file.display());
        let command = ["/bin/sh", "-c", &script].map(str::to_owned);
        let mut notifiers = Notifiers::default();
        notifiers.start(&command, &example(7)).unwrap();
        let began = Instant::now();
        while !(file.exists() && notifiers.running.is_empty()) {
            notifiers.reap();
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(serde_json::from_str::<Incident>(&text).unwrap(), example(7));
        let absent = ["/nowhere/at/all".to_owned()];
        let why = notifiers.start(&absent, &example(1)).unwrap_err();
        assert!(why.contains("/nowhere/at/all"), "{why}");
        notifiers.start(&[], &example(1)).unwrap();
    }
}
