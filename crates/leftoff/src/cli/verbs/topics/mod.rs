//! `leftoff topics create|ls|describe|alter|delete|trim`.

mod describe;
mod trim;

use leftoff::store::Store;
use leftoff_engine::broker::{PartitionId, Request, State, Topic};

use super::printed;
use crate::cli::args::Global;
use crate::cli::args::topics::{AlterArgs, CreateArgs, DeleteArgs, TopicsCommand};
use crate::cli::args::value::{Retention, Setting};
use crate::cli::confirm::confirm;
use crate::cli::failure::Failure;
use crate::cli::session::{find_topic, from_store, note, open_existing, open_view, open_writer};
use crate::cli::table::{Cell, Column, Table};

/// Kafka's name of the setting behind `--retention`.
const RETENTION: &str = "retention.ms";
/// Its value for "never deleted".
const FOREVER: &str = "-1";

/// Does what the words behind `topics` say.
pub fn run(global: &Global, command: &TopicsCommand) -> Result<(), Failure> {
    match command {
        TopicsCommand::Create(args) => create(global, args),
        TopicsCommand::Ls => list(global),
        TopicsCommand::Describe(args) => describe::run(global, args),
        TopicsCommand::Alter(args) => alter(global, args),
        TopicsCommand::Delete(args) => delete(global, args),
        TopicsCommand::Trim(args) => trim::run(global, args),
    }
}

/// Makes a topic whose events are kept for ever, unless the settings say otherwise: Kafka's seven days would be a
/// surprise to whoever never asked for a deletion.
pub fn create_topic(
    store: &Store,
    name: &str,
    partitions: i32,
    mut settings: Vec<(String, String)>,
) -> Result<Topic, Failure> {
    if !settings.iter().any(|(key, _)| key == RETENTION) {
        settings.push((RETENTION.to_owned(), FOREVER.to_owned()));
    }
    store.create_topic(name, partitions, &settings).map_err(|error| from_store(store.root(), error))
}

fn create(global: &Global, args: &CreateArgs) -> Result<(), Failure> {
    let settings = settings(&args.settings, args.retention)?;
    let given: Vec<(String, String)> =
        settings.into_iter().map(|(key, value)| (key, value.unwrap_or_default())).collect();
    let store = open_writer(global, "topics create")?;
    for name in &args.topics {
        if let Some(topic) = store.topic(name).filter(|_| args.if_not_exists) {
            note(global, &format!("{name} exists already, with {}", partitions(topic.partitions)));
            continue;
        }
        let topic = create_topic(&store, name, args.partitions, given.clone())?;
        note(global, &format!("made {name} with {}", partitions(topic.partitions)));
    }
    closed(store)
}

const LIST: &[Column] = &[
    Column { title: "TOPIC", key: "topic", is_wide: false },
    Column { title: "PARTITIONS", key: "partitions", is_wide: false },
    Column { title: "EVENTS", key: "events", is_wide: false },
    Column { title: "BYTES", key: "bytes", is_wide: false },
    Column { title: "CREATED", key: "created", is_wide: false },
    Column { title: "TOPIC-ID", key: "topic_id", is_wide: true },
];

fn list(global: &Global) -> Result<(), Failure> {
    let view = open_view(global)?;
    let mut topics: Vec<&Topic> = view.state().topics().collect();
    topics.sort_by(|a, b| a.name.cmp(&b.name));
    let mut table = Table::new(LIST);
    for topic in topics {
        let size = Size::of(view.state(), topic)?;
        table.push(vec![
            topic.name.as_str().into(),
            topic.partitions.into(),
            size.events.into(),
            size.bytes.into(),
            Cell::Time(topic.created.as_ms()),
            topic.topic_id.to_string().into(),
        ]);
    }
    if table.is_empty() {
        note(global, "there is no topic yet");
    }
    printed(|out| table.write(out, global.format.into(), !global.no_headers))
}

/// How much there is of a topic.
struct Size {
    events: i64,
    bytes: i64,
}

