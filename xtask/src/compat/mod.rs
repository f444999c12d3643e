//! x
/// x
pub fn command(_: &[&str]) -> anyhow::Result<std::process::ExitCode> {
    Ok(std::process::ExitCode::SUCCESS)
}
