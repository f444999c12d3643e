//! What machines that watch a process ask: is it alive, is it ready, its numbers.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// Prometheus asks for this form with its name; older parsers read it as well.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `/healthz`, `/readyz` and `/metrics`. `ready` says why it is not; both are called for each request, on a thread that may wait.
pub fn probes(
    ready: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    metrics: impl Fn() -> String + Send + Sync + 'static,
) -> Router {
    let (ready, metrics) = (Arc::new(ready), Arc::new(metrics));
    let readyz = move || {
        let ready = ready.clone();
        blocking(move || match ready() {
            Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
            Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        })
    };
    let scrape = move || {
        let metrics = metrics.clone();
        blocking(move || ([(CONTENT_TYPE, OPEN_METRICS)], metrics()))
    };
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(scrape))
}

/// Runs what reads files or waits, off the runtime's own threads.
pub async fn blocking<T: IntoResponse + Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Response {
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer.into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "this could not be answered\n").into_response(),
    }
}
