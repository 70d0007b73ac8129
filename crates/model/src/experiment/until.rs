//! `until` of an experiment file: a run continues until its conditions are decided.

use super::Experiment;
use crate::{InputError, Threshold};

/// Maximum number of conditions of an experiment.
pub(super) const MOST: usize = 20;
/// Maximum number of looks at a run, each after twice as many rounds as the one before.
const LOOKS: u32 = 5;

impl Experiment {
    /// The rounds after which the run checks whether it may end; the last one is the end of the run.
    pub fn looks(&self) -> Vec<u32> {
        if self.until.is_empty() {
            return match self.turns {
                Some(turns) => turns.looks(self.rounds),
                None => vec![self.rounds],
            };
        }
        let mut looks: Vec<u32> = (0..LOOKS)
            .rev()
            .map(|halved| self.rounds.div_ceil(1 << halved).max(1))
            .collect();
        looks.dedup();
        looks
    }

    /// Lets the run continue until these conditions are decided, for at most a fixed multiple of the rounds before the
    /// first look.
    ///
    /// # Errors
    /// When the experiment already ends for another reason.
    pub fn go_on_until(&mut self, conditions: Vec<Threshold>) -> Result<(), InputError> {
        if self.scale.is_some() || self.turns.is_some_and(|turns| turns.decide.is_some()) {
            return Err(InputError::new(
                "--until",
                match self.scale {
                    Some(_) => "a scale study measures each number of cells once",
                    None => "--decide ends the run for another reason",
                },
                "remove one of the two",
            ));
        }
        self.until = conditions;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(top: &str, turns: &str) -> Result<Experiment, crate::InputErrors> {
        let text = format!(
            "schema = 1\nname = \"x\"\n{top}\n[workload]\nkind = \"timer\"\n{turns}\n[[trial]]\nname = \"a\"\ncells = [\"bare\"]\n"
        );
        Experiment::parse("x", &text)
    }

    #[test]
    fn a_run_is_looked_at_after_twice_as_many_rounds_each_time() {
        let looks = |rounds: u32| {
            let text = format!("rounds = {rounds}\nuntil = [\"latency.p99 < 1ms\"]");
            let read = parse(&text, "").unwrap();
            let again = Experiment::parse("again", &read.to_toml()).unwrap();
            assert_eq!(again, read);
            read.looks()
        };
        assert_eq!(looks(16), [1, 2, 4, 8, 16]);
        assert_eq!(looks(48), [3, 6, 12, 24, 48]);
        assert_eq!(looks(3), [1, 2, 3]);
        assert_eq!(looks(1), [1]);
        assert_eq!(parse("rounds = 7", "").unwrap().looks(), [7]);
    }

    #[test]
    fn what_is_no_condition_is_told_with_its_line() {
        let error = parse(
            "until = [\"latency.p99 < 1ms\",\n\"latency.p42 < 1ms\"]",
            "",
        )
        .unwrap_err();
        assert!(
            (error.to_string())
                .starts_with("x:4: `latency.p42 < 1ms`: character 9: unknown statistic"),
            "{error}"
        );
    }

    #[test]
    fn two_reasons_to_end_are_refused() {
        let until = "until = [\"latency.p99 < 1ms\"]";
        assert!(parse(until, "[turns]").is_ok());
        let error = parse(until, "[turns]\ndecide = 0.02").unwrap_err();
        assert!(error.to_string().contains("cannot be combined"), "{error}");
        let mut experiment = parse("", "[turns]\ndecide = 0.02").unwrap();
        assert!(
            experiment
                .go_on_until(vec!["latency.p99 < 1ms".parse().unwrap()])
                .is_err()
        );
    }
}
