//! `leftoff topics …`

use clap::{Args, Subcommand};

use super::value::{Retention, Setting, parsed, partition, partition_count, topic_name, value};
use crate::cli::offset_spec::{OFFSET_FORMS, Point};

/// What to do with topics.
#[derive(Clone, Debug, Subcommand)]
pub enum TopicsCommand {
    /// Create topics
    Create(CreateArgs),
    /// List the topics
    Ls,
    /// Show the partitions and settings of topics
    Describe(DescribeArgs),
    /// Change the settings of a topic, or give it more partitions
    Alter(AlterArgs),
    /// Delete topics and their events
    Delete(DeleteArgs),
    /// Delete the events before an offset
    Trim(TrimArgs),
}

/// `leftoff topics create`
#[derive(Args, Clone, Debug)]
pub struct CreateArgs {
    /// Names: letters a-z, A-Z, 0-9, '.', '_', '-'; at most 249
    #[arg(required = true, value_name = "TOPIC", value_parser = parsed(topic_name))]
    pub topics: Vec<String>,
    /// Number of partitions: events of one key stay in order within one of them
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = parsed(partition_count))]
    pub partitions: i32,
    /// Setting under Kafka's name, as key=value; may be repeated (-c retention.bytes=1073741824)
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE", value_parser = value::<Setting>())]
    pub settings: Vec<Setting>,
    /// How long events are kept: forever, or a duration such as 12h, 7d, P7D [default: forever]
    #[arg(long, value_name = "DURATION", value_parser = value::<Retention>())]
    pub retention: Option<Retention>,
    /// Be content with a topic that exists already, whatever its settings
    #[arg(long)]
    pub if_not_exists: bool,
}

/// `leftoff topics describe`
#[derive(Args, Clone, Debug)]
pub struct DescribeArgs {
    /// Which topics
    #[arg(required = true, value_name = "TOPIC", value_parser = parsed(topic_name))]
    pub topics: Vec<String>,
}

/// `leftoff topics alter`
#[derive(Args, Clone, Debug)]
pub struct AlterArgs {
    /// Which topic
    #[arg(value_parser = parsed(topic_name))]
    pub topic: String,
    /// New number of partitions, more than before; keys then map to other partitions
    #[arg(short, long, value_name = "N", value_parser = parsed(partition_count))]
    #[arg(required_unless_present_any = ["settings", "retention"])]
    pub partitions: Option<i32>,
    /// Setting under Kafka's name, as key=value, or key= for its default; may be repeated
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE", value_parser = value::<Setting>())]
    pub settings: Vec<Setting>,
    /// How long events are kept: forever, or a duration such as 12h, 7d, P7D
    #[arg(long, value_name = "DURATION", value_parser = value::<Retention>())]
    pub retention: Option<Retention>,
}

/// `leftoff topics delete`
#[derive(Args, Clone, Debug)]
pub struct DeleteArgs {
    /// Which topics
    #[arg(required = true, value_name = "TOPIC", value_parser = parsed(topic_name))]
    pub topics: Vec<String>,
    /// Do not ask; needed where stdin is no terminal
    #[arg(long)]
    pub noconfirm: bool,
}

/// `leftoff topics trim`
#[derive(Args, Clone, Debug)]
pub struct TrimArgs {
    /// Which topic
    #[arg(value_parser = parsed(topic_name))]
    pub topic: String,
    /// First event to keep: N, end, -N or @TIME (more with --help)
    #[arg(short, long = "offset", value_name = "OFFSET", allow_hyphen_values = true, value_parser = value::<Point>())]
    #[arg(long_help = format!("First event to keep:\n{OFFSET_FORMS}\n\nA range is not read here."))]
    pub offset: Point,
    /// Partitions, as 0 or 0,2 [default: all]
    #[arg(short, long, value_name = "P", value_delimiter = ',', value_parser = parsed(partition))]
    pub partitions: Vec<i32>,
    /// Do not ask; needed where stdin is no terminal
    #[arg(long)]
    pub noconfirm: bool,
}
