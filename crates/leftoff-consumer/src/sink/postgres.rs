//! Rows, evidence and offset in one PostgreSQL database, moved in one transaction: exactly once in the database.
//!
//! Rows of tables that records name are inserted when an event was handled ([`Sink::check`]), each event within a savepoint,
//! so that a row which the database refuses is that event's failure and no other's. What goes to the table of events follows
//! with the [`Sink::write`] that ends the transaction, many rows in a statement. The offset moves only if this runner's claim
//! still holds. A connection that is lost is made anew, within a limit, and the transaction with it; whether a `COMMIT` that
//! nobody answered took place is read from the offset's row (`decide.rs`). Tables and rules are in `docs/on-disk.md`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use leftoff_wire::{Committed, Offset, Uuid};
use tokio_postgres::types::Type;

use super::mark::StoredMark;
use super::{
    BadRecord, ClaimPartition, Claimed, MatrixRow, Move, Output, PostgresUrl, Promise, Sink, SinkError,
    Written, assert_moves_cover,
};
use crate::source::PartitionId;

mod address;
mod decide;
mod read;
mod rows;
mod save;
mod schema;
mod session;
mod take_back;
mod tls;
mod values;

pub use read::{PostgresEffect, PostgresReader, mark_letter};
pub use schema::{DEFAULT_TABLE, MAX_NAME_BYTES};

use rows::Refused;
use session::{Fault, Session};

/// What may be promised of a database.
pub const ROW: MatrixRow = MatrixRow {
    sink: "PostgreSQL",
    how: "rows, evidence and offset in one transaction; the offset moves only where this runner's claim still holds",
    authority: "the table leftoff_offsets in the same database",
    promise: Promise::ExactlyOnce,
    meaning: "each event's rows are in the database once",
    left_over: "gaps in sequences; triggers that reach outside; a server with fsync=off. With --save every=… the rows of a save stay locked until it ends",
};

/// The first wait between two attempts to connect; it doubles up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// How often a transaction is tried again that the database rolled back for another's sake.
const MAX_DEADLOCKS: u32 = 20;

/// A database that keeps its own offset, beside whatever else it holds.
pub struct PostgresSink {
    url: PostgresUrl,
    table: String,
    group: String,
    keeps_ids: bool,
    tell: Box<dyn Fn(&str) + Send>,
    claimed: RefCell<Option<Open>>,
}

/// The database, and what of ours is to be saved.
#[derive(Default)]
struct Open {
    /// None while it is lost.
    session: Option<Session>,
    known: rows::Known,
    epochs: BTreeMap<PartitionId, i64>,
    /// The events since the last save, in their order.
    held: Vec<Held>,
    /// So many of them have their rows in the open transaction.
    inserted: usize,
    /// The ids of those, and where they are.
    ids: BTreeMap<(Uuid, Vec<u8>), (i32, i64)>,
    /// What is not an event's fault: told by the next write.
    failed: Option<SinkError>,
    /// A write failed: nobody knows what the database holds before it is claimed anew.
    broken: bool,
}

/// An event that was checked.
struct Held {
    id: PartitionId,
    offset: Offset,
    /// If its records name tables: to insert its rows again, should the transaction be lost.
    named: Option<Output>,
    /// The tables with rows of it that tell whose they are.
    seen: Vec<String>,
}

/// Why something could not be done with the database.
enum Trouble {
    Fault(Fault),
    /// A row that was accepted before is refused now that it is inserted again.
    Changed(String),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Trouble {
        Trouble::Fault(fault)
    }
}

impl PostgresSink {
    /// Touches nothing yet; the first claim connects, and makes our tables where they are missing.
    pub fn new(url: PostgresUrl, group: impl Into<String>) -> PostgresSink {
        let table = url.table().unwrap_or(DEFAULT_TABLE).to_owned();
        let claimed = RefCell::new(None);
        PostgresSink { url, table, group: group.into(), keeps_ids: false, tell: Box::new(|_| {}), claimed }
    }

    /// The ids of events are to be asked for: a claim tells from where on they are known.
    pub fn keeping_ids(self) -> PostgresSink {
        PostgresSink { keeps_ids: true, ..self }
    }

    /// What is told of a connection that was lost goes there.
    pub fn telling(self, tell: impl Fn(&str) + Send + 'static) -> PostgresSink {
        PostgresSink { tell: Box::new(tell), ..self }
    }

