//! The text of a scrape in the making: numbers of one moment, in the form that Prometheus reads.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// Names and values of a series' labels.
pub type Labels = Vec<(&'static str, String)>;

/// The page.
pub struct Page(Registry);

/// Gauges of one name, each with its labels.
pub struct Gauges(Family<Labels, Gauge<f64, AtomicU64>>);

impl Page {
    /// With labels that every series has.
    pub fn new(labels: Labels) -> Page {
        let labels = labels.into_iter().map(|(name, value)| (name.into(), value.into()));
        Page(Registry::with_prefix_and_labels("leftoff", labels))
    }

    /// What only ever grows.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.0.register(name, help, ConstCounter::new(value));
    }

    /// Counters of one name.
    pub fn counters(&mut self, name: &str, help: &str, values: impl Iterator<Item = (Labels, u64)>) {
        let family = Family::<Labels, prometheus_client::metrics::counter::Counter>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).inc_by(value);
        }
        self.0.register(name, help, family);
    }

    /// Gauges of one name.
    pub fn gauges(&mut self, name: &str, help: &str, unit: Option<Unit>) -> Gauges {
        let family = Family::default();
        match unit {
            Some(unit) => self.0.register_with_unit(name, help, unit, family.clone()),
            None => self.0.register(name, help, family.clone()),
        }
        Gauges(family)
    }

    /// One gauge without labels.
    pub fn gauge(&mut self, name: &str, help: &str, unit: Option<Unit>, value: f64) {
        let gauge = Gauge::<f64, AtomicU64>::default();
        gauge.set(value);
        match unit {
            Some(unit) => self.0.register_with_unit(name, help, unit, gauge),
            None => self.0.register(name, help, gauge),
        }
    }

    /// For what is no number of one moment.
    pub fn registry(&mut self) -> &mut Registry {
        &mut self.0
    }

    /// As it is sent.
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.0).expect("text takes whatever is written");
        text
    }
}

impl Gauges {
    /// Sets one; what is not known has no series.
    pub fn set(&self, labels: &Labels, value: Option<f64>) {
        if let Some(value) = value {
            self.0.get_or_create(labels).set(value);
        }
    }
}
