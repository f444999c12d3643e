//! Rows, evidence and offset in one SQLite database, moved in one transaction: exactly once in the file.
//!
//! Rows are inserted when an event was handled ([`Sink::check`]), each event within a savepoint, so that a row which the
//! database refuses is that event's failure and no other's. The transaction ends with the next [`Sink::write`], which moves
//! the offset only if this runner's claim still holds. Tables and rules are in `docs/on-disk.md`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use leftoff_wire::{Committed, Offset};
use rusqlite::{Connection, OptionalExtension, params};

use super::mark::StoredMark;
use super::{
    BadRecord, ClaimPartition, Claimed, DeadLetter, GaveUp, Letter, MatrixRow, Move, Outcome, OutcomeRange,
    Output, Promise, Sink, SinkError, Written, assert_moves_cover, outcome_ranges, skipped_ranges,
};
use crate::crash_point;
use crate::source::PartitionId;

mod read;
mod rows;
mod schema;
mod take_back;
#[cfg(test)]
mod tests;

pub use read::{SqliteEffect, SqliteReader, mark_letter};
pub use schema::{DEFAULT_TABLE, MAX_NAME_BYTES};

/// What may be promised of a database.
pub const ROW: MatrixRow = MatrixRow {
    sink: "SQLite",
    how: "rows, evidence and offset in one transaction; the offset moves only where this runner's claim still holds",
    authority: "the table leftoff_offsets in the same file",
    promise: Promise::ExactlyOnce,
    meaning: "each event's rows are in the database once",
    left_over: "copying the file while it is in use; network disks; triggers that reach outside. With --save every=… other writers wait between saves",
};

/// A database that keeps its own offset, beside whatever else it holds.
#[derive(Debug)]
pub struct SqliteSink {
    path: PathBuf,
    table: String,
    group: String,
    keeps_ids: bool,
    claimed: Option<Open>,
}

/// The database, and what of ours is in the transaction.
#[derive(Debug)]
struct Open {
    connection: Connection,
    epochs: std::collections::BTreeMap<PartitionId, i64>,
    pending: RefCell<Pending>,
    /// A write failed: nobody knows what the database holds before it is claimed anew.
    broken: bool,
}

/// What is inserted, and not committed yet.
#[derive(Debug, Default)]
struct Pending {
    /// Events in the order in which they came, and whether the audit finds a row of theirs.
    events: Vec<(PartitionId, Offset, bool)>,
    /// Tables that are noted as holding rows of the group.
    noted: BTreeSet<String>,
    /// What is not an event's fault: told by the next write.
    failed: Option<SinkError>,
}

impl SqliteSink {
    /// Touches nothing yet; the database is opened, and made if it never existed, by the first claim. `table` is that of
    /// records which name none, [`DEFAULT_TABLE`] without one.
    pub fn new(path: impl Into<PathBuf>, table: Option<String>, group: impl Into<String>) -> SqliteSink {
        let table = table.unwrap_or_else(|| DEFAULT_TABLE.to_owned());
        SqliteSink { path: path.into(), table, group: group.into(), keeps_ids: false, claimed: None }
    }

    /// The ids of events are to be asked for: a claim tells from where on they are known.
    pub fn keeping_ids(self) -> SqliteSink {
        SqliteSink { keeps_ids: true, ..self }
    }

    /// Copies of events that were taken without their ids are not recognised.
    fn unknown_ids(&self, claim: &ClaimPartition, next: Committed) -> Result<Option<String>, SinkError> {
        let open = self.claimed.as_ref().expect("it is asked during a claim");
        let sql = "SELECT EXISTS (SELECT 1 FROM leftoff_ids WHERE \"group\" = ?1 AND topic_id = ?2)";
        let is_known =
            open.connection
                .query_row(sql, params![self.group, claim.id.topic_id.to_string()], |row| row.get(0));
        let is_known: bool = is_known.map_err(failed("cannot read", &self.path))?;
        let told = || {
            format!(
                "{}/{}: the events before offset {next} were taken without their ids: copies of them are not absorbed",
                claim.topic, claim.id.partition
            )
        };
        Ok((!is_known && next.next() > Offset::ZERO).then(told))
    }

    fn opened(&mut self) -> Result<&mut Open, SinkError> {
        if self.claimed.is_none() {
            let connection = schema::open(&self.path, &self.table, &self.group)?;
            let (epochs, pending) = Default::default();
            self.claimed = Some(Open { connection, epochs, pending, broken: false });
        }
        Ok(self.claimed.as_mut().expect("it was opened just now"))
    }
}

