//! `leftoff dlq`: events that were given up are listed, shown, produced again, or dropped.

mod letters;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use leftoff::dead_letters::{REPLAY_HEADER, STATE_HEADER, StateOf, id_of};
use leftoff::partitioner::Partitioner;
use leftoff::store::{Store, now};
use leftoff_consumer::sink::{DeadLetter, DeadState, Letter};
use leftoff_engine::broker::{PartitionId, Request, Topic};
use leftoff_wire::record_batch::{BatchBuilder, Batches};

use self::letters::{Letterbox, boxes, each, mark_in_file};
use crate::cli::args::Global;
use crate::cli::args::dlq::{DlqCommand, DropArgs, LsArgs, ReplayArgs, ShowArgs, Which, Whose};
use crate::cli::failure::{Exit, Failure};
use crate::cli::session::{find_topic, from_store, note, open_existing, open_view};
use crate::cli::table::{Column, Format, Table};
use crate::cli::verbs::{events, printed};

pub use self::letters::topic_name;

const COLUMNS: &[Column] = &[
    Column { title: "EVENT", key: "event", is_wide: false },
    Column { title: "ATTEMPTS", key: "attempts", is_wide: false },
    Column { title: "GIVEN-UP", key: "given_up", is_wide: false },
    Column { title: "STATE", key: "state", is_wide: false },
    Column { title: "WHY", key: "why", is_wide: false },
    Column { title: "ID", key: "id", is_wide: true },
    Column { title: "KEPT-IN", key: "kept_in", is_wide: true },
];

/// `leftoff dlq …`
pub fn run(global: &Global, command: &DlqCommand) -> Result<(), Failure> {
    match command {
        DlqCommand::Ls(args) => ls(global, args),
        DlqCommand::Show(args) => show(global, args),
        DlqCommand::Replay(args) => replay(global, args),
        DlqCommand::Drop(args) => drop_letters(global, args),
    }
}

fn ls(global: &Global, args: &LsArgs) -> Result<(), Failure> {
    let filter = Filter { reason: args.reason.as_deref(), topic: args.topic.as_deref(), events: None };
    let mut table = Table::new(COLUMNS);
    let view = open_view(global)?;
    for place in boxes(view.state(), &args.whose)? {
        each(view.state(), &args.whose.group, &place, |letter, state| {
            if filter.takes(letter) {
                table.push(vec![
                    event_of(letter).into(),
                    i64::from(letter.gave_up.attempts).into(),
                    crate::cli::table::Cell::Time(letter.at_ms),
                    state.to_string().into(),
                    letter.gave_up.why.as_str().into(),
                    id_of(letter).into(),
                    place.name().into(),
                ]);
            }
            Ok(())
        })?;
    }
    if table.is_empty() {
        note(global, &format!("group {} has no dead letters here", args.whose.group));
    }
    printed(|out| table.write(out, Format::from(global.format), !global.no_headers))
}

/// One letter as JSON, whatever form is asked for: it is one object with everything in it.
fn show(global: &Global, args: &ShowArgs) -> Result<(), Failure> {
    let view = open_view(global)?;
    let mut found = None;
    for place in boxes(view.state(), &args.whose)? {
        each(view.state(), &args.whose.group, &place, |letter, state| {
            if is_named(letter, &args.event) {
                found = Some((Letter::of(letter), state, place.name()));
            }
            Ok(())
        })?;
    }
    let Some((letter, state, kept_in)) = found else {
        let failure = Failure::new(
            Exit::CannotReach,
            format!("{} is no dead letter of group {}", args.event, args.whose.group),
        );
        return Err(failure.hint(format!("`leftoff dlq ls {}` lists them", args.whose.group)));
    };
    let mut shown = serde_json::to_value(&letter).expect("texts and numbers have a JSON form");
    shown["state"] = state.to_string().into();
    shown["kept_in"] = kept_in.into();
    printed(|out| {
        serde_json::to_writer_pretty(&mut *out, &shown)?;
        out.push(b'\n');
        Ok(())
    })
}

/// Which letters are meant.
struct Filter<'a> {
    reason: Option<&'a str>,
    topic: Option<&'a str>,
    /// None named: all.
    events: Option<&'a [String]>,
}

impl Filter<'_> {
    fn takes(&self, letter: &DeadLetter) -> bool {
        self.reason.is_none_or(|reason| letter.gave_up.why.contains(reason))
            && self.topic.is_none_or(|topic| letter.topic == topic)
            && self.events.is_none_or(|events| events.iter().any(|event| is_named(letter, event)))
    }
}

