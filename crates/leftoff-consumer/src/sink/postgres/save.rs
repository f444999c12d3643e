//! The end of a transaction: offsets move, what is not inserted yet is, and all of it is committed.

use std::collections::{BTreeMap, BTreeSet};

use leftoff_wire::Offset;
use tokio_postgres::types::Type;

use super::decide::{Stand, Verdict, decide};
use super::rows::unnamed;
use super::schema::{note_table, quoted_table};
use super::session::{Fault, Session};
use super::take_back::take_back;
use super::{Open, Trouble};
use crate::sink::{Letter, Move, Outcome, OutcomeRange, Output, Written, outcome_ranges, skipped_ranges};
use crate::source::PartitionId;

/// So many rows go in one statement.
const CHUNK_ROWS: usize = 2_000;
/// So many bytes of records go in one statement, unless one alone has more.
const CHUNK_BYTES: usize = 4 << 20;

impl Open {
    /// Saves what is held. `is_unsure` is kept between attempts: a `COMMIT` was sent and nobody knows what became of it.
    pub(super) fn save(
        &mut self,
        table: &str,
        group: &str,
        outputs: &[Output],
        moves: &[Move],
        is_unsure: &mut bool,
    ) -> Result<Written, Trouble> {
        if *is_unsure {
            let session = self.session()?;
            session.roll_back()?;
            session.begin()?;
            let stands = lock(session, group, moves)?;
            let verdict = decide(moves, &stands, &self.epochs);
            self.session()?.roll_back()?;
            match verdict {
                Verdict::Committed => return Ok(Written::Written),
                Verdict::Anothers(id) => return Ok(Written::Fenced { id }),
                Verdict::NotCommitted => *is_unsure = false,
            }
        }
        self.transact(group)?;
        let session = self.session.as_ref().expect("a transaction has a session");
        for m in moves {
            if let Some((first, _)) = m.gives_back() {
                take_back(session, group, m.id, first)?;
            }
        }
        if let Some(id) = move_offsets(session, group, moves, &self.epochs)? {
            self.session()?.roll_back()?;
            return Ok(Written::Fenced { id });
        }
        insert_events(session, table, group, outputs)?;
        insert_ids(session, group, outputs)?;
        keep_letters(session, group, outputs)?;
        let tables: BTreeSet<&String> = self.held.iter().flat_map(|held| &held.seen).collect();
        tables.into_iter().try_for_each(|table| note_table(session, group, table, "rows"))?;
        enter_outcomes(session, group, &self.outcomes(outputs), &skipped_ranges(moves))?;
        *is_unsure = true;
        self.session()?.commit()?;
        *is_unsure = false;
        Ok(Written::Written)
    }

