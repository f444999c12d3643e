//! What a group keeps with its offsets about the topic that its records go to.

use std::fmt;
use std::str::FromStr;

use leftoff_consumer::runner::own_words;
use leftoff_wire::{Offset, Uuid};

const PREFIX: &str = "out=topic:";

/// A topic that holds the records of a group, for one partition that the group reads. Its text is the metadata of the group's
/// offset, behind what may be said of attempts: `out=topic:alerts/AAAAAAAAAAAAAAAAAAAAAQ from=17`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlet {
    /// The topic's name.
    pub topic: String,
    /// Its id: a topic made anew under the name does not hold the records.
    pub topic_id: Uuid,
    /// From this offset on the events' records are there; those below were handled before, with another place.
    pub from: Offset,
}

impl fmt::Display for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}/{} from={}", self.topic, self.topic_id, self.from)
    }
}

/// A text that is no [`Outlet`]: whatever a client keeps with its offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it names no topic that records go to")]
pub struct NoOutlet;

impl FromStr for Outlet {
    type Err = NoOutlet;

    fn from_str(text: &str) -> Result<Outlet, NoOutlet> {
        let (place, from) =
            own_words(text).1.strip_prefix(PREFIX).and_then(|rest| rest.split_once(' ')).ok_or(NoOutlet)?;
        let (topic, id) = place.split_once('/').ok_or(NoOutlet)?;
        let from = from.strip_prefix("from=").and_then(|from| from.parse().ok()).and_then(Offset::new);
        match (id.parse(), from) {
            (Ok(topic_id), Some(from)) if !topic.is_empty() => {
                Ok(Outlet { topic: topic.to_owned(), topic_id, from })
            }
            _ => Err(NoOutlet),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_text_reads_back_and_other_texts_are_none() {
        let outlet =
            Outlet { topic: "a.b-c".to_owned(), topic_id: Uuid::OFFSETS, from: Offset::new(17).unwrap() };
        let text = outlet.to_string();
        assert_eq!(text, "out=topic:a.b-c/AAAAAAAAAAAAAAAAAAAAAg from=17");
        assert_eq!(format!("tried=7:1:why {text}").parse(), Ok(outlet.clone()));
        assert_eq!(text.parse(), Ok(outlet));
        for other in [
            "",
            "out=file:/a",
            "out=topic:a",
            "out=topic:a/AAAAAAAAAAAAAAAAAAAAAg",
            "out=topic:/AAAAAAAAAAAAAAAAAAAAAg from=1",
            "out=topic:a/b from=1",
            "out=topic:a/AAAAAAAAAAAAAAAAAAAAAg from=-1",
        ] {
            assert_eq!(other.parse::<Outlet>(), Err(NoOutlet), "{other}");
        }
    }
}
