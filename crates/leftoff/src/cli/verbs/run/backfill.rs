//! `run --from TIME --new-group`: a group of its own that starts with the events of a time, for a backfill that disturbs nobody.

use leftoff::store::now;
use leftoff_consumer::runner::StartFrom;
use leftoff_engine::broker::State;

use crate::cli::args::run::RunArgs;
use crate::cli::failure::Failure;
use crate::cli::session::from_store;
use crate::cli::time::{Time, format_time};
use crate::cli::verbs::authority::next_in;
use crate::cli::verbs::groups::standing;

/// Where each partition starts.
///
/// # Errors
/// Exit 4 if the group has begun already, here or where its records go.
pub fn start(args: &RunArgs, time: Time, state: &State) -> Result<StartFrom, Failure> {
    let group = &args.group;
    if state.coordinator().known_group(group).is_some_and(|group| group.heads().next().is_some()) {
        return Err(Failure::refused(format!("group '{group}' is not new: --from would move it"))
            .hint(format!(
                "to go on with it, leave --from and --new-group away; to move it, `leftoff groups reset {group}`; or name another group"
            )));
    }
    if next_in(&args.out, group)?.is_some_and(|next| !next.is_empty()) {
        return Err(Failure::refused(format!("{} holds an offset of group '{group}' already", args.out))
            .hint("name another group, or another place"));
    }
    let unix_ms = time.unix_ms(now().as_ms());
    let mut at = Vec::new();
    for topic in state.topics().filter(|topic| args.topics.contains(&topic.name)) {
        for number in 0..topic.partitions {
            let log = standing::log(state, topic.topic_id, number);
            let found = log.offset_for_time(unix_ms).map_err(|error| from_store(log.dir(), error.into()))?;
            // Nothing that late: behind the last event, as Kafka has it.
            let offset = found.map_or(log.high_watermark(), |(offset, _)| offset);
            at.push((topic.name.clone(), number, offset));
        }
    }
    Ok(StartFrom { rule: format!("--from {}", format_time(unix_ms)), at })
}
