//! Shared by loads made of stress-ng: the command line and the metrics that it prints at the end.

use record::Achieved;

use crate::load::kind::{Program, Window};

pub(crate) const PROGRAM: Program = Program {
    name: "stress-ng",
    package: "stress-ng",
    version: &["--version"],
};

/// stress-ng with these stressors, in the foreground until it is told to end.
pub(crate) fn command(stressors: &[&str]) -> Vec<String> {
    // Without these it would move itself to other cpus, raise its standing with the OOM killer, or end by itself.
    let always = ["--metrics-brief", "--timeout", "0", "--no-rand-seed"];
    ["stress-ng"]
        .iter()
        .chain(stressors)
        .chain(&always)
        .map(|word| (*word).to_owned())
        .collect()
}

/// The `bogo ops/s (real time)` of a stressor, measured by stress-ng from its start to its end.
pub(crate) fn told(window: &Window<'_>, stressor: &str) -> Vec<Achieved> {
    // stress-ng: metrc: [7] cpu  1234  1.00  0.99  0.01  1234.00  1240.00
    let ops = window.log.lines().find_map(|line| {
        let (_, fields) = line.split_once(']')?;
        let mut fields = fields.split_whitespace();
        if fields.next()? != stressor {
            return None;
        }
        let ops: f64 = fields.next()?.parse().ok()?;
        let seconds: f64 = fields.next()?.parse().ok()?;
        (seconds > 0.0).then_some((ops, seconds))
    });
    ops.map(|(ops, seconds)| Achieved {
        quantity: format!("{stressor} operations (bogo ops)"),
        unit: "1/s".to_owned(),
        value: ops / seconds,
        window_ns: (seconds * 1e9) as i64,
    })
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::account::Usage;

    #[test]
    fn the_metrics_are_read() {
        let log = "stress-ng: info:  [3] dispatching hogs: 2 cpu\n\
                   stress-ng: metrc: [3] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s\n\
                   stress-ng: metrc: [3]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)\n\
                   stress-ng: metrc: [3] cpu                3000      2.00      3.99      0.00      1500.00         751.88\n";
        let window = Window {
            before: Usage::default(),
            after: Usage::default(),
            window_ns: 0,
            progress: 0,
            log,
        };
        let told = super::told(&window, "cpu");
        assert_eq!(told.len(), 1);
        assert!((told[0].value - 1500.0).abs() < 1e-9);
        assert_eq!(told[0].window_ns, 2_000_000_000);
        assert!(super::told(&window, "memcpy").is_empty());
    }
}