    /// Does `work`, again where the connection is lost, within the limit, or the database rolled back for another's sake.
    fn persist<T>(
        &self,
        open: &mut Open,
        mut work: impl FnMut(&mut Open) -> Result<T, Trouble>,
    ) -> Result<T, SinkError> {
        let (mut outage, mut deadlocks) = (None, 0);
        loop {
            let why = match work(open) {
                Ok(done) => return Ok(done),
                Err(Trouble::Changed(why)) => {
                    return Err(SinkError::Refused(format!(
                        "{}: {why}: nothing of this save was written",
                        self.url
                    )));
                }
                Err(Trouble::Fault(Fault::Lost(why))) => why,
                Err(Trouble::Fault(Fault::Again(_))) if deadlocks < MAX_DEADLOCKS => {
                    deadlocks += 1;
                    let rolled_back = open.session.as_mut().map_or(Ok(()), Session::roll_back);
                    if rolled_back.is_ok() {
                        continue;
                    }
                    "it was lost in a rollback".to_owned()
                }
                Err(Trouble::Fault(fault)) => {
                    return Err(broke("cannot write", &self.url.to_string(), fault));
                }
            };
            open.session = None;
            let outage = outage.get_or_insert_with(|| Outage::new(self.url.reconnect()));
            self.connect_again(open, outage, why)?;
        }
    }

    fn connect_again(&self, open: &mut Open, outage: &mut Outage, mut why: String) -> Result<(), SinkError> {
        if outage.attempts == 0 {
            (self.tell)(&format!("{}: the connection is lost ({why}); connecting again", self.url));
        }
        while outage.wait() {
            match Session::connect(&self.url) {
                Ok(session) => {
                    open.session = Some(session);
                    (self.tell)(&format!("{}: connected again", self.url));
                    return Ok(());
                }
                Err(Fault::Lost(error)) => why = error,
                Err(fault) => return Err(broke("cannot reach", &self.url.to_string(), fault)),
            }
        }
        let limit_s = outage.limit.as_secs();
        Err(SinkError::Unreachable(format!(
            "{} went away and did not come back within {limit_s} s: {why}",
            self.url
        )))
    }

    /// Copies of events that were taken without their ids are not recognised.
    fn unknown_ids(
        &self,
        open: &mut Open,
        claim: &ClaimPartition,
        next: Committed,
    ) -> Result<Option<String>, SinkError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM leftoff_ids WHERE \"group\" = $1 AND topic_id = $2)";
        let topic_id = claim.id.topic_id.to_string();
        let is_known: bool = self.persist(open, |open| {
            let rows = open.session()?.query(sql, &[(&self.group, Type::TEXT), (&topic_id, Type::TEXT)])?;
            Ok(rows.first().is_some_and(|row| row.get(0)))
        })?;
        let told = || {
            format!(
                "{}/{}: the events before offset {next} were taken without their ids: copies of them are not absorbed",
                claim.topic, claim.id.partition
            )
        };
        Ok((!is_known && next.next() > Offset::ZERO).then(told))
    }
}

/// A time without a database.
struct Outage {
    began: Instant,
    limit: Duration,
    attempts: u32,
}

impl Outage {
    fn new(limit: Duration) -> Outage {
        Outage { began: Instant::now(), limit, attempts: 0 }
    }

    /// Waits before the next attempt, not before the first. False if it was the last.
    fn wait(&mut self) -> bool {
        let pause = FIRST_WAIT.saturating_mul(1 << self.attempts.saturating_sub(1).min(10)).min(LONGEST_WAIT);
        let left = self.limit.saturating_sub(self.began.elapsed());
        if left.is_zero() {
            return false;
        }
        if self.attempts > 0 {
            std::thread::sleep(pause.min(left));
        }
        self.attempts += 1;
        true
    }
}

impl Open {
    fn session(&mut self) -> Result<&mut Session, Fault> {
        self.session.as_mut().ok_or_else(|| Fault::Lost("it was lost before".to_owned()))
    }

