//! `leftoff check`: the log against its effects. The parts are taken in the order in which no sample can be ahead of the
//! next one: the saved offsets, the length of the effects, the ends of the log, the log.

mod effects;
mod evidence;
mod expect;
mod offsets;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod topic;

use std::path::Path;

use leftoff::topic_sink::Outlet;
use leftoff_audit::{Demand, Limits, PartitionFacts, Question, Verdict, audit, python_list};
use leftoff_consumer::sink::file::FileState;
use leftoff_consumer::sink::{FileSink, PostgresUrl};
use leftoff_consumer::source::PartitionId;
use leftoff_engine::broker::{State, Topic};
use leftoff_engine::coordinator::{Group, PartitionKey};
use leftoff_wire::Committed;

use super::authority::{Marks, Next, from_sink, other_event_at};
use super::groups::{find_group, standing};
use super::printed;
use super::wait::topics_of;
use crate::cli::args::Global;
use crate::cli::args::upkeep::CheckArgs;
use crate::cli::failure::Failure;
use crate::cli::place::Place;
use crate::cli::session::{find_topic, note, open_view};
use crate::cli::table::Format;

use effects::FileEffects;
use evidence::{Effects, Ids, LogAndEffects};
use expect::Expected;
#[cfg(feature = "postgres")]
use postgres::{PostgresEffects, PostgresReader};
#[cfg(feature = "sqlite")]
use sqlite::{SqliteEffects, SqliteReader};
use topic::TopicEffects;

/// Judges a group. Exit 1 if something was lost, handled twice or out of order; with `--drained` also if something is left.
pub fn check(global: &Global, args: &CheckArgs) -> Result<(), Failure> {
    match &args.out {
        None => offsets::check(global, args),
        Some(Place::Stdout) => Err(Failure::usage("--out stdout keeps nothing that could be checked")
            .hint("name the place that the effects went to, as in --out file:PATH, or leave --out away")),
        Some(Place::File(path)) => check_file(global, args, path),
        Some(Place::Sqlite { path, .. }) => check_sqlite(global, args, path),
        Some(Place::Postgres(url)) => check_postgres(global, args, url),
        Some(Place::Topic(name)) => check_topic(global, args, name),
    }
}

fn check_file(global: &Global, args: &CheckArgs, path: &Path) -> Result<(), Failure> {
    let state = FileSink::inspect(path).map_err(from_sink)?;
    refuse_other_group(state.as_ref(), &args.group, path)?;
    // Where no sidecar keeps the offset, the group does; both are read before the effects.
    let before = open_view(global)?;
    let effects = FileEffects::open(path, state.as_ref())?;
    if state.is_some() {
        refuse_id(args, &path.display())?;
    }
    let view = open_view(global)?;
    if state.is_none() {
        find_group(before.state(), &args.group)?;
    }
    let (next, marks) = state.map(|state| (state.next, state.marks)).unzip();
    let topics = topics(view.state(), args, next.as_ref())?;
    refuse_other_log(view.state(), &topics, &marks.unwrap_or_default(), &path.display())?;
    let mut verdicts = Vec::new();
    for topic in &topics {
        let facts = facts(before.state(), view.state(), &args.group, topic, next.as_ref());
        verdicts.push(judge(view.state(), (topic, &topics), &effects, args, &facts)?);
    }
    if let Some(bytes) = effects.missing_bytes() {
        note(
            global,
            &format!(
                "{} is {bytes} bytes shorter than it was written: it was cut or exchanged",
                path.display()
            ),
        );
    }
    if let Some(bytes) = effects.uncounted_bytes() {
        note(
            global,
            &format!(
                "the last {bytes} bytes of {} are not saved and not judged; the next run cuts them",
                path.display()
            ),
        );
    }
    conclude(global, args, view.state(), &topics, &verdicts)
}

#[cfg(not(feature = "sqlite"))]
fn check_sqlite(_global: &Global, _args: &CheckArgs, _path: &Path) -> Result<(), Failure> {
    Err(super::authority::no_sqlite())
}