impl StoredMark {
    /// From three columns of a row, the first of which has this number.
    fn of(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<StoredMark> {
        Ok(StoredMark {
            last_offset: row.get(first)?,
            last_fingerprint: row.get(first + 1)?,
            reset: row.get(first + 2)?,
        })
    }
}

impl Open {
    /// Raises the epoch of a partition; where it goes on, and its mark.
    fn claim(&mut self, group: &str, id: PartitionId) -> rusqlite::Result<(Option<i64>, StoredMark)> {
        let (topic_id, partition) = (id.topic_id.to_string(), id.partition);
        let transaction =
            self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let (epoch, next, mark) = transaction.query_row(
            "INSERT INTO leftoff_offsets (\"group\", topic_id, partition, next, epoch) VALUES (?1, ?2, ?3, NULL, 1)
             ON CONFLICT DO UPDATE SET epoch = epoch + 1
             RETURNING epoch, next, last_offset, last_fingerprint, reset",
            params![group, topic_id, partition],
            |row| Ok((row.get(0)?, row.get(1)?, StoredMark::of(row, 2)?)),
        )?;
        transaction.commit()?;
        self.epochs.insert(id, epoch);
        Ok((next, mark))
    }

    /// Inserts an event's rows into the transaction, which is begun if there is none.
    fn insert(&self, table: &str, group: &str, output: &Output) -> Result<(), rows::Refused> {
        let mut pending = self.pending.borrow_mut();
        if self.connection.is_autocommit() {
            *pending = Pending::default();
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
        }
        self.connection.prepare_cached("SAVEPOINT leftoff_event")?.execute([])?;
        let inserted = rows::insert(&self.connection, table, group, output, &mut pending.noted);
        let end = if inserted.is_ok() { "RELEASE leftoff_event" } else { "ROLLBACK TO leftoff_event" };
        // A full disk, or the like, has rolled everything back.
        if !self.connection.is_autocommit() {
            self.connection.prepare_cached(end)?.execute([])?;
        }
        let is_seen = inserted?;
        if let Outcome::Dead(letter) = &output.outcome {
            keep_letter(&self.connection, group, output, letter)?;
        }
        if let Some(event_id) = &output.event_id {
            note_id(&self.connection, group, output, event_id)?;
        }
        pending.events.push((output.id, output.offset, is_seen));
        Ok(())
    }

    /// Makes the transaction hold the rows of `outputs`, in their order, and nothing else.
    fn hold(&self, table: &str, group: &str, outputs: &[Output]) -> Result<(), rows::Refused> {
        let is_same = {
            let events = &self.pending.borrow().events;
            let held = !self.connection.is_autocommit() && events.len() == outputs.len();
            held && events.iter().zip(outputs).all(|(at, output)| (at.0, at.1) == (output.id, output.offset))
        };
        if is_same {
            return Ok(());
        }
        self.roll_back();
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        *self.pending.borrow_mut() = Pending::default();
        outputs.iter().try_for_each(|output| self.insert(table, group, output))
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // If it fails the connection is of no more use, which the next statement tells.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        self.pending.borrow_mut().events.clear();
    }

    /// Moves offsets and enters evidence; the partition that is another's by now, if there is one.
    fn finish(
        &self,
        group: &str,
        outputs: &[Output],
        moves: &[Move],
    ) -> rusqlite::Result<Option<PartitionId>> {
        let mut update = self.connection.prepare_cached(
            "UPDATE leftoff_offsets SET next = ?1, last_offset = ?7, last_fingerprint = ?8, reset = ?9
             WHERE \"group\" = ?2 AND topic_id = ?3 AND partition = ?4 AND next IS ?5 AND epoch = ?6",
        )?;
        for m in moves {
            let (topic_id, partition) = (m.id.topic_id.to_string(), m.id.partition);
            let expected = m.expected.map(|expected| expected.next().get());
            let epoch = self.epochs.get(&m.id);
            let next = m.next.next().get();
            let (last, reset) = (m.mark.last, m.mark.reset.map(Offset::get));
            let (last, fingerprint) = (last.map(|last| last.offset.get()), last.map(|last| last.fingerprint));
            let row = params![next, group, topic_id, partition, expected, epoch, last, fingerprint, reset];
            if update.execute(row)? != 1 {
                return Ok(Some(m.id));
            }
        }
        for range in self.outcomes(outputs).iter().chain(&skipped_ranges(moves)) {
            enter_outcome(&self.connection, group, range)?;
        }
        Ok(None)
    }

