//! Effects in a PostgreSQL database, as it was when the check began.

use leftoff_audit::effects::{EffectLines, NameBy, OutcomeLines};
use leftoff_audit::{Effect, Outcome, Seen, SourceError, Stream};
use leftoff_consumer::sink::ID_KEY;
pub use leftoff_consumer::sink::postgres::PostgresReader;

use super::evidence::Effects;

/// The longest line that a row becomes.
const LINE_BYTES: usize = 4_096;

/// The rows of a group that tell which event they came of.
pub struct PostgresEffects(pub PostgresReader);

impl Effects for PostgresEffects {
    fn by_place(&self) -> bool {
        true
    }

    fn effects<'a>(&'a self, name_by: &'a NameBy) -> Result<Stream<'a, Seen<Effect>>, SourceError> {
        let effect = move |found: Result<_, _>| -> Result<Seen<Effect>, SourceError> {
            let leftoff_consumer::sink::postgres::PostgresEffect { id } = found?;
            // What a user wrote into the column may be anything: the audit says what it makes of it.
            let line = format!("{}\n", serde_json::json!({ ID_KEY: id }));
            let mut lines = EffectLines::new(line.as_bytes(), name_by, LINE_BYTES);
            Ok(lines.next().expect("a line is an effect, or none that can be read")?)
        };
        Ok(Box::new(self.0.effects()?.map(effect)))
    }

    fn outcomes<'a>(&'a self, topic_id: &'a str) -> Result<Stream<'a, Seen<Outcome>>, SourceError> {
        let lines = self.0.outcome_lines()?;
        let outcomes: Vec<_> = OutcomeLines::new(lines.as_bytes(), topic_id).map(|line| Ok(line?)).collect();
        Ok(Box::new(outcomes.into_iter()))
    }
}