    /// An event whose rows the audit cannot find was handled without output, as far as it can tell.
    fn outcomes(&self, outputs: &[Output]) -> Vec<OutcomeRange> {
        let is_seen =
            |output: &Output, held: &super::Held| !held.seen.is_empty() || unnamed(output).next().is_some();
        let without = outputs.iter().zip(&self.held).filter(|(output, held)| !is_seen(output, held));
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

/// The rows of the partitions that are moved, which nobody else changes before this transaction ends. One that a lost
/// connection's transaction still holds is waited for.
fn lock(session: &Session, group: &str, moves: &[Move]) -> Result<BTreeMap<PartitionId, Stand>, Fault> {
    let sql = "SELECT next, epoch FROM leftoff_offsets WHERE \"group\" = $1 AND topic_id = $2 AND partition = $3 FOR UPDATE";
    let mut stands = BTreeMap::new();
    let ids: BTreeSet<PartitionId> = moves.iter().map(|m| m.id).collect();
    for id in ids {
        let topic_id = id.topic_id.to_string();
        let rows = session
            .query(sql, &[(&group, Type::TEXT), (&topic_id, Type::TEXT), (&id.partition, Type::INT4)])?;
        stands.extend(rows.first().map(|row| (id, Stand { next: row.get(0), epoch: row.get(1) })));
    }
    Ok(stands)
}

/// Moves offsets; the partition that is another's by now, if there is one.
fn move_offsets(
    session: &Session,
    group: &str,
    moves: &[Move],
    epochs: &BTreeMap<PartitionId, i64>,
) -> Result<Option<PartitionId>, Fault> {
    let sql = "UPDATE leftoff_offsets AS o
        SET next = m.next, last_offset = m.last_offset, last_fingerprint = m.last_fingerprint, reset = m.reset
        FROM unnest($2::text[], $3::int4[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::int8[], $9::int8[])
          AS m (topic_id, partition, next, expected, epoch, last_offset, last_fingerprint, reset)
        WHERE o.\"group\" = $1 AND o.topic_id = m.topic_id AND o.partition = m.partition
          AND o.next IS NOT DISTINCT FROM m.expected AND o.epoch = m.epoch
        RETURNING o.topic_id, o.partition";
    let topics: Vec<String> = moves.iter().map(|m| m.id.topic_id.to_string()).collect();
    let partitions: Vec<i32> = moves.iter().map(|m| m.id.partition).collect();
    let next: Vec<i64> = moves.iter().map(|m| m.next.next().get()).collect();
    let expected: Vec<Option<i64>> = moves.iter().map(|m| m.expected.map(|at| at.next().get())).collect();
    let epochs: Vec<Option<i64>> = moves.iter().map(|m| epochs.get(&m.id).copied()).collect();
    let last = |m: &Move| m.mark.last.map(|last| (last.offset.get(), i64::from(last.fingerprint)));
    let (lasts, prints): (Vec<Option<i64>>, Vec<Option<i64>>) = moves.iter().map(|m| last(m).unzip()).unzip();
    let resets: Vec<Option<i64>> = moves.iter().map(|m| m.mark.reset.map(Offset::get)).collect();
    let rows = session.query(
        sql,
        &[
            (&group, Type::TEXT),
            (&topics, Type::TEXT_ARRAY),
            (&partitions, Type::INT4_ARRAY),
            (&next, Type::INT8_ARRAY),
            (&expected, Type::INT8_ARRAY),
            (&epochs, Type::INT8_ARRAY),
            (&lasts, Type::INT8_ARRAY),
            (&prints, Type::INT8_ARRAY),
            (&resets, Type::INT8_ARRAY),
        ],
    )?;
    let moved: BTreeSet<(String, i32)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let is_moved = |m: &&Move| moved.contains(&(m.id.topic_id.to_string(), m.id.partition));
    Ok(moves.iter().find(|m| !is_moved(m)).map(|m| m.id))
}

/// Columns of rows that go in one statement.
#[derive(Default)]
struct Chunk<'a> {
    topics: Vec<String>,
    partitions: Vec<i32>,
    offsets: Vec<i64>,
    numbers: Vec<i32>,
    texts: Vec<&'a str>,
    ids: Vec<&'a [u8]>,
    bytes: usize,
}

impl Chunk<'_> {
    fn add(&mut self, output: &Output, bytes: usize) {
        self.topics.push(output.id.topic_id.to_string());
        self.partitions.push(output.id.partition);
        self.offsets.push(output.offset.get());
        self.bytes += bytes;
    }

    fn is_full(&self) -> bool {
        self.topics.len() >= CHUNK_ROWS || self.bytes >= CHUNK_BYTES
    }
}

fn insert_events(session: &Session, table: &str, group: &str, outputs: &[Output]) -> Result<(), Fault> {
    let sql = format!(
        "INSERT INTO {} (\"group\", topic_id, partition, \"offset\", n, record)
         SELECT $1, e.topic_id, e.partition, e.at, e.n, e.record::pg_catalog.json
         FROM unnest($2::text[], $3::int4[], $4::int8[], $5::int4[], $6::text[]) AS e (topic_id, partition, at, n, record)",
        quoted_table(table)
    );
    let send = |chunk: &Chunk<'_>| {
        let parameters: &[super::session::Parameter<'_>] = &[
            (&group, Type::TEXT),
            (&chunk.topics, Type::TEXT_ARRAY),
            (&chunk.partitions, Type::INT4_ARRAY),
            (&chunk.offsets, Type::INT8_ARRAY),
            (&chunk.numbers, Type::INT4_ARRAY),
            (&chunk.texts, Type::TEXT_ARRAY),
        ];
        if chunk.topics.is_empty() { Ok(0) } else { session.execute(&sql, parameters) }
    };
    let mut chunk = Chunk::default();
    for output in outputs {
        for (number, json) in unnamed(output) {
            chunk.add(output, json.len());
            chunk.numbers.push(i32::try_from(number).unwrap_or(i32::MAX));
            chunk.texts.push(json);
            if chunk.is_full() {
                send(&chunk)?;
                chunk = Chunk::default();
            }
        }
    }
    send(&chunk).map(|_| ())
}