/// Offset, rows and evidence are those of one moment.
#[cfg(feature = "sqlite")]
fn check_sqlite(global: &Global, args: &CheckArgs, path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    if !path.exists() {
        return Err(Failure::cannot_reach(format!("there is no file {shown}")));
    }
    let reader = SqliteReader::open(path, &args.group).map_err(from_sink)?;
    let claimed = |reader: &SqliteReader| reader.is_claimed().map_err(from_sink);
    let Some(reader) =
        reader.map(|reader| claimed(&reader).map(|is| is.then_some(reader))).transpose()?.flatten()
    else {
        return Err(never_wrote(&args.group, &shown));
    };
    let (next, marks) = (reader.next().map_err(from_sink)?, reader.marks().map_err(from_sink)?);
    check_database(global, args, (&next, &marks), &shown, &SqliteEffects(reader))
}

#[cfg(not(feature = "postgres"))]
fn check_postgres(_global: &Global, _args: &CheckArgs, _url: &PostgresUrl) -> Result<(), Failure> {
    Err(super::authority::no_postgres())
}

/// Offset, rows and evidence are those of one moment.
#[cfg(feature = "postgres")]
fn check_postgres(global: &Global, args: &CheckArgs, url: &PostgresUrl) -> Result<(), Failure> {
    let reader = PostgresReader::open(url, &args.group).map_err(from_sink)?;
    let Some(reader) = reader else { return Err(never_wrote(&args.group, url)) };
    if !reader.is_claimed().map_err(from_sink)? {
        return Err(never_wrote(&args.group, url));
    }
    let (next, marks) = (reader.next().map_err(from_sink)?, reader.marks().map_err(from_sink)?);
    check_database(global, args, (&next, &marks), url, &PostgresEffects(reader))
}

fn never_wrote(group: &str, place: &dyn std::fmt::Display) -> Failure {
    Failure::refused(format!("group '{group}' never wrote to {place}"))
        .hint(format!("`leftoff groups describe {group}` shows where its offsets and effects are"))
}

fn check_database(
    global: &Global,
    args: &CheckArgs,
    (next, marks): (&Next, &Marks),
    place: &dyn std::fmt::Display,
    effects: &dyn Effects,
) -> Result<(), Failure> {
    let view = open_view(global)?;
    let topics = topics(view.state(), args, Some(next))?;
    refuse_other_log(view.state(), &topics, marks, place)?;
    refuse_id(args, place)?;
    let mut verdicts = Vec::new();
    for topic in &topics {
        let facts = facts(view.state(), view.state(), &args.group, topic, Some(next));
        verdicts.push(judge(view.state(), (topic, &topics), effects, args, &facts)?);
    }
    conclude(global, args, view.state(), &topics, &verdicts)
}

/// The group's offset counts; it is read before the records, which can only be further.
fn check_topic(global: &Global, args: &CheckArgs, name: &str) -> Result<(), Failure> {
    let before = open_view(global)?;
    let group = find_group(before.state(), &args.group)?;
    let view = open_view(global)?;
    let out = find_topic(view.state().topics().collect::<Vec<_>>().into_iter(), name)?;
    let topics = topics(view.state(), args, None)?;
    let failed = |error| Failure::storage(format!("topic {name}: {error}"));
    let effects = TopicEffects::new(view.state(), &out, &args.group).map_err(failed)?;
    let mut verdicts = Vec::new();
    for topic in &topics {
        let mut facts = facts(before.state(), view.state(), &args.group, topic, None);
        let mut unjudged = Vec::new();
        for facts in &mut facts {
            let partition = i32::try_from(facts.partition).expect("partitions are counted by an i32");
            let key = PartitionKey { topic: topic.name.clone(), topic_id: topic.topic_id, partition };
            let outlet = outlet_of(group, &key, &out)?;
            let from = effects.judged_from(outlet.as_ref(), &key, facts.saved_next.unwrap_or(0));
            if from > facts.log_start {
                unjudged.push(format!(
                    "{key}/{}-{} is not judged: topic:{name} has not all of what came of it",
                    facts.log_start,
                    from - 1
                ));
                facts.log_start = from;
            }
        }
        let mut verdict = judge(view.state(), (topic, &topics), &effects, args, &facts)?;
        if !unjudged.is_empty() {
            // The audit took what is not judged for deleted.
            verdict.cannot_tell.retain(|sentence| !sentence.contains("deleted from the log"));
            verdict.cannot_tell.splice(0..0, unjudged);
        }
        verdicts.push(verdict);
    }
    conclude(global, args, view.state(), &topics, &verdicts)
}

