//! Readers of effects and outcomes.

mod lines;
mod ndjson;
mod outcomes;
mod template;

pub use lines::{DEFAULT_LINE_LIMIT_BYTES, RawLine, RawLines};
pub use ndjson::{EffectFile, EffectLines, NameBy};
pub use outcomes::{OutcomeFile, OutcomeLines};
pub use template::{IdTemplate, TemplateError};

#[cfg(test)]
mod tests;