impl Size {
    fn of(state: &State, topic: &Topic) -> Result<Size, Failure> {
        let mut size = Size { events: 0, bytes: 0 };
        for (_, log) in logs(state, topic) {
            size.events += log.high_watermark().get() - log.log_start().get();
            let bytes = log.bytes().map_err(|error| Failure::storage(error.to_string()))?;
            size.bytes += i64::try_from(bytes).unwrap_or(i64::MAX);
        }
        Ok(size)
    }
}

/// The partitions of a topic with their logs, in order.
fn logs<'a>(
    state: &'a State,
    topic: &'a Topic,
) -> impl Iterator<Item = (PartitionId, &'a leftoff_engine::log::Log)> {
    (0..topic.partitions).filter_map(|partition| {
        let id = PartitionId { topic_id: topic.topic_id, partition };
        state.log(&id).map(|log| (id, log))
    })
}

fn alter(global: &Global, args: &AlterArgs) -> Result<(), Failure> {
    let settings = settings(&args.settings, args.retention)?;
    let store = open_existing(global, "topics alter")?;
    let before = known(&store, &args.topic)?;
    if let Some(asked) = args.partitions.filter(|asked| *asked <= before.partitions) {
        let has = partitions(before.partitions);
        return Err(Failure::usage(format!("{} has {has} already, {asked} are not more", args.topic))
            .hint("partitions can be added, never taken away: their events would be lost"));
    }
    let request = Request::AlterTopic { name: args.topic.clone(), settings, partitions: args.partitions };
    store.request(request).map_err(|error| from_store(store.root(), error))?;
    if let Some(now) = args.partitions {
        let (had, name) = (before.partitions, &args.topic);
        note(
            global,
            &format!(
                "{name} has {now} partitions now; new events of a key may go to another one than its old {had}"
            ),
        );
    }
    closed(store)
}

fn delete(global: &Global, args: &DeleteArgs) -> Result<(), Failure> {
    let store = open_existing(global, "topics delete")?;
    let mut events = 0;
    for name in &args.topics {
        let topic = known(&store, name)?;
        events += store.with_state(|state| Size::of(state, &topic))?.events;
    }
    let names = args.topics.join(", ");
    confirm(&format!("delete {names} with {events} events?"), args.noconfirm)?;
    for name in &args.topics {
        let request = Request::DeleteTopic { name: name.clone() };
        store.request(request).map_err(|error| from_store(store.root(), error))?;
        note(global, &format!("deleted {name}"));
    }
    closed(store)
}

fn known(store: &Store, name: &str) -> Result<Topic, Failure> {
    store.with_state(|state| find_topic(state.topics().collect::<Vec<_>>().into_iter(), name))
}

/// Settings from `-c` and `--retention`; an empty value is the default.
fn settings(
    given: &[Setting],
    retention: Option<Retention>,
) -> Result<Vec<(String, Option<String>)>, Failure> {
    let mut settings: Vec<(String, Option<String>)> = given
        .iter()
        .map(|setting| (setting.key.clone(), Some(setting.value.clone()).filter(|value| !value.is_empty())))
        .collect();
    if let Some(retention) = retention {
        if settings.iter().any(|(key, _)| key == RETENTION) {
            return Err(Failure::usage("--retention and -c retention.ms say the same thing twice")
                .hint("leave one of them out"));
        }
        let ms = match retention {
            Retention::Forever => FOREVER.to_owned(),
            Retention::For { ms } => ms.to_string(),
        };
        settings.push((RETENTION.to_owned(), Some(ms)));
    }
    Ok(settings)
}

fn closed(store: Store) -> Result<(), Failure> {
    let root = store.root().to_owned();
    store.close().map_err(|error| from_store(&root, error))
}

/// `1 partition`, `4 partitions`
pub fn partitions(count: i32) -> String {
    if count == 1 { "1 partition".to_owned() } else { format!("{count} partitions") }
}
