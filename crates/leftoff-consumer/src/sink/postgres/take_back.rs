//! Events that a person gave back: what they left in the database goes, in the transaction that moves the offset, so that
//! the rows are at any time those of the events below it.

use leftoff_wire::Offset;
use tokio_postgres::types::Type;

use super::Trouble;
use super::rows::GROUP_COLUMN;
use super::schema::{names, quoted_table};
use super::session::Session;
use crate::sink::ID_KEY;
use crate::source::PartitionId;

/// What each table of ours loses: evidence, ids, and letters of events that are to be handled again. What was replayed or
/// dropped is a decision that stays.
const OURS: &[&str] = &[
    "DELETE FROM leftoff_outcomes WHERE \"group\" = $1 AND topic_id = $2 AND partition = $3 AND first >= $4",
    "UPDATE leftoff_outcomes SET last = $4::int8 - 1
     WHERE \"group\" = $1 AND topic_id = $2 AND partition = $3 AND first < $4 AND last >= $4",
    "DELETE FROM leftoff_ids WHERE \"group\" = $1 AND topic_id = $2 AND partition = $3 AND \"offset\" >= $4",
    "DELETE FROM leftoff_dead WHERE \"group\" = $1 AND topic_id = $2 AND partition = $3 AND \"offset\" >= $4
     AND state = 'open'",
];

/// Takes out what came of the events of a partition from an offset on.
pub(super) fn take_back(
    session: &Session,
    group: &str,
    id: PartitionId,
    first: Offset,
) -> Result<(), Trouble> {
    let (topic_id, first) = (id.topic_id.to_string(), first.get());
    let ours: [super::session::Parameter<'_>; 4] =
        [(&group, Type::TEXT), (&topic_id, Type::TEXT), (&id.partition, Type::INT4), (&first, Type::INT8)];
    for sql in OURS {
        session.execute(sql, &ours)?;
    }
    let tables = session
        .query("SELECT name, kind FROM leftoff_tables WHERE \"group\" = $1", &[(&group, Type::TEXT)])?;
    for row in tables {
        let (table, kind): (String, String) = (row.get(0), row.get(1));
        let found = names(session, &table)?;
        let has = |name: &str| found.iter().any(|column| column == name);
        let from = quoted_table(&table);
        if kind == "events" {
            if has("record") {
                let sql = format!(
                    "DELETE FROM {from} WHERE \"group\" = $1 AND topic_id = $2 AND partition = $3 AND \"offset\" >= $4"
                );
                session.execute(&sql, &ours)?;
            }
            continue;
        }
        if !has(ID_KEY) {
            continue;
        }
        let is_of_group = if has(GROUP_COLUMN) { "leftoff_group::text = $1" } else { "$1::text IS NOT NULL" };
        if !has(GROUP_COLUMN) && is_shared(session, &table)? {
            return Err(Trouble::Changed(format!(
                "several groups write to table {table}, which has no column leftoff_group: nobody can tell which rows are \
                 those of the events that {group} was reset to\nadd the column and fill it, or take the rows out and their \
                 line in leftoff_tables"
            )));
        }
        let sql = format!(
            "DELETE FROM {from} WHERE {is_of_group} AND starts_with(leftoff_id::text, $2)
             AND split_part(leftoff_id::text, '/', 3) ~ '^[0-9]{{1,18}}$'
             AND split_part(leftoff_id::text, '/', 3)::int8 >= $3"
        );
        let place = format!("{topic_id}/{}/", id.partition);
        session.execute(&sql, &[(&group, Type::TEXT), (&place, Type::TEXT), (&first, Type::INT8)])?;
    }
    Ok(())
}

fn is_shared(session: &Session, table: &str) -> Result<bool, Trouble> {
    let sql = "SELECT count(*) > 1 FROM leftoff_tables WHERE name = $1";
    let rows = session.query(sql, &[(&table, Type::TEXT)])?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}