/// In the same transaction as the rows: an id is never known before its outcome is there.
fn insert_ids(session: &Session, group: &str, outputs: &[Output]) -> Result<(), Fault> {
    let sql = "INSERT INTO leftoff_ids (\"group\", topic_id, id, partition, \"offset\")
        SELECT $1, e.topic_id, e.id, e.partition, e.at
        FROM unnest($2::text[], $3::bytea[], $4::int4[], $5::int8[]) AS e (topic_id, id, partition, at)
        ON CONFLICT DO NOTHING";
    let with: Vec<&Output> = outputs.iter().filter(|output| output.event_id.is_some()).collect();
    for some in with.chunks(CHUNK_ROWS) {
        let mut chunk = Chunk::default();
        for output in some {
            chunk.add(output, 0);
            chunk.ids.extend(output.event_id.as_deref());
        }
        session.execute(
            sql,
            &[
                (&group, Type::TEXT),
                (&chunk.topics, Type::TEXT_ARRAY),
                (&chunk.ids, Type::BYTEA_ARRAY),
                (&chunk.partitions, Type::INT4_ARRAY),
                (&chunk.offsets, Type::INT8_ARRAY),
            ],
        )?;
    }
    Ok(())
}

/// Dead letters. An event that is given up again after a reset is the same letter, open again.
fn keep_letters(session: &Session, group: &str, outputs: &[Output]) -> Result<(), Fault> {
    let sql = "INSERT INTO leftoff_dead (\"group\", topic_id, partition, \"offset\", letter, attempts, why, at_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (\"group\", topic_id, partition, \"offset\") DO UPDATE SET letter = excluded.letter,
        attempts = excluded.attempts, why = excluded.why, at_ms = excluded.at_ms, state = 'open', state_at_ms = NULL";
    for output in outputs {
        let Outcome::Dead(letter) = &output.outcome else { continue };
        let (topic_id, offset) = (output.id.topic_id.to_string(), output.offset.get());
        let attempts = i64::from(letter.gave_up.attempts);
        // A text of the database has no zero byte; JSON escapes it.
        let why = letter.gave_up.why.replace('\0', "\u{fffd}");
        let line = Letter::of(letter).to_line();
        session.execute(
            sql,
            &[
                (&group, Type::TEXT),
                (&topic_id, Type::TEXT),
                (&output.id.partition, Type::INT4),
                (&offset, Type::INT8),
                (&line, Type::TEXT),
                (&attempts, Type::INT8),
                (&why, Type::TEXT),
                (&letter.at_ms, Type::INT8),
            ],
        )?;
    }
    Ok(())
}

/// A range that continues the newest one of its kind makes that longer.
fn enter_outcomes(
    session: &Session,
    group: &str,
    outcomes: &[OutcomeRange],
    skipped: &[OutcomeRange],
) -> Result<(), Fault> {
    let longer = "UPDATE leftoff_outcomes SET last = $5 WHERE \"group\" = $1 AND topic_id = $2 AND partition = $3
        AND first = (SELECT max(first) FROM leftoff_outcomes WHERE \"group\" = $1 AND topic_id = $2 AND partition = $3)
        AND last = $4 - 1 AND kind = $6 AND attempts IS NULL AND $7::int8 IS NULL";
    let enter =
        "INSERT INTO leftoff_outcomes (\"group\", topic_id, partition, first, last, kind, attempts, why)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    for range in outcomes.iter().chain(skipped) {
        let topic_id = range.id.topic_id.to_string();
        let (first, last, kind) = (range.from.get(), range.to.get(), range.what);
        let attempts = range.gave_up.as_ref().map(|how| i64::from(how.attempts));
        // A text of the database has no zero byte.
        let why = range.gave_up.as_ref().map(|how| how.why.replace('\0', "\u{fffd}"));
        let all: [super::session::Parameter<'_>; 8] = [
            (&group, Type::TEXT),
            (&topic_id, Type::TEXT),
            (&range.id.partition, Type::INT4),
            (&first, Type::INT8),
            (&last, Type::INT8),
            (&kind, Type::TEXT),
            (&attempts, Type::INT8),
            (&why, Type::TEXT),
        ];
        if session.execute(longer, &all[..7])? == 0 {
            session.execute(enter, &all)?;
        }
    }
    Ok(())
}
