//! Whether events were first handled in the order of their offsets, per partition.

use std::collections::HashMap;

use super::records::{At, FirstEffect};
use super::tally::Tally;
use super::{AuditError, Limits};
use crate::sort::Sorter;

/// Events whose first effect came after the first effect of a later event of their partition. Effects by place and by id
/// are two sequences: an event that has both is judged in each.
pub(super) fn out_of_order(
    first_effects: Sorter<'_, FirstEffect>,
    limits: &Limits,
) -> Result<Tally, AuditError> {
    let first_effects = first_effects.finish()?;
    let mut cursor = first_effects.cursor()?;
    let mut highest: HashMap<(u32, u8), i64> = HashMap::new();
    let mut late = limits.sorter::<At>();
    while let Some(FirstEffect { at, way, .. }) = cursor.next()? {
        let highest = highest.entry((at.partition, way)).or_insert(at.offset);
        if at.offset < *highest {
            late.push(at)?;
        }
        *highest = at.offset.max(*highest);
    }
    let late = late.finish()?;
    let mut cursor = late.cursor()?;
    let mut tally = Tally::default();
    let mut last = None;
    while let Some(at) = cursor.next()? {
        if last != Some(at) {
            tally.add(at);
        }
        last = Some(at);
    }
    Ok(tally)
}