    /// Raises the epochs of partitions; where each goes on, and its mark.
    fn claim(
        &mut self,
        group: &str,
        partitions: &[ClaimPartition],
    ) -> Result<BTreeMap<PartitionId, (Option<i64>, StoredMark)>, Fault> {
        let session = self.session()?;
        // What is held is inserted again.
        session.roll_back()?;
        session.begin()?;
        let sql = "INSERT INTO leftoff_offsets AS o (\"group\", topic_id, partition, next, epoch) VALUES ($1, $2, $3, NULL, 1)
            ON CONFLICT (\"group\", topic_id, partition) DO UPDATE SET epoch = o.epoch + 1
            RETURNING epoch, next, last_offset, last_fingerprint, reset";
        let ids: BTreeSet<PartitionId> = partitions.iter().map(|claim| claim.id).collect();
        let (mut epochs, mut all) = (BTreeMap::new(), BTreeMap::new());
        for id in ids {
            let topic_id = id.topic_id.to_string();
            let rows = session
                .query(sql, &[(&group, Type::TEXT), (&topic_id, Type::TEXT), (&id.partition, Type::INT4)])?;
            let row = rows.first().ok_or_else(|| Fault::Strange("a claim gave no row back".to_owned()))?;
            epochs.insert(id, row.get(0));
            let mark =
                StoredMark { last_offset: row.get(2), last_fingerprint: row.get(3), reset: row.get(4) };
            all.insert(id, (row.get(1), mark));
        }
        session.commit()?;
        self.epochs.extend(epochs);
        Ok(all)
    }

    /// Makes the transaction hold the rows of all that is held.
    fn transact(&mut self, group: &str) -> Result<(), Trouble> {
        if !self.session()?.is_open() {
            self.inserted = 0;
            self.session()?.begin()?;
        }
        while let Some(held) = self.held.get(self.inserted) {
            if let Some(output) = &held.named {
                let session = self.session.as_ref().expect("it was there just now");
                match rows::insert(session, &mut self.known, group, output) {
                    Ok(seen) => self.held[self.inserted].seen = seen,
                    Err(Refused::Fault(fault)) => return Err(fault.into()),
                    Err(Refused::Record(bad)) => {
                        let at = format!("the event at {}/{}", held.id, held.offset);
                        return Err(Trouble::Changed(format!(
                            "{at} was accepted before, and is refused now: {bad}"
                        )));
                    }
                }
            }
            self.inserted += 1;
        }
        Ok(())
    }

    fn hold(&mut self, output: &Output, is_named: bool, seen: Vec<String>) {
        if let Some(event_id) = &output.event_id {
            let place = (output.id.partition, output.offset.get());
            self.ids.entry((output.id.topic_id, event_id.clone())).or_insert(place);
        }
        let named = is_named.then(|| output.clone());
        self.held.push(Held { id: output.id, offset: output.offset, named, seen });
    }

    /// Makes what is held be `outputs`, in their order, and nothing else.
    fn hold_these(&mut self, outputs: &[Output]) -> Result<(), Trouble> {
        let held = self.held.iter().map(|held| (held.id, held.offset));
        if held.eq(outputs.iter().map(|output| (output.id, output.offset))) {
            return Ok(());
        }
        if let Some(session) = &mut self.session
            && session.roll_back().is_err()
        {
            self.session = None;
        }
        self.forget();
        for output in outputs {
            let is_named = rows::named(output).map_err(|bad| Trouble::Changed(bad.to_string()))?;
            // Which tables it is seen in is known again when it is inserted.
            self.hold(output, is_named, Vec::new());
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.held.clear();
        self.ids.clear();
        self.inserted = 0;
    }
}

impl Sink for PostgresSink {
    fn claim(&mut self, partitions: &[ClaimPartition]) -> Result<Claimed, SinkError> {
        let mut claimed = Claimed { authority: true, ..Claimed::default() };
        let shown = self.url.to_string();
        let mut open = match self.claimed.take() {
            Some(open) => open,
            None => {
                let mut session =
                    Session::connect(&self.url).map_err(|fault| broke("cannot reach", &shown, fault))?;
                claimed.notices = schema::set_up(&mut session, &shown, &self.table, &self.group)?;
                Open { session: Some(session), ..Open::default() }
            }
        };
        let all = self.persist(&mut open, |open| Ok(open.claim(&self.group, partitions)?))?;
        for claim in partitions {
            let (next, mark) = all[&claim.id];
            let bad = |what: i64| {
                let id = claim.id;
                SinkError::Refused(format!(
                    "{shown}: leftoff_offsets has {what} for {id}, which is no offset"
                ))
            };
            let next = next.map(|next| Committed::from_wire(next).ok_or_else(|| bad(next))).transpose()?;
            claimed.next.insert(claim.id, next);
            claimed.marks.insert(claim.id, mark.checked().map_err(bad)?);
            if let Some(next) = next.filter(|_| self.keeps_ids) {
                let told = self.unknown_ids(&mut open, claim, next)?;
                claimed.notices.extend(told);
            }
        }
        self.claimed = RefCell::new(Some(open));
        Ok(claimed)
    }

    fn keeps_dead_letters(&self) -> bool {
        true
    }

    fn check(&self, output: &Output) -> Result<(), BadRecord> {
        let mut claimed = self.claimed.borrow_mut();
        let open = claimed.as_mut().expect("a check follows a claim");
        if open.failed.is_some() {
            return Ok(());
        }
        if !rows::named(output)? {
            open.hold(output, false, Vec::new());
            return Ok(());
        }
        let inserted = self.persist(open, |open| {
            open.transact(&self.group)?;
            let session = open.session.as_ref().expect("a transaction has a session");
            match rows::insert(session, &mut open.known, &self.group, output) {
                Ok(seen) => Ok(Ok(seen)),
                Err(Refused::Record(bad)) => Ok(Err(bad)),
                Err(Refused::Fault(fault)) => Err(fault.into()),
            }
        });
        match inserted {
            Ok(Ok(seen)) => {
                open.hold(output, true, seen);
                open.inserted += 1;
                Ok(())
            }
            Ok(Err(bad)) => Err(bad),
            Err(error) => {
                open.failed = Some(error);
                Ok(())
            }
        }
    }

    fn has_taken(&self, id: PartitionId, offset: Offset, event_id: &[u8]) -> Result<bool, SinkError> {
        let mut claimed = self.claimed.borrow_mut();
        let open = claimed.as_mut().expect("a claim comes first");
        let here = (id.partition, offset.get());
        if let Some(place) = open.ids.get(&(id.topic_id, event_id.to_vec())) {
            return Ok(*place != here);
        }
        let sql = "SELECT partition, \"offset\" FROM leftoff_ids WHERE \"group\" = $1 AND topic_id = $2 AND id = $3";
        let topic_id = id.topic_id.to_string();
        let taken: Option<(i32, i64)> = self.persist(open, |open| {
            let parameters: &[session::Parameter<'_>] =
                &[(&self.group, Type::TEXT), (&topic_id, Type::TEXT), (&event_id, Type::BYTEA)];
            let rows = open.session()?.query(sql, parameters)?;
            Ok(rows.first().map(|row| (row.get(0), row.get(1))))
        })?;
        Ok(taken.is_some_and(|place| place != here))
    }

    fn write(&mut self, outputs: &[Output], moves: &[Move]) -> Result<Written, SinkError> {
        assert_moves_cover(outputs, moves);
        let mut claimed = self.claimed.borrow_mut();
        let open = claimed.as_mut().expect("a write follows a claim");
        if open.broken {
            let what = format!("{} is not written any more, since a write failed", self.url);
            return Err(SinkError::Storage { what, error: io::ErrorKind::Other.into() });
        }
        open.broken = true;
        if let Some(error) = open.failed.take() {
            return Err(error);
        }
        let mut is_unsure = false;
        let written = self.persist(open, |open| {
            open.hold_these(outputs)?;
            open.save(&self.table, &self.group, outputs, moves, &mut is_unsure)
        });
        let written = written.map_err(|error| match error {
            SinkError::Unreachable(text) if is_unsure => SinkError::Unreachable(format!(
                "{text}\nwhether it has the last save is not known yet: the next run reads it there, and loses and repeats nothing"
            )),
            error => error,
        })?;
        open.forget();
        open.broken = false;
        Ok(written)
    }

    fn row(&self) -> MatrixRow {
        ROW
    }

    fn place(&self) -> String {
        self.url.to_string()
    }

    fn close(&mut self) -> Result<(), SinkError> {
        if let Some(mut session) = self.claimed.take().and_then(|open| open.session) {
            // What is not committed is rolled back by the end of the connection, too.
            let _ = session.roll_back();
        }
        Ok(())
    }
}

impl fmt::Debug for PostgresSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresSink")
            .field("url", &self.url)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

/// What a fault means, with the place.
fn broke(what: &str, shown: &str, fault: Fault) -> SinkError {
    match fault {
        Fault::Lost(why) | Fault::Strange(why) => SinkError::Unreachable(format!("{what} {shown}: {why}")),
        Fault::Again(why) => {
            SinkError::Storage { what: format!("{what} {shown}"), error: io::Error::other(why) }
        }
        Fault::Said(error) => {
            let (code, told) = (error.code().code(), rows::told(&error));
            match code {
                "3D000" => SinkError::Unreachable(format!("{what} {shown}: {told}")),
                code if code.starts_with("28") => SinkError::Unreachable(format!(
                    "{what} {shown}: {told}\na password is taken from the address, PGPASSWORD or ~/.pgpass"
                )),
                // Read only, or not allowed to this user.
                "25006" | "42501" => SinkError::Refused(format!("{what} {shown}: {told}")),
                "55P03" => SinkError::Storage {
                    what: format!("{what} {shown}: another transaction keeps it locked"),
                    error: io::Error::other(told),
                },
                _ => SinkError::Storage { what: format!("{what} {shown}"), error: io::Error::other(told) },
            }
        }
    }
}
