//! The place that records go to: what it promises, and the sink that writes it.

use leftoff::source::StoreSource;
use leftoff::store::Store;
use leftoff::topic_sink::{self, TopicSink};
use leftoff_consumer::sink::{FileSink, MatrixRow, Sink, StdoutSink};

use crate::cli::args::Global;
use crate::cli::args::run::{OnLostState, RunArgs};
use crate::cli::failure::Failure;
use crate::cli::place::Place;
use crate::cli::session::{note, warn_of_filesystem};
use crate::cli::verbs::authority::from_sink;
use crate::cli::verbs::topics::create_topic;

/// The row of the matrix. Nothing is opened.
pub fn row(args: &RunArgs) -> MatrixRow {
    match &args.out {
        Place::File(path) => FileSink::new(path, &args.group).row(),
        #[cfg(feature = "sqlite")]
        Place::Sqlite { .. } => leftoff_consumer::sink::sqlite::ROW,
        #[cfg(not(feature = "sqlite"))]
        Place::Sqlite { .. } => StdoutSink::new().row(),
        #[cfg(feature = "postgres")]
        Place::Postgres(_) => leftoff_consumer::sink::postgres::ROW,
        #[cfg(not(feature = "postgres"))]
        Place::Postgres(_) => StdoutSink::new().row(),
        Place::Topic(_) => topic_sink::ROW,
        Place::Stdout => StdoutSink::new().row(),
    }
}

/// Refuses a place that cannot promise what `--require` asks for, and one that would feed the run its own records.
pub fn check(args: &RunArgs) -> Result<(), Failure> {
    let row = row(args);
    if let Some(require) = args.require.filter(|require| !require.is_met_by(row.promise)) {
        let (place, promise) = (&args.out, row.promise);
        let asked = match require {
            crate::cli::args::run::Require::AtLeastOnce => "at least once",
            crate::cli::args::run::Require::ExactlyOnce => "exactly once",
        };
        return Err(Failure::refused(format!("{place} promises {promise}, and {asked} is required")).hint(
            "file:PATH, sqlite:FILE, postgres://… and topic:NAME keep records and offset in one step",
        ));
    }
    if args.dedupe.is_some() {
        check_keeps_ids(&args.out)?;
    }
    match &args.out {
        Place::Sqlite { path, .. } if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) => {
            Err(Failure::usage(format!("{} is not a plain file", path.display()))
                .hint("name the file of a database, or one that does not exist yet"))
        }
        Place::Topic(name) if args.topics.contains(name) => Err(Failure::refused(format!(
            "topic {name} is read: the run would handle its own records for ever"
        ))
        .hint("name another topic with --out")),
        #[cfg(not(feature = "sqlite"))]
        Place::Sqlite { .. } => Err(crate::cli::verbs::authority::no_sqlite()),
        #[cfg(not(feature = "postgres"))]
        Place::Postgres(_) => Err(crate::cli::verbs::authority::no_postgres()),
        _ => Ok(()),
    }
}

/// Ids that are not kept in one step with the outcomes would call an event a copy that is not, or miss one that is.
fn check_keeps_ids(place: &Place) -> Result<(), Failure> {
    let why = match place {
        Place::Sqlite { .. } | Place::Postgres(_) => return Ok(()),
        Place::Stdout => "nothing there keeps the ids of events",
        Place::File(_) | Place::Topic(_) => "it keeps what came of each event, and not the ids of events",
    };
    Err(Failure::refused(format!("--dedupe cannot be used with {place}: {why}"))
        .hint("--out sqlite:FILE and --out postgres://… keep ids, rows and offset in one transaction"))
}

/// The sink. A topic that is not there is made.
pub fn open(
    global: &Global,
    args: &RunArgs,
    store: &Store,
    source: &StoreSource,
) -> Result<Box<dyn Sink>, Failure> {
    Ok(match &args.out {
        Place::File(path) => Box::new(FileSink::new(path, &args.group)),
        #[cfg(feature = "sqlite")]
        Place::Sqlite { path, table } => {
            warn_of_filesystem(global, path);
            let sink = leftoff_consumer::sink::SqliteSink::new(path, table.clone(), &args.group);
            Box::new(if args.dedupe.is_some() { sink.keeping_ids() } else { sink })
        }
        #[cfg(not(feature = "sqlite"))]
        Place::Sqlite { .. } => return Err(crate::cli::verbs::authority::no_sqlite()),
        #[cfg(feature = "postgres")]
        Place::Postgres(url) => {
            let global = global.clone();
            let sink = leftoff_consumer::sink::PostgresSink::new(url.clone(), &args.group);
            let sink = sink.telling(move |text| note(&global, text));
            Box::new(if args.dedupe.is_some() { sink.keeping_ids() } else { sink })
        }
        #[cfg(not(feature = "postgres"))]
        Place::Postgres(_) => return Err(crate::cli::verbs::authority::no_postgres()),
        Place::Topic(name) => {
            if store.topic(name).is_none() {
                create_topic(store, name, 1, Vec::new())?;
                note(global, &format!("made {name} with 1 partition"));
            }
            let follow_group = args.on_lost_state == OnLostState::Group;
            Box::new(TopicSink::new(source, name, follow_group).map_err(from_sink)?)
        }
        Place::Stdout => Box::new(StdoutSink::new()),
    })
}
