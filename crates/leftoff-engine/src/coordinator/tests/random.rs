//! Random scripts against a model so simple that it is right.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::world::{World, topic_partition};

#[derive(Clone, Copy, Debug)]
enum Step {
    Join { member: u8, group: u8 },
    Leave { member: u8, group: u8 },
    Commit { member: Option<u8>, group: u8, partition: u8, next: u8 },
    Reset { group: u8, partition: u8, next: u8 },
    Delete { group: u8, partition: u8 },
    DeleteGroup { group: u8 },
    Carry,
    Roll,
}

fn step() -> impl Strategy<Value = Step> {
    let (member, group, partition, next) = (0..2u8, 0..2u8, 0..2u8, 0..12u8);
    prop_oneof![
        2 => (member.clone(), group.clone()).prop_map(|(member, group)| Step::Join { member, group }),
        2 => (member.clone(), group.clone()).prop_map(|(member, group)| Step::Leave { member, group }),
        6 => (proptest::option::weighted(0.7, member), group.clone(), partition.clone(), next.clone())
            .prop_map(|(member, group, partition, next)| Step::Commit { member, group, partition, next }),
        1 => (group.clone(), partition.clone(), next)
            .prop_map(|(group, partition, next)| Step::Reset { group, partition, next }),
        1 => (group.clone(), partition).prop_map(|(group, partition)| Step::Delete { group, partition }),
        1 => group.prop_map(|group| Step::DeleteGroup { group }),
        1 => Just(Step::Carry),
        1 => Just(Step::Roll),
    ]
}

impl Step {
    fn command(self) -> String {
        match self {
            Step::Join { member, group } => format!("join m{member} g{group}"),
            Step::Leave { member, group } => format!("leave m{member} g{group}"),
            Step::Commit { member, group, partition, next } => {
                let member = member.map_or("-".to_owned(), |member| format!("m{member}"));
                format!("commit {member} g{group} t/{partition}={next}")
            }
            Step::Reset { group, partition, next } => format!("reset - g{group} t/{partition}={next}"),
            Step::Delete { group, partition } => format!("delete g{group} t/{partition}"),
            Step::DeleteGroup { group } => format!("delete g{group}"),
            Step::Carry => "carry 1000".to_owned(),
            Step::Roll => "roll".to_owned(),
        }
    }
}

/// Every value that a key had since the log start, in order; who holds each group, by which join.
#[derive(Default)]
struct Model {
    values: BTreeMap<(u8, u8), Vec<Option<i64>>>,
    holder: BTreeMap<u8, (u8, i32)>,
    joins: BTreeMap<(u8, u8), i32>,
    generation: BTreeMap<u8, i32>,
    deleted: BTreeSet<u8>,
}

impl Model {
    fn apply(&mut self, step: Step) {
        match step {
            Step::Join { member, group } => {
                let generation = self.generation.entry(group).or_default();
                *generation += 1;
                self.deleted.remove(&group);
                self.holder.insert(group, (member, *generation));
                self.joins.insert((member, group), *generation);
            }
            Step::Leave { member, group } => {
                if self.holds(member, group) {
                    self.holder.remove(&group);
                }
            }
            Step::Commit { member: Some(member), group, partition, next } => {
                if self.holds(member, group) {
                    self.put(group, partition, Some(next.into()));
                }
            }
            Step::Commit { member: None, group, partition, next }
            | Step::Reset { group, partition, next } => {
                if !self.holder.contains_key(&group) {
                    self.put(group, partition, Some(next.into()));
                }
            }
            Step::Delete { group, partition } => self.delete(group, partition),
            Step::DeleteGroup { group } => {
                (0..2).for_each(|partition| self.delete(group, partition));
                if !self.holder.contains_key(&group) {
                    self.deleted.insert(group);
                }
            }
            Step::Carry => {
                for values in self.values.values_mut() {
                    values.extend(values.last().copied().filter(Option::is_some));
                }
            }
            Step::Roll => {
                self.values.retain(|_, values| {
                    values.drain(..values.len() - 1);
                    values[0].is_some()
                });
                for group in std::mem::take(&mut self.deleted) {
                    self.generation.remove(&group);
                }
            }
        }
    }

    fn holds(&self, member: u8, group: u8) -> bool {
        let joined = self.joins.get(&(member, group));
        self.holder.get(&group).is_some_and(|(who, when)| *who == member && Some(when) == joined)
    }

    fn committed(&self, group: u8, partition: u8) -> Option<i64> {
        self.values.get(&(group, partition)).and_then(|values| *values.last()?)
    }

    fn put(&mut self, group: u8, partition: u8, value: Option<i64>) {
        self.values.entry((group, partition)).or_default().push(value);
    }

    fn delete(&mut self, group: u8, partition: u8) {
        if !self.holder.contains_key(&group) && self.committed(group, partition).is_some() {
            self.put(group, partition, None);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_random_script_does_what_the_model_does(steps in proptest::collection::vec(step(), 1..60)) {
        let mut world = World::default();
        world.run("topic t 1 2 0..10");
        let mut model = Model::default();
        for step in steps {
            let before = world.live.clone();
            let records = world.log.len();
            world.run(&step.command());
            model.apply(step);
            if let Step::Commit { member: Some(member), group, .. } = step
                && !model.holds(member, group)
            {
                prop_assert_eq!((&world.live, world.log.len()), (&before, records), "a fenced commit changed something");
            }
            for group in 0..2 {
                let name = format!("g{group}");
                let known = world.live.known_group(&name);
                let generation = known.map_or(0, |group| group.generation());
                prop_assert_eq!(generation, model.generation.get(&group).copied().unwrap_or(0));
                for partition in 0..2 {
                    let committed = known
                        .and_then(|group| group.entry_by_name("t", partition.into()))
                        .map(|entry| entry.committed.next().get());
                    prop_assert_eq!(committed, model.committed(group, partition));
                }
            }
        }
        prop_assert_eq!(&world.live, &world.rebuilt());
        for ((group, partition), values) in &model.values {
            let walked = world.moves(&format!("g{group}"), &topic_partition(&format!("t/{partition}")));
            let mut found: Vec<_> =
                walked.moves.iter().map(|found| found.new.map(|new| new.next().get())).collect();
            found.reverse();
            prop_assert_eq!(&found, values);
            for pair in walked.moves.windows(2) {
                prop_assert_eq!(pair[0].old, pair[1].new);
            }
        }
    }

    /// A record with any byte changed is taken or refused; it never panics, and a refusal changes nothing.
    #[test]
    fn damaged_records_never_panic(
        place in 0..6usize,
        part in 0..3usize,
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut world = World::default();
        for command in
            ["topic t 1 2 0..10", "join m0 g", "commit m0 g t/0=1", "commit m0 g t/0=0", "progress f 9", "leave m0 g", "delete g"]
        {
            world.run(command);
        }
        let (at, (_, mut record)) = world.log.pop_last().unwrap();
        if let Some((_, other)) = world.log.values().nth(place) {
            record = other.clone();
        }
        let bytes = match part {
            0 => &mut record.key,
            1 => record.value.get_or_insert_default(),
            _ => &mut record.headers[place % 2].1,
        };
        for (index, byte) in damage {
            if !bytes.is_empty() {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
        }
        let mut rebuilt = world.rebuilt();
        let before = rebuilt.clone();
        if rebuilt.replay_record(at, &record).is_err() {
            prop_assert_eq!(rebuilt, before);
        }
    }
}
