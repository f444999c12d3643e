//! What a run can be told.

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::{Duration, Instant};

use leftoff_wire::Offset;

use crate::source::Event;

/// How a run goes. The default is the safe choice everywhere.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The group, for dead letters.
    pub group: String,
    /// When the offset is saved.
    pub save: SavePolicy,
    /// Whether events are handled while a save is under way; a thread more. Where each event is saved before the next one is
    /// handed out there is nothing to handle meanwhile.
    pub save_meanwhile: bool,
    /// Which events are handled one after the other. Outcomes are always written in offset order.
    pub order: Order,
    /// What happens when an event is not handled, and its attempts are used up.
    pub on_fail: OnFail,
    /// How often an event is tried in all. `None`: [`OnFail::default_attempts`].
    pub attempts: Option<NonZeroU32>,
    /// How long to wait before an event is tried again.
    pub backoff: Backoff,
    /// Where the random part of the waits begins: the same seed, the same waits.
    pub seed: u64,
    /// What happens when offsets to be read are gone.
    pub on_gap: OnGap,
    /// What tells events apart; those whose id the sink has taken already are absorbed. Without it none are.
    pub identify: Option<Identify>,
    /// Where a group starts that has nothing saved.
    pub on_no_offset: OnNoOffset,
    /// The same for some partitions by name; it goes before the rule for all.
    pub start_from: Option<StartFrom>,
    /// What happens when the sink keeps the offset, holds none, and the group has one.
    pub on_lost_state: OnLostState,
    /// What happens when the log is not the one that the sink's offset counts in.
    pub on_other_log: OnOtherLog,
    /// Stop when everything that was there at the assignment is handled.
    pub until_end: bool,
    /// Stop after so many events.
    pub max_events: Option<u64>,
    /// How long a handler may go on with its event after a stop.
    pub drain: Duration,
    /// How old the group's mirror of a sink's offset may get.
    pub mirror_every: Duration,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            group: String::new(),
            save: SavePolicy::EveryEvent,
            save_meanwhile: true,
            order: Order::Partition,
            on_fail: OnFail::Stop,
            attempts: None,
            backoff: Backoff::default(),
            seed: 0,
            on_gap: OnGap::Stop,
            identify: None,
            on_no_offset: OnNoOffset::Earliest,
            start_from: None,
            on_lost_state: OnLostState::Refuse,
            on_other_log: OnOtherLog::Refuse,
            until_end: false,
            max_events: None,
            drain: Duration::from_secs(30),
            mirror_every: Duration::from_millis(500),
        }
    }
}

/// Makes the id of an event, by which it is known wherever in the log it is. An event without one is never absorbed.
#[derive(Clone)]
pub struct Identify(Arc<IdOf>);

type IdOf = dyn Fn(&Event) -> Option<Vec<u8>> + Send + Sync;

impl Identify {
    /// By a function of the event alone.
    pub fn new(id_of: impl Fn(&Event) -> Option<Vec<u8>> + Send + Sync + 'static) -> Identify {
        Identify(Arc::new(id_of))
    }

    pub(super) fn id_of(&self, event: &Event) -> Option<Vec<u8>> {
        (self.0)(event)
    }
}

impl fmt::Debug for Identify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identify").finish_non_exhaustive()
    }
}

/// When outputs are written and the offset is saved. Never before an event is handled, whichever is chosen. Whatever the
/// policy, a save also happens at a stop, when a partition is given back, and when more waits than fits in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavePolicy {
    /// After each event.
    EveryEvent,
    /// After so many events, and when there is nothing to do.
    Events(NonZeroU64),
    /// When the oldest outcome not saved is this old, and when there is nothing to do.
    Every(Duration),
    /// At the stop.
    AtStop,
}

/// Which events are handled one after the other, where several may be handled at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Those of a partition.
    Partition,
    /// Those of a partition with the same key. Events without a key follow nobody.
    Key,
    /// None.
    None,
}

/// What happens when an event is not handled, and its attempts are used up.
///
/// An event that was skipped is never given to a handler again. One before which a run stopped is: with the next run its
/// attempts begin anew, since whoever started that wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFail {
    /// Save what is before it and stop; the event is shown. One attempt, unless more are asked for.
    Stop,
    /// The same, but without a limit of attempts, unless one is asked for.
    Retry,
    /// Pass it by, as a decision: kept by the sink where it keeps outcomes, and in the group's history.
    Skip,
    /// The same, and the whole event is kept as a dead letter, in one step with the offset behind it.
    Dead,
}

impl OnFail {
    /// The attempts where nothing else is asked for; `None` is without a limit.
    pub fn default_attempts(self) -> Option<NonZeroU32> {
        match self {
            OnFail::Stop => Some(NonZeroU32::MIN),
            OnFail::Retry => None,
            OnFail::Skip | OnFail::Dead => NonZeroU32::new(3),
        }
    }
}

/// How long to wait before an event is tried again: twice as long each time, up to a limit; a random part of the second
/// half of it is left out, so that many runners do not come back all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Before the first retry.
    pub first: Duration,
    /// At most.
    pub most: Duration,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { first: Duration::from_secs(1), most: Duration::from_secs(60) }
    }
}

/// What happens when offsets to be read are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnGap {
    /// Stop and name them.
    Stop,
    /// Go on with the first that can be read; the jump is saved as a decision.
    Earliest,
}

/// Where a group starts that has nothing saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnNoOffset {
    /// With everything that can be read.
    Earliest,
    /// With what comes from now on.
    Latest,
    /// Nowhere: stop.
    Stop,
}

/// Where a new group starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartFrom {
    /// The rule, as the user wrote it: `--from 2026-01-31T00:00:00Z`.
    pub rule: String,
    /// The first offset to read of each partition: topic, number, offset.
    pub at: Vec<(String, i32, Offset)>,
}

/// What happens when the sink keeps the offset, has none for a partition, and the group has one above the log start: either
/// the sink's state was lost, or the sink is new to a group that has worked before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLostState {
    /// Stop and name both.
    Refuse,
    /// Go on where the group says.
    FollowGroup,
}

/// What happens when the last event that the sink has passed is another one in the log than it was: the directory was brought
/// back from an older copy, and has taken other events under the same offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnOtherLog {
    /// Stop and name the offset.
    Refuse,
    /// Go on at the sink's offset, and have that in the group's history.
    Accept,
}

/// What time it is, for what is done from time to time.
pub trait Clock {
    /// Time since any fixed moment; never goes back.
    fn now(&self) -> Duration;

    /// Lets so much time pass.
    fn sleep(&self, length: Duration);
}

/// The time of this machine since it was made.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// Starts at zero.
    pub fn new() -> SystemClock {
        SystemClock(Instant::now())
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, length: Duration) {
        std::thread::sleep(length);
    }
}
