//! How far `produce --source` has read a file: kept beside the offsets, so that one commit set covers the events and the place.

use leftoff_wire::{Offset, consumer_offsets::SourceProgress};

use super::{
    Coordinator, GroupError, Outcome, Who, Why, error::check_name, outcome::source_record, story::Story,
};

/// What is known of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// How far it has been read, and what it looked like.
    pub progress: SourceProgress,
    /// The offset of its record in the offsets log.
    pub at: Offset,
    /// Who read it.
    pub who: Who,
}

impl Coordinator {
    /// Saves how far a source has been read. Lower than before is legal: the caller has looked at the file, we have not.
    ///
    /// # Errors
    /// If the source's name is empty or does not fit into the key.
    pub fn progress(
        &self,
        source: &str,
        progress: &SourceProgress,
        who: &Who,
    ) -> Result<Outcome<()>, GroupError> {
        check_name("source", source)?;
        let prev = self.sources.get(source).map(|slot| slot.at);
        let story = Story { prev, ..Story::new(Why::Progress, who) };
        Ok(Outcome { reply: (), records: vec![source_record(source, progress, &story)] })
    }

    /// How far a source has been read, if it is known.
    pub fn source(&self, source: &str) -> Option<&Source> {
        self.sources.get(source)?.live.as_ref()
    }

    /// Every source, sorted by name.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.sources.iter().filter_map(|(name, slot)| Some((name.as_str(), slot.live.as_ref()?)))
    }
}