/// What the group's offset says of the topic that its records go to. Refuses another topic.
fn outlet_of(group: &Group, key: &PartitionKey, out: &Topic) -> Result<Option<Outlet>, Failure> {
    let Some(entry) = group.entry(key) else { return Ok(None) };
    let outlet = entry.metadata.parse::<Outlet>().ok();
    let name = group.name();
    match outlet {
        Some(outlet) if outlet.topic_id == out.topic_id => Ok(Some(outlet)),
        Some(outlet) if outlet.topic == out.name => Err(Failure::refused(format!(
            "topic {} was made anew since group '{name}' wrote to it: what it held is gone",
            out.name
        ))),
        Some(Outlet { topic, .. }) => {
            Err(Failure::refused(format!("group '{name}' writes what it reads of {key} to topic:{topic}")))
        }
        None => {
            Err(Failure::refused(format!("group '{name}' does not write what it reads of {key} to a topic"))
                .hint(format!("`leftoff groups describe {name}` shows where its offsets and effects are")))
        }
    }
}

/// The verdict on one of the topics that the effects are of.
fn judge(
    state: &State,
    (topic, topics): (&Topic, &[Topic]),
    effects: &dyn Effects,
    args: &CheckArgs,
    facts: &[PartitionFacts],
) -> Result<Verdict, Failure> {
    let mut evidence = LogAndEffects::new(state, topic, topics, effects, ids(args));
    let question = Question { topic: &topic.name, partitions: facts };
    audit(&question, &Limits::default(), &mut evidence)
        .map_err(|error| Failure::storage(format!("{}: {error}", topic.name)).because(error))
}

fn refuse_other_group(state: Option<&FileState>, group: &str, path: &Path) -> Result<(), Failure> {
    match state.filter(|state| state.group != group) {
        None => Ok(()),
        Some(state) => Err(Failure::refused(format!(
            "{} holds the effects of group '{}', not of '{group}'",
            path.display(),
            state.group
        ))),
    }
}

/// What `run` wrote names its events by their places, which no template could better.
fn refuse_id(args: &CheckArgs, place: &dyn std::fmt::Display) -> Result<(), Failure> {
    match (&args.id, &args.expect) {
        (Some(_), None) => Err(Failure::usage(format!(
            "{place} names the place of each event; --id is for files of your own"
        ))
        .hint("leave --id away, or name a file with --expect")),
        _ => Ok(()),
    }
}

/// What came of other events says nothing of those that the log has now.
fn refuse_other_log(
    state: &State,
    topics: &[Topic],
    marks: &Marks,
    place: &dyn std::fmt::Display,
) -> Result<(), Failure> {
    for topic in topics {
        for partition in 0..topic.partitions {
            let id = PartitionId { topic_id: topic.topic_id, partition };
            if let Some(offset) = other_event_at(state, marks, id)? {
                let name = &topic.name;
                return Err(Failure::refused(format!(
                    "{place} has passed the event at offset {offset} of {name}/{partition}, and the log has another event \
                     there: its effects cannot be judged by this log"
                ))
                .hint("the data directory was brought back from an older copy; check against the newer one"));
            }
        }
    }
    Ok(())
}

/// The topics to judge: those that `-t` names, or all that the group, or its place, has offsets for.
fn topics(state: &State, args: &CheckArgs, in_place: Option<&Next>) -> Result<Vec<Topic>, Failure> {
    let live: Vec<&Topic> = state.topics().collect();
    let named = if args.topics.is_empty() { topics_of(state, &args.group) } else { args.topics.clone() };
    let mut topics: Vec<Topic> = Vec::new();
    for one in named {
        topics.push(find_topic(live.iter().copied(), &one.topic)?);
    }
    if args.topics.is_empty() {
        let ids = in_place.iter().flat_map(|next| next.keys()).map(|id| id.topic_id);
        topics.extend(
            ids.filter_map(|id| live.iter().find(|topic| topic.topic_id == id)).map(|topic| (*topic).clone()),
        );
    }
    topics.sort_by(|a, b| a.name.cmp(&b.name));
    topics.dedup_by(|a, b| a.topic_id == b.topic_id);
    if topics.is_empty() {
        return Err(Failure::cannot_reach(format!("group '{}' has no offsets to check", args.group))
            .hint("name its topic with -t TOPIC"));
    }
    Ok(topics)
}

