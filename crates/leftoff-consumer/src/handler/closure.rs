//! A handler that is a Rust closure.

use super::{Answer, Delivery, Handler, HandlerError};

/// Handles each event by calling a closure. A panic in it is not caught: it ends the runner, with nothing saved past the
/// event.
#[derive(Debug)]
pub struct Closure<F>(F);

impl<F: FnMut(&Delivery<'_>) -> Answer> Closure<F> {
    /// Calls `handle` for each event.
    pub fn new(handle: F) -> Closure<F> {
        Closure(handle)
    }
}

impl<F: FnMut(&Delivery<'_>) -> Answer> Handler for Closure<F> {
    fn handle(&mut self, delivery: &Delivery<'_>) -> Result<Answer, HandlerError> {
        Ok((self.0)(delivery))
    }
}
