//! JSON of the tools of rt-tests that measure something other than a wake-up by a timer: smallest, mean and largest
//! value of each thread in us, no histogram. Those that work in pairs report at the thread that receives.

use model::InputError;
use serde::Deserialize;

use super::json::Frame;
use super::sense::{Head, Reader};
use super::{Distribution, Measured, Options, Said, Source};

/// A tool, what it measures, and what a thread of it is called.
struct Tool {
    name: &'static str,
    quantity: &'static str,
    place: &'static str,
}

const TOOLS: [Tool; 6] = [
    Tool {
        name: "ptsematest",
        quantity: "hand-over of a mutex",
        place: "pair",
    },
    Tool {
        name: "svsematest",
        quantity: "hand-over of a System V semaphore",
        place: "pair",
    },
    Tool {
        name: "pmqtest",
        quantity: "delivery of a POSIX message",
        place: "pair",
    },
    Tool {
        name: "sigwaittest",
        quantity: "delivery of a signal to sigwait",
        place: "pair",
    },
    Tool {
        name: "signaltest",
        quantity: "round of a signal through all threads",
        place: "thread",
    },
    Tool {
        name: "rt-migrate-test",
        quantity: "wait until a woken task runs",
        place: "task",
    },
];

pub(super) const READER: Reader = Reader::new(
    "rt-tests-json",
    "What ptsematest, svsematest, pmqtest, sigwaittest, signaltest and rt-migrate-test write by --json",
    senses,
    read,
);

fn tool(program: Option<&str>) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| Some(tool.name) == program)
}

fn senses(head: &Head) -> bool {
    head.is_json() && tool(head.program()).is_some()
}

#[derive(Deserialize)]
struct Thread {
    sender: Option<Sender>,
    receiver: Option<Figures>,
    prio: Option<i64>,
    #[serde(flatten)]
    figures: Figures,
}

#[derive(Deserialize)]
struct Sender {
    samples: Option<u64>,
}

#[derive(Deserialize, Default)]
struct Figures {
    cpu: Option<u32>,
    cycles: Option<u64>,
    min: Option<f64>,
    max: Option<f64>,
    avg: Option<f64>,
    #[serde(default)]
    timeoutcount: u64,
}

fn read(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let mut frame = Frame::<Thread>::read(source)?;
    let Some(tool) = tool(frame.program()) else {
        let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        return Err(InputError::new(
            &name,
            "the command line in the file names no tool whose figures are known",
            format!("the tools are {}", known.join(", ")),
        ));
    };
    let mut measured = Measured::by(tool.name);
    let threads = frame.threads(&name, tool.name, &mut measured.notes)?;
    for (number, thread) in threads {
        let mut place = format!("{} {number}", tool.place);
        if let Some(prio) = thread.prio {
            place += &format!(", priority {prio}");
        }
        let samples = thread.sender.and_then(|sender| sender.samples);
        let figures = thread.receiver.unwrap_or(thread.figures);
        let (Some(min), Some(max)) = (figures.min, figures.max) else {
            let what = format!("{place} has no `min` and `max`");
            return Err(InputError::new(&name, what, "the tool measured nothing"));
        };
        if figures.timeoutcount > 0 {
            measured.notes.push(format!(
                "{place}: {} messages came too late to be counted",
                figures.timeoutcount
            ));
        }
        let mut d = Distribution::new(place, tool.quantity, 1_000);
        d.cpu = figures.cpu;
        d.said = Said {
            min_ns: Some((min * 1e3).round() as i64),
            mean_ns: figures.avg.map(|us| us * 1e3),
            max_ns: Some((max * 1e3).round() as i64),
            cycles: figures.cycles.or(samples),
        };
        measured.distributions.push(d);
    }
    measured.notes.push(format!(
        "{} writes smallest, mean and largest value and no histogram, so there are no quantiles",
        tool.name
    ));
    measured.machine = frame.machine();
    measured.incomplete = frame.incomplete;
    measured.version = frame.rt_test_version;
    measured.command = frame.cmdline;
    Ok(measured)
}