fn filter(which: &Which) -> Result<Filter<'_>, Failure> {
    if which.events.is_empty() && !which.all && which.reason.is_none() && which.topic.is_none() {
        return Err(Failure::usage("which dead letters?")
            .hint("name events as TOPIC/PARTITION/OFFSET, or --all, --reason TEXT, -t TOPIC"));
    }
    let events = (!which.events.is_empty()).then_some(which.events.as_slice());
    Ok(Filter { reason: which.reason.as_deref(), topic: which.topic.as_deref(), events })
}

fn is_named(letter: &DeadLetter, event: &str) -> bool {
    event == event_of(letter) || event == id_of(letter)
}

/// `TOPIC/PARTITION/OFFSET`
fn event_of(letter: &DeadLetter) -> String {
    format!("{}/{}/{}", letter.topic, letter.id.partition, letter.event.offset)
}

/// A letter that was chosen, and where it is.
struct Chosen {
    letter: DeadLetter,
    place: Letterbox,
}

/// The letters that are meant. They are held in memory: so many as a person would move at once.
fn choose(global: &Global, whose: &Whose, which: &Which, again: bool) -> Result<Vec<Chosen>, Failure> {
    const MOST_BYTES: usize = 1 << 30;
    let filter = filter(which)?;
    let view = open_view(global)?;
    let (mut chosen, mut bytes) = (Vec::new(), 0);
    for place in boxes(view.state(), whose)? {
        each(view.state(), &whose.group, &place, |letter, state| {
            if filter.takes(letter) && (again || state == DeadState::Open) {
                bytes += letter.event.value.as_ref().map_or(0, Vec::len);
                if bytes > MOST_BYTES {
                    return Err(Failure::refused(format!("these letters have more than {MOST_BYTES} bytes"))
                        .hint("take fewer at a time, with --reason, -t or by name"));
                }
                chosen.push(Chosen { letter: letter.clone(), place: place.clone() });
            }
            Ok(())
        })?;
    }
    for event in &which.events {
        if !chosen.iter().any(|chosen| is_named(&chosen.letter, event)) {
            return Err(Failure::new(
                Exit::CannotReach,
                format!("{event} is no open dead letter of group {}", whose.group),
            )
            .hint(format!(
                "`leftoff dlq ls {}` lists them; --again takes what was replayed or dropped",
                whose.group
            )));
        }
    }
    Ok(chosen)
}

fn replay(global: &Global, args: &ReplayArgs) -> Result<(), Failure> {
    let chosen = choose(global, &args.whose, &args.which, args.again)?;
    let to = |letter: &DeadLetter| args.to_topic.clone().unwrap_or_else(|| letter.topic.clone());
    plan(&chosen, |letter| format!("produced again to {}", to(letter)), args.execute)?;
    if !args.execute || chosen.is_empty() {
        return Ok(());
    }
    let store = open_existing(global, "dlq")?;
    let mut topics: BTreeMap<String, (Topic, Partitioner)> = BTreeMap::new();
    for Chosen { letter, .. } in &chosen {
        let name = to(letter);
        if let Entry::Vacant(entry) = topics.entry(name) {
            let name = entry.key().clone();
            let found = store
                .with_state(|state| find_topic(state.topics().collect::<Vec<_>>().into_iter(), &name))?;
            let partitioner = Partitioner::new(found.partitions, 0);
            entry.insert((found, partitioner));
        }
    }
    for one in &chosen {
        let letter = &one.letter;
        let (topic, partitioner) = topics.get_mut(&to(letter)).expect("it was found a moment ago");
        let size = letter.event.value.as_ref().map_or(0, Vec::len);
        let partition = partitioner.partition(letter.event.key.as_deref(), size);
        let id = id_of(letter);
        let given = letter.event.headers.iter().filter(|(name, _)| name != REPLAY_HEADER);
        let headers: Vec<(&str, Option<&[u8]>)> = given
            .map(|(name, value)| (name.as_str(), value.as_deref()))
            .chain([(REPLAY_HEADER, Some(id.as_bytes()))])
            .collect();
        let mut appends = vec![(
            PartitionId { topic_id: topic.topic_id, partition },
            batch(letter.event.key.as_deref(), letter.event.value.as_deref(), &headers)?,
        )];
        // In the same directory the mark goes with it; elsewhere it follows, and a crash between the two leaves the letter open.
        appends.extend(mark_append(one, &args.whose.group, DeadState::Replayed)?);
        append(global, &store, appends)?;
        mark_elsewhere(one, &args.whose.group, DeadState::Replayed)?;
    }
    store.close().map_err(|error| from_store(&global.data, error))?;
    note(global, &format!("{} produced again", events(chosen.len() as u64)));
    Ok(())
}

