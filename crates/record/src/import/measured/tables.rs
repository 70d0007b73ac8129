//! Formats that are tables of patterns.

use super::grammar::{Grammar, MICROSECONDS, have_maxima};

/// A row per cpu, printed again and again while the tool runs; the last one counts. Of timerlat current, smallest, mean and largest latency of
/// each part, dashes where nothing was measured; of osnoise runtime, noise, available share, largest noise, largest single noise.
pub(super) const TOP: Grammar = Grammar {
    name: "rtla-top",
    files: "Text of `rtla timerlat top` and `rtla osnoise top`",
    signs: &[
        "{..}IRQ Timer Latency ({unit}) {*}",
        "CPU Period {..}Max Noise Max Single {*}",
    ],
    tool: "rtla timerlat top",
    quantity: "timer latency",
    rules: "
part > {at} {at} | {*}
own > {..}IRQ Timer Latency ({unit}) {*}
own > duration: {at} {at} | {*}
own > CPU Period {..}Max Noise Max Single {*}
own > Timer Latency
own > Operating System Noise
own > CPU COUNT {*}
own > ALL {*}
own > ---{*}
part irq, cpu {cpu} > {cpu} #{n} | {} {min} {mean} {max} {*}
part thread, cpu {cpu} > {cpu} #{n} | {} {} {} {} | {} {min} {mean} {max} {*}
part return to user, cpu {cpu} > {cpu} #{n} | {} {} {} {} | {} {} {} {} | {} {min} {mean} {max}
own > {cpu} #{n} | {} {} {} {}
own > {cpu} #{n} | {} {} {} {} | {} {} {} {}
own > {cpu} #{n} | {} {} {} {} | {} {} {} {} | {} {} {} {}
own noise, cpu {cpu}|operating-system noise > {cpu} #{} {skip} {skip} {skip} {skip} {max} {*}
must > {cpu} #{*}",
    end: |_, run| {
        let is_noise = run
            .series
            .iter()
            .any(|series| series.d.quantity != "timer latency");
        if is_noise {
            "rtla osnoise top".clone_into(&mut run.measured.tool);
        }
        run.hint = match is_noise {
            true => "; only the largest single noise of each cpu is read",
            false => " (rtla timerlat hist writes one)",
        };
        Ok(())
    },
    ..MICROSECONDS
};

pub(super) const TRACE: Grammar = Grammar {
    name: "timerlat-trace",
    files: "The trace of the tracer timerlat",
    signs: &["{..}[{cpu}] {..}#{seq} context {..}timer_latency {value} ns"],
    tool: "timerlat",
    quantity: "timer latency",
    unit_ns: Some(1),
    rules: "
own > #{*}
own irq, cpu {cpu} > {..}[{cpu}] {..}#{seq} context irq timer_latency {value} ns
own thread, cpu {cpu} > {..}[{cpu}] {..}#{seq} context thread timer_latency {value} ns
own return to user, cpu {cpu} > {..}[{cpu}] {..}#{seq} context user timer_latency {value} ns
own return to user, cpu {cpu} > {..}[{cpu}] {..}#{seq} context user-ret timer_latency {value} ns
must > {..}timer_latency{*}
own > CPU:{} [LOST {lost} EVENTS]",
    end: |table, run| {
        if table.lost > 0 {
            run.lacks(
                "the kernel lost events of the trace, and their latencies with them".to_owned(),
            );
        }
        Ok(())
    },
    ..MICROSECONDS
};

/// Samples are the latency within and between two reads of the clock.
pub(super) const HWLATDETECT: Grammar = Grammar {
    name: "hwlatdetect",
    files: "Text and report of hwlatdetect",
    signs: &["hwlatdetect:{*}", "ts: {*}", "{stamp} {value} {or}"],
    tool: "hwlatdetect",
    quantity: "hardware latency",
    rules: "
title > hwlatdetect:{*}
own > Latency threshold: {above}
last samples > Max Latency: {max}
last > Max Latency: Below {*}
must > Max Latency:{*}
own > Samples recorded: {n}
own > Samples exceeding threshold:{*}
own > SMIs during run:{*}
own samples > ts: {stamp}, inner:{value}, outer:{or}
own samples > ts: {stamp}, inner:{value}, outer:{or},{*}
must > ts:{*}
own samples > {stamp} {value} {or}",
    end: |table, run| {
        table.is_whole("Max Latency:")?;
        let d = &mut run.series("samples", "hardware latency", 1_000)?.d;
        d.kept_above_ns = table.above_ns;
        d.said.cycles = table.cycles;
        let listed = d.counted();
        // A list may have been left out or cut by its reader.
        if let Some(samples) = table.cycles.filter(|samples| *samples != listed) {
            d.counts.clear();
            if listed > 0 {
                run.note(format!(
                    "{listed} of {samples} samples are listed, so only the maximum is read"
                ));
            }
        }
        run.note(match table.above_ns {
            Some(ns) => format!("the tool keeps only latencies above {} us", ns / 1_000),
            None => {
                "the tool keeps only latencies above a threshold, which the file does not state"
                    .to_owned()
            }
        });
        Ok(())
    },
    ..MICROSECONDS
};

