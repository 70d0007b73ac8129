//! Supply that was measured instead of modelled: how little cpu time a thread that never rested received in any
//! window of a length, and the bounded delays that lie below that everywhere. The means of measuring it, and the place where it is kept,
//! are not here.
//!
//! ```
//! use timecell_analysis::{Supply, empirical::{Envelope, Gap, Span, least_delay}};
//!
//! // 3 ns in every 10 ns, but the second budget is overdrawn by 2 ns, which the third pays back.
//! let gaps = [(3, 10), (15, 20), (21, 30), (33, 40)].map(|(begin, end)| Gap { begin, end });
//! let span = Span::new(0, 43, gaps.to_vec())?;
//! assert_eq!((span.received(), span.least(9), span.least(16)), (15, Some(0), Some(2)));
//! let delay = least_delay(&[span], 3, 10).unwrap();
//! assert_eq!(delay, 12); // the textbook's is 2 (P - Q) = 14, and P - Q = 7 where the budget comes first
//! assert_eq!(Envelope::of(&[(3, 10, delay)]).unwrap().sbf(22), 3);
//! # Ok::<(), timecell_analysis::empirical::SpanError>(())
//! ```

mod envelope;
mod fit;
mod shortfall;
mod span;

pub use envelope::Envelope;
pub use fit::{cyclic_rate, least_delay};
pub use shortfall::{Shortfall, least_of, shortfall, windows};
pub use span::{Gap, Span, SpanError};
