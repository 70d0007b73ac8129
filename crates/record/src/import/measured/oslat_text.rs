//! oslat's text: a column per cpu and a row per bucket, the last of them for everything longer, then smallest, mean and largest value.

use super::lines::{Line, Lines, Run, count};
use super::rt_tests_json::last_bucket_overflows;
use super::sense::Reader;
use super::{decimal, excerpt};

pub(super) const READER: Reader = Reader::text::<Oslat>("oslat-text", "Text of oslat", |line| {
    line.starts_with("oslat V ") || bucket(line).is_some()
});

/// The bucket of a row `001 (us):  1000 2000`, in us.
fn bucket(line: &str) -> Option<&str> {
    let (bucket, _) = line.split_once(" (us):")?;
    bucket.parse::<f64>().ok().map(|_| bucket)
}

#[derive(Default)]
pub(super) struct Oslat {
    over: bool,
    complete: bool,
}

impl Lines for Oslat {
    fn tool(&self) -> &'static str {
        "oslat"
    }

    fn line(&mut self, line: &str, run: &mut Run) -> Result<Line, String> {
        let version = (line.strip_prefix("oslat V ")).or_else(|| line.strip_prefix("Version: "));
        if let Some(version) = version {
            run.measured.version = Some(excerpt(version.trim()).into_owned());
            return run.header().map(|()| Line::Own);
        }
        let (key, values) = line.split_once(':').unwrap_or((line, ""));
        let values: Vec<&str> = (values.split_whitespace())
            .take_while(|word| !word.starts_with('('))
            .collect();
        if key == "Core" {
            run.header()?;
            for cpu in values {
                let number = cpu.parse::<u32>();
                let number = number.map_err(|_| format!("`{}` is not a cpu", excerpt(cpu)))?;
                let series = run.series(&format!("cpu {number}"), "interruption", 1_000)?;
                series.d.cpu = Some(number);
            }
            return Ok(Line::Own);
        }
        if let Some(bucket) = bucket(line) {
            let ns = decimal(bucket, 1_000)?;
            self.over |= line.contains("(including overflows)");
            run.row(&values, |series, word| {
                series.values.add_times(ns, count(word)?);
                Ok(())
            })?;
            return Ok(Line::Own);
        }
        match key {
            "Minimum" | "Average" | "Maximum" => {}
            "CPU Freq" | "Max-Min" | "Duration" => return Ok(Line::Own),
            _ => return Ok(Line::Other),
        }
        self.complete |= key == "Maximum";
        run.row(&values, |series, word| {
            let ns = decimal(word, 1_000)?;
            match key {
                "Minimum" => series.d.said.min_ns = Some(ns),
                "Average" => series.d.said.mean_ns = Some(ns as f64),
                _ => series.d.said.max_ns = Some(ns),
            }
            Ok(())
        })?;
        Ok(Line::Own)
    }

    fn end(&mut self, run: &mut Run) -> Result<(), String> {
        if run.series.is_empty() {
            return Err("cut short: no line `Core:`".to_owned());
        }
        if !self.complete || !self.over {
            return Err(
                "cut short: the row `(including overflows)` or the line `Maximum:` is missing"
                    .to_owned(),
            );
        }
        run.series
            .iter_mut()
            .for_each(|series| last_bucket_overflows(&mut series.d));
        Ok(())
    }
}