pub(super) const STRESS_NG: Grammar = Grammar {
    name: "stress-ng-cyclic",
    files: "Text of `stress-ng --cyclic`",
    signs: &["stress-ng:{..}cyclic: {*}"],
    tool: "stress-ng --cyclic",
    unit_ns: Some(1),
    rules: "
title > stress-ng:{..}cyclic: sched {} {..}delay, {n} samples
own samples > stress-ng:{..}cyclic: mean: {mean} ns, {*}
own samples > stress-ng:{..}cyclic: min: {min} ns, max: {max} ns, {*}
own samples > stress-ng:{..}cyclic: {share}%: {q} ns
own > stress-ng:{*}",
    end: |_, run| have_maxima(run, "cyclic: min: ... max:"),
    ..MICROSECONDS
};

/// Figures below `Statistics:` of the system and of each core.
pub(super) const RTEVAL: Grammar = Grammar {
    name: "rteval-text",
    files: "The report that rteval prints",
    signs: &["rteval (v{*}", "rteval run on {*}"],
    tool: "rteval",
    hint: " (its summary.xml has one)",
    rules: "
own > rteval run on {*}
title > rteval (v{version}){*}
own > Kernel: {kernel} {*}
own > Command: {command*}
block all cpus > System: {*}
block cpu {cpu} > CPU core {cpu} {*}
own > Statistics:
own > Samples: {n}
own > Mean: {mean}
own > Median: {median}
own > Mode: {*}
own > Range: {*}
own > Min: {min}
own > Max: {max}
own > Mean Absolute Dev: {*}
own > Std.dev: {*}",
    end: |_, run| {
        let cycles = |is_all: bool| {
            let some = run
                .series
                .iter()
                .filter(|series| series.d.cpu.is_none() == is_all);
            some.filter_map(|series| series.d.said.cycles)
                .fold(0, u64::saturating_add)
        };
        let (all, of_cpus) = (cycles(true), cycles(false));
        if of_cpus > 0 && all > of_cpus {
            run.lacks(format!(
                "the report of {all} samples ends after cpus with {of_cpus} of them"
            ));
        }
        Ok(())
    },
    ..MICROSECONDS
};

/// Percentiles, printed again and again; the last ones count.
pub(super) const SCHBENCH: Grammar = Grammar {
    name: "schbench",
    files: "Text of schbench",
    signs: &["Wakeup Latencies percentiles (usec){*}", "Request Latencies percentiles (usec){*}", "Latency percentiles (usec){*}"],
    tool: "schbench",
    rules: "
block wake-ups > Wakeup Latencies percentiles (usec) runtime {at} (s) ({n} total samples)
block wake-ups > Latency percentiles (usec) runtime {at} (s) ({n} total samples)
block wake-ups > Latency percentiles (usec)
block requests|response time > Request Latencies percentiles (usec) runtime {at} (s) ({n} total samples)
block > RPS percentiles {*}
own > {share}th: {q} {*}
own > *{share}th: {q} {*}
own > min={min}, max={max}
must > min={*}
must > Wakeup Latencies percentiles {*}
must > Request Latencies percentiles {*}
must > Latency percentiles {*}",
    ..MICROSECONDS
};

/// `RTD|` lines have the figures of a second and the extremes until then, `RTS|` those of the run.
pub(super) const XENOMAI: Grammar = Grammar {
    name: "xenomai-latency",
    files: "Text of Xenomai's `latency` and EVL's `latmus`",
    signs: &["RTD|{*}", "RTS|{*}"],
    tool: "latency of Xenomai or latmus of EVL",
    rules: "
title > == {*}
own > RTT| {at} {*}
own samples > RTD|{}|{}|{}|{lost}|{}|{min}|{max}
last samples > RTS|{min}|{mean}|{max}|{lost}|{*}
must > RTD|{*}
must > RTS|{*}
own > RTH|{*}
own > ---|{*}
own > HS{}|{*}",
    end: |table, run| {
        if !table.ended {
            run.note("the line `RTS|`, which ends a run, is missing: the figures are those of the last line");
        }
        if table.lost > 0 {
            run.note(format!("{} overruns, as the tool counts them", table.lost));
        }
        Ok(())
    },
    ..MICROSECONDS
};

