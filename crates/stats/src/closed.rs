//! How long jobs take when N of them share m servers and rest in between: the prediction of queueing theory.

use serde::{Deserialize, Serialize};

/// A closed system: every job needs `demand_ns` of one of `servers` equal servers, then rests for `think_ns`, and
/// comes again. Cells with relative pacing on m cpus are one: the demand is the execution time of a job that has the
/// cpu to itself, the rest is the period.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Closed {
    /// Time of a server that a job needs, ns; above 0.
    pub demand_ns: f64,
    /// Time between the end of a job and the arrival of the next of the same cell, ns; 0 or more.
    pub think_ns: f64,
    /// Servers, 1 or more.
    pub servers: u32,
}

/// The behaviour predicted of a [`Closed`] system with a number of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    /// No mean response time is shorter in any order of service, ns: max(E, N E / m - Z).
    pub floor_ns: f64,
    /// The mean response time under processor sharing when arrivals are not in step, ns; see [`Closed::predict`].
    pub sharing_ns: f64,
    /// No mean response time is longer as long as no server idles while a job waits, ns: E (1 + (N - 1) / m).
    pub ceiling_ns: f64,
    /// Share of the servers' time that is used under processor sharing, 0 to 1.
    pub utilization: f64,
}

impl Closed {
    /// The system; `None` where a figure is not finite or out of its range.
    pub fn new(demand_ns: f64, think_ns: f64, servers: u32) -> Option<Closed> {
        let sound = demand_ns.is_finite() && demand_ns > 0.0 && think_ns.is_finite();
        (sound && think_ns >= 0.0 && servers > 0).then_some(Closed {
            demand_ns,
            think_ns,
            servers,
        })
    }

    /// The number of jobs from which the servers would be saturated if no job ever waited: N* = m (E + Z) / E.
    pub fn saturation(&self) -> f64 {
        f64::from(self.servers) * (self.demand_ns + self.think_ns) / self.demand_ns
    }

    /// The prediction for `jobs` jobs; `None` for none.
    ///
    /// Floor and ceiling are the asymptotic bounds of operational analysis, which assume nothing about distributions
    /// (Denning and Buzen, "The operational analysis of queueing network models", ACM Computing Surveys 10(3), 1978;
    /// Lazowska, Zahorjan, Graham and Sevcik, "Quantitative System Performance", 1984, chapter 5). Between them stands
    /// the product-form solution (the machine repairman; exact mean value analysis gives the same): it is exact for
    /// processor sharing by one server for any distributions of demand and rest (Baskett, Chandy, Muntz and
    /// Palacios, J. ACM 22(2), 1975), and for service in order of arrival, or several servers, where demands are
    /// exponential. Jobs that are released in step and hardly vary lie closer to the floor.
    pub fn predict(&self, jobs: u32) -> Option<Predicted> {
        if jobs == 0 {
            return None;
        }
        let (n, m) = (f64::from(jobs), f64::from(self.servers));
        let busy = self.busy_servers(jobs);
        let floor_ns = self.demand_ns.max(n * self.demand_ns / m - self.think_ns);
        let ceiling_ns = self.demand_ns * (1.0 + (n - 1.0) / m);
        // Little's law for the whole cycle; rounding must not leave the bounds.
        let sharing_ns = n * self.demand_ns / busy - self.think_ns;
        Some(Predicted {
            floor_ns,
            sharing_ns: sharing_ns.max(floor_ns).min(ceiling_ns.max(floor_ns)),
            ceiling_ns: ceiling_ns.max(floor_ns),
            utilization: (busy / m).clamp(0.0, 1.0),
        })
    }

