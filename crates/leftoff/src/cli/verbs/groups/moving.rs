//! Moving a group: the plan first; then, when it is asked for, nobody else at work, the move, and a look whether it is there.

use std::time::Duration;

use leftoff::store::{HandlerLock, LockError, Store, StoreError};
use leftoff_engine::broker::{CommitSet, Position, Request, State};
use leftoff_engine::coordinator::{Commit, Group, Why};
use leftoff_engine::types::TopicPartition;

use super::person;
use super::plan::{Step, show};
use super::standing::{Holder, name};
use crate::cli::args::Global;
use crate::cli::failure::Failure;
use crate::cli::session::{check_ours, from_store, note, open_existing, open_view};
use crate::cli::verbs::authority::Authorities;

/// A lock that is only looked at by somebody is free again after this.
const WAIT_FOR_GROUP: Duration = Duration::from_millis(200);

/// A group that nobody works for, and its directory, open for writing.
#[derive(Debug)]
pub struct Quiet {
    /// The directory.
    pub store: Store,
    _lock: HandlerLock,
}

impl Quiet {
    /// Takes the group's lock, so that nobody starts to work for it, and lets a member go whose process is gone.
    ///
    /// # Errors
    /// Exit 4 if somebody works for the group.
    pub fn open(global: &Global, verb: &str, group: &str) -> Result<Quiet, Failure> {
        check_ours(global)?;
        let lock =
            HandlerLock::take(&global.data, group, verb, WAIT_FOR_GROUP).map_err(|error| match error {
                LockError::Held { holder, .. } => in_use(group, &holder),
                error @ LockError::Io { .. } => Failure::storage(error.to_string()).because(error),
            })?;
        let store = open_existing(global, verb)?;
        let quiet = Quiet { store, _lock: lock };
        quiet.let_the_dead_go(global, group)?;
        Ok(quiet)
    }

    fn let_the_dead_go(&self, global: &Global, group: &str) -> Result<(), Failure> {
        let member = self.store.with_state(|state| {
            let group = state.coordinator().known_group(group)?;
            Some((group.owner()?, name(group.members().first()?)))
        });
        let Some((ownership, name)) = member else { return Ok(()) };
        let request = Request::Leave { group: group.to_owned(), ownership };
        self.store.request(request).map_err(|error| from_store(self.store.root(), error))?;
        note(global, &format!("{name} is gone without having left group '{group}'; it was taken out of it"));
        Ok(())
    }

    /// A clean stop.
    pub fn close(self) -> Result<(), Failure> {
        let root = self.store.root().to_owned();
        self.store.close().map_err(|error| from_store(&root, error))
    }
}

fn in_use(group: &str, holder: &str) -> Failure {
    Failure::refused(format!("group '{group}' is in use by {holder}, which would not notice"))
        .hint("stop it first, then do this again")
}

/// A move, and the words that go into the history with it.
pub struct Moving<'a> {
    /// For the lock file: `groups reset`.
    pub verb: &'a str,
    /// Which group.
    pub group: &'a str,
    /// Reset, undo or import.
    pub why: Why,
    /// The reason, for the history.
    pub note: String,
    /// Whether it is done, rather than shown.
    pub execute: bool,
}

impl Moving<'_> {
    /// Makes the plan and shows it; with `execute` it is made anew with nobody else at work, shown, and carried out.
    pub fn go(
        &self,
        global: &Global,
        plan: impl Fn(&State, &Authorities) -> Result<Vec<Step>, Failure>,
    ) -> Result<(), Failure> {
        let planned = |state: &State| -> Result<Vec<Step>, Failure> {
            let known = state.coordinator().group(self.group).map(Authorities::of);
            plan(state, &known.transpose()?.unwrap_or_default())
        };
        if !self.execute {
            let view = open_view(global)?;
            show(global, &planned(view.state())?)?;
            self.tell_of_the_holder(global, view.state().coordinator().group(self.group))?;
            note(global, "nothing was moved; add --execute to do it");
            return Ok(());
        }
        let quiet = Quiet::open(global, self.verb, self.group)?;
        let mut steps = quiet.store.with_state(planned)?;
        show(global, &steps)?;
        steps.retain(|step| !step.is_unchanged());
        let failed = |error| from_store(&global.data, error);
        self.save(&quiet.store, &steps).map_err(failed)?;
        self.forget(&quiet.store, &steps).map_err(failed)?;
        self.read_back(&quiet.store, &steps)?;
        quiet.close()?;
        match steps.len() {
            0 => note(global, "nothing had to be moved"),
            1 => note(global, "moved 1 partition"),
            count => note(global, &format!("moved {count} partitions")),
        }
        Ok(())
    }

    fn tell_of_the_holder(&self, global: &Global, group: Option<&Group>) -> Result<(), Failure> {
        let Some(group) = group else {
            note(global, &format!("there is no group '{}' yet; this would make it", self.group));
            return Ok(());
        };
        if let Holder::Alive(name) = Holder::of(global, group)? {
            note(global, &format!("{name} works for the group; it has to stop before the move"));
        }
        Ok(())
    }

    fn save(&self, store: &Store, steps: &[Step]) -> Result<(), StoreError> {
        let offsets: Vec<_> = steps.iter().filter_map(Step::to_commit).collect();
        if offsets.is_empty() {
            return Ok(());
        }
        let commit = Commit {
            group: self.group.to_owned(),
            fence: None,
            offsets,
            who: person(),
            why: self.why,
            note: Some(self.note.clone()),
            strict: true,
        };
        let set = CommitSet { appends: Vec::new(), position: Position::Group(commit) };
        store.request(Request::CommitSet(set)).map(|_| ())
    }

    fn forget(&self, store: &Store, steps: &[Step]) -> Result<(), StoreError> {
        let forgotten = steps.iter().filter(|step| step.after.is_none());
        let partitions: Vec<_> = forgotten
            .map(|step| TopicPartition { topic: step.key.topic.clone(), partition: step.key.partition })
            .collect();
        if partitions.is_empty() {
            return Ok(());
        }
        let (group, note) = (self.group.to_owned(), Some(self.note.clone()));
        store.request(Request::DeleteOffsets { group, partitions, who: person(), note }).map(|_| ())
    }

    /// What was moved is looked at, not assumed.
    fn read_back(&self, store: &Store, steps: &[Step]) -> Result<(), Failure> {
        store.with_state(|state| {
            for step in steps {
                let now = state.coordinator().entry(self.group, &step.key).map(|entry| entry.committed);
                if now != step.after {
                    let text =
                        |offset: Option<_>| offset.map_or("no offset".to_owned(), |at| format!("{at}"));
                    let (key, wanted) = (&step.key, text(step.after));
                    let now = text(now);
                    return Err(Failure::storage(format!(
                        "{key} is at {now} after it was moved to {wanted}"
                    )));
                }
            }
            Ok(())
        })
    }
}