fn drop_letters(global: &Global, args: &DropArgs) -> Result<(), Failure> {
    let chosen = choose(global, &args.whose, &args.which, false)?;
    plan(&chosen, |_| "dropped".to_owned(), args.execute)?;
    if !args.execute || chosen.is_empty() {
        return Ok(());
    }
    let store = open_existing(global, "dlq")?;
    for one in &chosen {
        let appends: Vec<_> = mark_append(one, &args.whose.group, DeadState::Dropped)?.into_iter().collect();
        if !appends.is_empty() {
            append(global, &store, appends)?;
        }
        mark_elsewhere(one, &args.whose.group, DeadState::Dropped)?;
    }
    store.close().map_err(|error| from_store(&global.data, error))?;
    note(global, &format!("{} marked as dropped", events(chosen.len() as u64)));
    Ok(())
}

fn plan(chosen: &[Chosen], what: impl Fn(&DeadLetter) -> String, execute: bool) -> Result<(), Failure> {
    printed(|out| {
        for Chosen { letter, .. } in chosen {
            let end = if execute { "is" } else { "would be" };
            out.extend(format!("{} {end} {}\n", event_of(letter), what(letter)).into_bytes());
        }
        let count = events(chosen.len() as u64);
        if !execute {
            out.extend(format!("{count}; nothing was done: --execute does it\n").into_bytes());
        }
        Ok(())
    })
}

fn append(global: &Global, store: &Store, appends: Vec<(PartitionId, Batches)>) -> Result<(), Failure> {
    store.request(Request::Append { appends }).map(drop).map_err(|error| from_store(&global.data, error))
}

fn batch(
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[(&str, Option<&[u8]>)],
) -> Result<Batches, Failure> {
    let mut batch = BatchBuilder::default();
    batch.push(now().as_ms(), key, value, headers);
    let built = batch.build().and_then(Batches::parse);
    built.map_err(|error| Failure::storage(format!("cannot make a batch: {error}")))
}

fn state_of(one: &Chosen, group: &str, state: DeadState) -> StateOf {
    StateOf { id: id_of(&one.letter), group: group.to_owned(), state, at_ms: now().as_ms() }
}

/// The mark of a letter that is in a topic.
fn mark_append(
    one: &Chosen,
    group: &str,
    state: DeadState,
) -> Result<Option<(PartitionId, Batches)>, Failure> {
    let Letterbox::Topic(topic) = &one.place else { return Ok(None) };
    let told = serde_json::to_string(&state_of(one, group, state)).expect("texts have a JSON form");
    let marked = batch(None, None, &[(STATE_HEADER, Some(told.as_bytes()))])?;
    Ok(Some((PartitionId { topic_id: topic.topic_id, partition: 0 }, marked)))
}

/// The mark of a letter that is in a file or a database.
fn mark_elsewhere(one: &Chosen, group: &str, state: DeadState) -> Result<(), Failure> {
    match &one.place {
        Letterbox::Topic(_) => Ok(()),
        Letterbox::File(path) => mark_in_file(path, &[state_of(one, group, state)]),
        #[cfg(feature = "sqlite")]
        Letterbox::Sqlite(path) => {
            let (id, offset) = (one.letter.id, one.letter.event.offset);
            let marked =
                leftoff_consumer::sink::sqlite::mark_letter(path, group, id, offset, state, now().as_ms());
            marked.map_err(crate::cli::verbs::authority::from_sink)
        }
        #[cfg(feature = "postgres")]
        Letterbox::Postgres(url) => {
            let (id, offset) = (one.letter.id, one.letter.event.offset);
            let marked =
                leftoff_consumer::sink::postgres::mark_letter(url, group, id, offset, state, now().as_ms());
            marked.map_err(crate::cli::verbs::authority::from_sink)
        }
        #[cfg(not(feature = "postgres"))]
        Letterbox::Postgres(_) => Err(crate::cli::verbs::authority::no_postgres()),
        #[cfg(not(feature = "sqlite"))]
        Letterbox::Sqlite(_) => Err(crate::cli::verbs::authority::no_sqlite()),
    }
}