fn facts(
    before: &State,
    state: &State,
    group: &str,
    topic: &Topic,
    in_place: Option<&Next>,
) -> Vec<PartitionFacts> {
    let fact = |number: i32| {
        let id = PartitionId { topic_id: topic.topic_id, partition: number };
        let key = PartitionKey { topic: topic.name.clone(), topic_id: topic.topic_id, partition: number };
        let in_group = || before.coordinator().entry(group, &key).map(|entry| entry.committed);
        let saved = in_place.map_or_else(in_group, |next| next.get(&id).copied());
        let log = standing::log(state, topic.topic_id, number);
        PartitionFacts {
            partition: number.unsigned_abs(),
            log_start: log.log_start().get(),
            end: log.high_watermark().get(),
            saved_next: saved.map(Committed::next).map(leftoff_wire::Offset::get),
        }
    };
    (0..topic.partitions).map(fact).collect()
}

/// What events are called in files of the user's.
fn ids(args: &CheckArgs) -> Ids<'_> {
    args.id.as_ref().map_or(Ids::KeyOrValue, Ids::Template)
}

/// Shows the verdicts, after that on the expectation, if there is one; all of them make the exit code.
fn conclude(
    global: &Global,
    args: &CheckArgs,
    state: &State,
    topics: &[Topic],
    verdicts: &[Verdict],
) -> Result<(), Failure> {
    let expected =
        args.expect.as_ref().map(|path| expect::compare(state, topics, path, ids(args))).transpose()?;
    show(global, verdicts, expected.as_ref())?;
    let answered = answer(verdicts, args.drained);
    expected.as_ref().map_or(Ok(()), expect::Expected::answer).and(answered)
}

fn show(global: &Global, verdicts: &[Verdict], expected: Option<&Expected>) -> Result<(), Failure> {
    printed(|out| {
        use std::io::Write;
        let format = Format::from(global.format);
        if let Some(expected) = expected {
            expected.write(out, format)?;
        }
        match (format, verdicts) {
            (Format::Json, [verdict]) => {
                serde_json::to_writer_pretty(&mut *out, verdict)?;
                writeln!(out)
            }
            (Format::Json, verdicts) => {
                serde_json::to_writer_pretty(&mut *out, verdicts)?;
                writeln!(out)
            }
            (Format::Jsonl, verdicts) => verdicts.iter().try_for_each(|verdict| {
                serde_json::to_writer(&mut *out, verdict)?;
                writeln!(out)
            }),
            (Format::Text | Format::Wide | Format::Csv, [verdict]) => writeln!(out, "{verdict}"),
            (Format::Text | Format::Wide | Format::Csv, verdicts) => {
                for verdict in verdicts {
                    writeln!(out, "topic {}\n{verdict}\n", verdict.topic)?;
                }
                writeln!(out, "all topics\n{}", together(verdicts))
            }
        }
    })
}

/// The last two lines over several topics, in the form of one.
fn together(verdicts: &[Verdict]) -> String {
    let unfinished: u64 = verdicts.iter().map(|verdict| verdict.unfinished.count).sum();
    let left = if unfinished == 0 { "nothing left".to_owned() } else { format!("{unfinished} unfinished") };
    let names = |of: fn(&Verdict) -> &leftoff_audit::Found| {
        let names: Vec<&String> = verdicts.iter().flat_map(|verdict| &of(verdict).names).collect();
        let unnamed: u64 = verdicts.iter().map(|verdict| of(verdict).unnamed).sum();
        let more = if unnamed > 0 { format!(" and {unnamed} more") } else { String::new() };
        format!("{}{more}", python_list(&names))
    };
    let (lost, twice) = (names(|verdict| &verdict.lost), names(|verdict| &verdict.handled_twice));
    format!("{left}\nlost: {lost} | handled twice: {twice}")
}

fn answer(verdicts: &[Verdict], drained: bool) -> Result<(), Failure> {
    let demand = if drained { Demand::Drained } else { Demand::Clean };
    if verdicts.iter().all(|verdict| verdict.exit_code(demand) == 0) {
        return Ok(());
    }
    let count = |of: fn(&Verdict) -> u64| verdicts.iter().map(of).sum::<u64>();
    let counts = [
        ("lost", count(|verdict| verdict.lost.count)),
        ("handled twice", count(|verdict| verdict.handled_twice.count)),
        ("out of order", count(|verdict| verdict.out_of_order.count)),
        ("unfinished", if drained { count(|verdict| verdict.unfinished.count) } else { 0 }),
    ];
    let found = counts.iter().filter(|(_, count)| *count > 0);
    let told: Vec<String> = found.map(|(name, count)| format!("{count} {name}")).collect();
    Err(Failure::check_failed(format!("the check failed: {}", told.join(", "))))
}