    /// An event whose rows the audit cannot find was handled without output, as far as it can tell.
    fn outcomes(&self, outputs: &[Output]) -> Vec<OutcomeRange> {
        let pending = self.pending.borrow();
        let without = outputs.iter().zip(&pending.events).filter(|(_, (_, _, is_seen))| !is_seen);
        let without: Vec<Output> = without
            .map(|(output, _)| match &output.outcome {
                Outcome::Handled { .. } => {
                    Output { outcome: Outcome::Handled { records: Vec::new() }, event_id: None, ..*output }
                }
                _ => output.clone(),
            })
            .collect();
        outcome_ranges(&without)
    }
}

/// In the same transaction as the offset. An event that is given up again after a reset is the same letter, open again.
fn keep_letter(
    connection: &Connection,
    group: &str,
    output: &Output,
    letter: &DeadLetter,
) -> rusqlite::Result<()> {
    let (topic_id, partition) = (output.id.topic_id.to_string(), output.id.partition);
    let GaveUp { attempts, why } = &letter.gave_up;
    let line = Letter::of(letter).to_line();
    let mut keep = connection.prepare_cached(
        "INSERT OR REPLACE INTO leftoff_dead
         (\"group\", topic_id, partition, \"offset\", letter, attempts, why, at_ms, state)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'open')",
    )?;
    keep.execute(params![
        group,
        topic_id,
        partition,
        output.offset.get(),
        line,
        attempts,
        why,
        letter.at_ms
    ])?;
    Ok(())
}

/// Behind the rows, in the same transaction: an id is never known before its outcome is there.
fn note_id(connection: &Connection, group: &str, output: &Output, event_id: &[u8]) -> rusqlite::Result<()> {
    let (topic_id, partition) = (output.id.topic_id.to_string(), output.id.partition);
    let mut note = connection.prepare_cached(
        "INSERT INTO leftoff_ids (\"group\", topic_id, id, partition, \"offset\") VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO NOTHING",
    )?;
    note.execute(params![group, topic_id, event_id, partition, output.offset.get()])?;
    Ok(())
}

/// A range that continues the newest one of its kind makes that longer.
fn enter_outcome(connection: &Connection, group: &str, range: &OutcomeRange) -> rusqlite::Result<()> {
    let (topic_id, partition) = (range.id.topic_id.to_string(), range.id.partition);
    let (first, last, kind) = (range.from.get(), range.to.get(), range.what);
    let (attempts, why) = range.gave_up.as_ref().map(|how| (how.attempts, how.why.as_str())).unzip();
    let mut longer = connection.prepare_cached(
        "UPDATE leftoff_outcomes SET last = ?5 WHERE \"group\" = ?1 AND topic_id = ?2 AND partition = ?3
         AND first = (SELECT max(first) FROM leftoff_outcomes
                      WHERE \"group\" = ?1 AND topic_id = ?2 AND partition = ?3)
         AND last = ?4 - 1 AND kind = ?6 AND attempts IS NULL AND ?7 IS NULL",
    )?;
    if longer.execute(params![group, topic_id, partition, first, last, kind, attempts])? == 0 {
        let mut enter = connection.prepare_cached(
            "INSERT INTO leftoff_outcomes (\"group\", topic_id, partition, first, last, kind, attempts, why)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        enter.execute(params![group, topic_id, partition, first, last, kind, attempts, why])?;
    }
    Ok(())
}

impl Sink for SqliteSink {
    fn claim(&mut self, partitions: &[ClaimPartition]) -> Result<Claimed, SinkError> {
        let (path, group) = (self.path.clone(), self.group.clone());
        let open = self.opened()?;
        let mut claimed = Claimed { authority: true, ..Claimed::default() };
        for claim in partitions {
            let (next, mark) = open.claim(&group, claim.id).map_err(failed("cannot claim", &path))?;
            let bad = |what: i64| {
                SinkError::Refused(format!(
                    "{}: leftoff_offsets has {what} for {}, which is no offset",
                    path.display(),
                    claim.id
                ))
            };
            let next = next.map(|next| Committed::from_wire(next).ok_or_else(|| bad(next)));
            claimed.next.insert(claim.id, next.transpose()?);
            claimed.marks.insert(claim.id, mark.checked().map_err(bad)?);
        }
        if self.keeps_ids {
            for claim in partitions {
                let next = claimed.next[&claim.id];
                let told = next.map(|next| self.unknown_ids(claim, next)).transpose()?;
                claimed.notices.extend(told.flatten());
            }
        }
        Ok(claimed)
    }

    fn keeps_dead_letters(&self) -> bool {
        true
    }

    fn check(&self, output: &Output) -> Result<(), BadRecord> {
        let open = self.claimed.as_ref().expect("a check follows a claim");
        if open.pending.borrow().failed.is_some() {
            return Ok(());
        }
        match open.insert(&self.table, &self.group, output) {
            Ok(()) => Ok(()),
            Err(rows::Refused::Record(bad)) => Err(bad),
            Err(rows::Refused::Database(error)) => {
                let error = failed("cannot write", &self.path)(error);
                open.pending.borrow_mut().failed = Some(error);
                Ok(())
            }
        }
    }

    fn has_taken(&self, id: PartitionId, offset: Offset, event_id: &[u8]) -> Result<bool, SinkError> {
        let open = self.claimed.as_ref().expect("a claim comes first");
        let taken = || {
            let mut taken = open.connection.prepare_cached(
                "SELECT partition, \"offset\" FROM leftoff_ids WHERE \"group\" = ?1 AND topic_id = ?2 AND id = ?3",
            )?;
            let place = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i32>(0)?, row.get::<_, i64>(1)?));
            taken.query_row(params![self.group, id.topic_id.to_string(), event_id], place).optional()
        };
        let taken: Option<(i32, i64)> = taken().map_err(failed("cannot read", &self.path))?;
        Ok(taken.is_some_and(|place| place != (id.partition, offset.get())))
    }

    fn write(&mut self, outputs: &[Output], moves: &[Move]) -> Result<Written, SinkError> {
        assert_moves_cover(outputs, moves);
        let path = self.path.clone();
        let open = self.claimed.as_mut().expect("a write follows a claim");
        if open.broken {
            let what = format!("{} is not written any more, since a write failed", path.display());
            return Err(SinkError::Storage { what, error: io::ErrorKind::Other.into() });
        }
        open.broken = true;
        if let Some(error) = open.pending.borrow_mut().failed.take() {
            return Err(error);
        }
        match open.hold(&self.table, &self.group, outputs) {
            Ok(()) => {}
            Err(rows::Refused::Record(bad)) => {
                open.roll_back();
                return Err(SinkError::Refused(format!("{}: {bad}", path.display())));
            }
            Err(rows::Refused::Database(error)) => return Err(failed("cannot write", &path)(error)),
        }
        for m in moves {
            if let Some((first, _)) = m.gives_back() {
                take_back::take_back(&open.connection, &path, &self.group, m.id, first)?;
            }
        }
        let written = open.finish(&self.group, outputs, moves).and_then(|fenced| match fenced {
            Some(id) => {
                open.roll_back();
                Ok(Written::Fenced { id })
            }
            None => {
                crash_point::pass("commit-before");
                open.connection.execute_batch("COMMIT").map(|()| Written::Written)
            }
        });
        let written = written.map_err(failed("cannot write", &path))?;
        crash_point::pass("commit-after");
        open.pending.borrow_mut().events.clear();
        open.broken = false;
        Ok(written)
    }

    fn row(&self) -> MatrixRow {
        ROW
    }

    fn place(&self) -> String {
        if self.table == DEFAULT_TABLE {
            format!("sqlite:{}", self.path.display())
        } else {
            format!("sqlite:{}?table={}", self.path.display(), self.table)
        }
    }

    fn close(&mut self) -> Result<(), SinkError> {
        if let Some(open) = self.claimed.take() {
            open.roll_back();
            open.connection.close().map_err(|(_, error)| failed("cannot close", &self.path)(error))?;
        }
        Ok(())
    }
}

/// An error that names the file.
fn failed<'a>(what: &'a str, path: &'a Path) -> impl Fn(rusqlite::Error) -> SinkError + 'a {
    move |error| {
        let path = path.display();
        let what = match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                format!("{what} {path}: another program keeps it locked")
            }
            _ => format!("{what} {path}"),
        };
        SinkError::Storage { what, error: io::Error::other(error) }
    }
}
