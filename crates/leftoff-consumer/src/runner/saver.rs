//! The saver: a thread that writes into the sink while events are handled. The sink goes there and comes back; whoever has it
//! may call it.

use std::sync::mpsc::{Sender, channel};
use std::thread::Scope;

use super::crew::News;
use crate::crash_point;
use crate::sink::{Move, Output, Sink, SinkError, Written};
use crate::source::{GroupSaver, Save, SourceError};

/// The sink, where it is here.
pub(super) struct SinkPlace<'a>(Option<&'a mut dyn Sink>);

impl<'a> SinkPlace<'a> {
    pub(super) fn new(sink: &'a mut dyn Sink) -> SinkPlace<'a> {
        SinkPlace(Some(sink))
    }

    pub(super) fn is_home(&self) -> bool {
        self.0.is_some()
    }

    /// Only while it is here.
    pub(super) fn home(&mut self) -> &mut dyn Sink {
        *self.0.as_mut().expect("it was looked whether the sink is here, or waited for")
    }

    fn give_away(&mut self) -> &'a mut dyn Sink {
        self.0.take().expect("it was looked whether the sink is here")
    }

    pub(super) fn is_back(&mut self, sink: &'a mut dyn Sink) {
        assert!(self.0.replace(sink).is_none(), "there is one sink");
    }
}

/// The way to the saver.
pub(super) struct Saver<'a> {
    writes: Sender<Write<'a>>,
    /// It can save the group's offsets, too.
    pub(super) saves_group: bool,
}

struct Write<'a> {
    sink: &'a mut dyn Sink,
    outputs: Vec<Output>,
    moves: Vec<Move>,
    saves: Option<Vec<Save>>,
}

/// What came of a write, and the sink.
pub(super) struct Saved<'a> {
    pub(super) sink: &'a mut dyn Sink,
    pub(super) moves: Vec<Move>,
    pub(super) written: Result<Written, SinkError>,
    /// What was asked of the group, and what came of it; `None` if nothing was, or the sink took nothing.
    pub(super) in_group: Option<(Vec<Save>, Result<(), SourceError>)>,
}

impl<'a> Saver<'a> {
    /// It lives until this is dropped.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, 'a>,
        mut group: Option<Box<dyn GroupSaver>>,
        news: Sender<News<'a>>,
    ) -> Saver<'a> {
        let saves_group = group.is_some();
        let (writes, work) = channel::<Write<'a>>();
        scope.spawn(move || {
            for Write { sink, outputs, moves, saves } in work {
                crash_point::pass("sink-before");
                let written = sink.write(&outputs, &moves);
                crash_point::pass("sink-after");
                // Never ahead of the sink.
                let is_written = matches!(written, Ok(Written::Written));
                let saves = saves.filter(|_| is_written).zip(group.as_mut());
                let in_group = saves.map(|(saves, group)| {
                    crash_point::pass("group-before");
                    let saved = group.save(&saves);
                    crash_point::pass("group-after");
                    (saves, saved)
                });
                // The runner listens for as long as its sink is away.
                let _nobody_listens = news.send(News::Saved(Saved { sink, moves, written, in_group }));
            }
        });
        Saver { writes, saves_group }
    }

    /// The sink is away until it comes back with [`News::Saved`]. `saves` follow once the sink has what is written.
    pub(super) fn write(
        &self,
        place: &mut SinkPlace<'a>,
        outputs: Vec<Output>,
        moves: Vec<Move>,
        saves: Option<Vec<Save>>,
    ) {
        let sink = place.give_away();
        let sent = self.writes.send(Write { sink, outputs, moves, saves });
        assert!(sent.is_ok(), "the saver lives as long as this does");
    }
}