/// Comments with figures, then a row of a bucket and its count each.
pub(super) const LATMUS: Grammar = Grammar {
    name: "latmus-hist",
    files: "What EVL's `latmus -g` writes",
    signs: &["# libevl version{*}", "# min latency:{*}"],
    tool: "latmus of EVL",
    rules: "
title > # test started on{*}
own > # Linux version {kernel} {*}
own > # sample count: {n}
title samples > # min latency: {min}
own samples > # avg latency: {mean}
own samples > # max latency: {max}
own > #{*}
own samples > {value} {times}",
    end: |table, run| {
        have_maxima(run, "# max latency:")?;
        let Some(samples) = table.cycles else {
            return Err("cut short: no line `# sample count:`".to_owned());
        };
        for series in &mut run.series {
            series.d.said.cycles = Some(samples);
            let held = series.d.counted();
            if held > 0 && held != samples {
                return Err(format!(
                    "cut short: the rows hold {held} of {samples} values"
                ));
            }
        }
        Ok(())
    },
    ..MICROSECONDS
};

/// The lines of a run without a histogram.
pub(super) const CYCLICTEST: Grammar = Grammar {
    signs: &["T:{name}({id}) P:{} I:{interval} C:{n} Min:{min} Act:{} Avg:{mean} Max:{max} {*}"],
    tool: "cyclictest",
    unit_ns: None,
    hint: " (-h or -H makes one)",
    rules: "
own thread {name} > T:{name}({id}) P:{} I:{interval} C:{n} Min:{min} Act:{} Avg:{mean} Max:{max} {*}
must > T:{name}({*}",
    ..MICROSECONDS
};

pub(super) const JITTERDEBUGGER: Grammar = Grammar {
    name: "jitterdebugger-text",
    files: "Text of jitterdebugger",
    signs: &["T:{name}({id}) A:{cpu} C:{n} Min:{min} Avg:{mean} Max:{max} {*}"],
    tool: "jitterdebugger",
    unit_ns: None,
    hint: " (use -f or -o to write results.json)",
    rules: "
title > affinity:{*}
own thread {name} > T:{name}({id}) A:{cpu} C:{n} Min:{min} Avg:{mean} Max:{max} {*}
must > T:{name}({*}",
    ..MICROSECONDS
};

pub(super) const SIGNALTEST: Grammar = Grammar {
    name: "signaltest",
    files: "Text of signaltest",
    signs: &["T:{name}({id}) P:{} C:{n} Min:{min} Act:{} Avg:{mean} Max:{max} {*}"],
    tool: "signaltest",
    quantity: "round of a signal through all threads",
    rules: "
own thread {name} > T:{name}({id}) P:{} C:{n} Min:{min} Act:{} Avg:{mean} Max:{max} {*}
must > T:{name}({*}",
    ..MICROSECONDS
};

pub(super) const CYCLICDEADLINE: Grammar = Grammar {
    name: "cyclicdeadline",
    files: "Text of cyclicdeadline",
    signs: &["T:{name}({id}) I:{} C:{n} Min:{min} Act:{} Avg:{mean} Max:{max} {*}"],
    tool: "cyclicdeadline",
    rules: "
title > interval:{*}
own thread {name} > T:{name}({id}) I:{} C:{n} Min:{min} Act:{} Avg:{mean} Max:{max} {*}
must > T:{name}({*}",
    ..MICROSECONDS
};

/// The tools of rt-tests that work in pairs.
pub(super) const PAIRS: Grammar = Grammar {
    name: "rt-tests-pairs",
    files: "Text of ptsematest, svsematest, pmqtest and sigwaittest",
    signs: &["#{name} -> #{to}, Min {min}, Cur {}, Avg {mean}, Max {max}"],
    tool: "rt-tests, a tool of pairs",
    quantity: "hand-over between a pair of threads",
    rules: "
own > #{}: ID{id},{..}Cycles {n}
own #{name} -> #{to} > #{name} -> #{to}, Min {min}, Cur {}, Avg {mean}, Max {max}
must > #{name} -> {*}",
    end: |_, run| {
        run.note("ptsematest, svsematest, pmqtest and sigwaittest write the same text: it does not say which of them measured (their --json does)");
        Ok(())
    },
    ..MICROSECONDS
};
