//! What a run may hold, whatever its events and its handler are.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use super::*;
use crate::handler::Delivery;

const MIB: usize = 1 << 20;

/// Takes whatever it is given, and answers only when it gets no more.
#[derive(Default)]
struct Greedy {
    has: VecDeque<(u64, usize)>,
    most_bytes: usize,
    most_events: usize,
}

impl Handler for Greedy {
    fn handle(&mut self, _: &Delivery<'_>) -> Result<Answer, HandlerError> {
        unreachable!("it has a depth")
    }

    fn depth(&self) -> usize {
        100
    }

    fn give(&mut self, token: u64, delivery: &Delivery<'_>) -> Result<(), HandlerError> {
        self.has.push_back((token, delivery.event.value.as_ref().map_or(0, Vec::len)));
        self.most_bytes = self.most_bytes.max(self.has.iter().map(|(_, bytes)| bytes).sum());
        self.most_events = self.most_events.max(self.has.len());
        Ok(())
    }

    fn take(&mut self, _: Duration) -> Result<Option<(u64, Answer)>, HandlerError> {
        Ok(self.has.pop_front().map(|(token, _)| (token, Answer::Filtered)))
    }
}

/// A pipeline counts events; without a bound in bytes, large ones would fill the memory twice over, here and on their way to
/// the handler's process.
#[test]
fn large_events_do_not_fill_a_pipeline_to_its_depth() {
    for (bytes, count, least_events, most_bytes) in
        [(12 * MIB, 6, 1, 48 * MIB), (40 * MIB, 3, 1, 40 * MIB), (10, 300, 2, 1_000)]
    {
        let large = |offset| Event { value: Some(vec![7; bytes]), ..event(offset) };
        let batch = SourceEvent::Batch {
            id: id(0),
            ownership: 1,
            events: (0..count).map(large).collect(),
            next: at(count),
            end: at(count),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let clock = Rc::new(StepClock { now: Cell::default(), step: Duration::ZERO });
        let mut source = ScriptSource {
            script: [assigned(0, Some(0), 0, count), batch].into(),
            stop: stop.clone(),
            clock: clock.clone(),
            idle_polls: 1_000,
            ..ScriptSource::default()
        };
        let mut handler = Greedy::default();
        let mut sink = MemSink::default();
        let options = RunOptions {
            until_end: true,
            save: SavePolicy::Events(NonZeroU64::new(1_000).unwrap()),
            ..RunOptions::default()
        };
        let report = Runner::new(Parts {
            source: &mut source,
            handlers: Handlers::Crew(vec![&mut handler]),
            sink: &mut sink,
            progress: &mut NoProgress,
            clock: clock.as_ref(),
            stop: &stop,
            options: &options,
        })
        .run()
        .unwrap();
        assert_eq!(report.handled, count as u64);
        assert!(handler.most_bytes <= most_bytes, "{bytes}: {} at a time", handler.most_bytes);
        assert!(handler.most_events >= least_events, "{bytes}: {} events at a time", handler.most_events);
    }
}