    /// Mean number of busy servers, from the probabilities of how many jobs are present:
    /// p(k) / p(k-1) = ((n - k + 1) / Z) / (min(k, m) / E).
    fn busy_servers(&self, jobs: u32) -> f64 {
        if self.think_ns == 0.0 {
            return f64::from(jobs.min(self.servers));
        }
        let load = self.demand_ns / self.think_ns;
        // Weights relative to the largest so far, so that thousands of jobs neither overflow nor vanish.
        let (mut weight, mut sum, mut busy) = (1.0_f64, 1.0_f64, 0.0_f64);
        for k in 1..=jobs {
            let serving = f64::from(k.min(self.servers));
            weight *= f64::from(jobs - k + 1) * load / serving;
            sum += weight;
            busy += weight * serving;
            if sum > 1e200 {
                (weight, sum, busy) = (weight / sum, 1.0, busy / sum);
            }
        }
        (busy / sum).max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Exact mean value analysis of one queueing centre and a delay: R(n) = E (1 + Q(n-1)), X = n / (Z + R), Q = X R
    /// (Reiser and Lavenberg, J. ACM 27(2), 1980).
    fn mean_value_analysis(demand: f64, think: f64, jobs: u32) -> f64 {
        let (mut queue, mut response) = (0.0, demand);
        for n in 1..=jobs {
            response = demand * (1.0 + queue);
            queue = f64::from(n) / (think + response) * response;
        }
        response
    }

    /// Lazowska et al., section 6.4 in kind: demand 2 s, think 10 s. By hand: R(1) = 2, R(2) = 2 (1 + 1/6) = 7/3,
    /// R(3) = 2 (1 + 2 (7/3) / (37/3)) = 2 (1 + 14/37) = 102/37.
    #[test]
    fn three_customers_by_hand() {
        let closed = Closed::new(2.0, 10.0, 1).unwrap();
        for (jobs, response) in [(1, 2.0), (2, 7.0 / 3.0), (3, 102.0 / 37.0)] {
            let predicted = closed.predict(jobs).unwrap();
            assert!((predicted.sharing_ns - response).abs() < 1e-12, "{jobs}");
        }
        assert_eq!(closed.saturation(), 6.0);
        assert_eq!(closed.predict(10).unwrap().floor_ns, 10.0);
        assert_eq!(closed.predict(10).unwrap().ceiling_ns, 20.0);
        assert_eq!(closed.predict(0), None);
    }

    #[test]
    fn far_beyond_saturation_the_prediction_is_the_floor() {
        let closed = Closed::new(270_000.0, 1_000_000.0, 2).unwrap();
        let predicted = closed.predict(4_096).unwrap();
        assert!((predicted.sharing_ns / predicted.floor_ns - 1.0).abs() < 1e-9);
        assert!((predicted.utilization - 1.0).abs() < 1e-12);
        let alone = closed.predict(1).unwrap();
        assert!((alone.sharing_ns - 270_000.0).abs() < 1e-6);
        assert!((alone.utilization - 270.0 / 1_270.0 / 2.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_system_is_refused() {
        for (demand, think, servers) in [
            (0.0, 1.0, 1),
            (-1.0, 1.0, 1),
            (1.0, -1.0, 1),
            (1.0, 1.0, 0),
            (f64::NAN, 1.0, 1),
            (1.0, f64::INFINITY, 1),
        ] {
            assert_eq!(Closed::new(demand, think, servers), None);
        }
    }

    proptest! {
        #[test]
        fn one_server_is_mean_value_analysis(
            demand in 1.0f64..1e9, think in 0.0f64..1e10, jobs in 1u32..600,
        ) {
            let predicted = Closed::new(demand, think, 1).unwrap().predict(jobs).unwrap();
            let expected = mean_value_analysis(demand, think, jobs);
            prop_assert!((predicted.sharing_ns / expected - 1.0).abs() < 1e-6);
        }

        #[test]
        fn predictions_stay_within_the_bounds_and_grow_with_the_jobs(
            demand in 1.0f64..1e9, think in 0.0f64..1e10, servers in 1u32..64, jobs in 1u32..5_000,
        ) {
            let closed = Closed::new(demand, think, servers).unwrap();
            let (now, next) = (closed.predict(jobs).unwrap(), closed.predict(jobs + 1).unwrap());
            for predicted in [now, next] {
                prop_assert!(predicted.floor_ns <= predicted.sharing_ns);
                prop_assert!(predicted.sharing_ns <= predicted.ceiling_ns);
                prop_assert!((0.0..=1.0).contains(&predicted.utilization));
            }
            prop_assert!(next.floor_ns >= now.floor_ns);
            // n E / busy - Z loses digits where the rest is long beside the demand.
            prop_assert!(next.sharing_ns >= now.sharing_ns - 1e-9 * (demand + think));
            prop_assert!(next.utilization >= now.utilization - 1e-9);
        }
    }
}
