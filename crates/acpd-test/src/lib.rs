//! The scripted agent: a small ACP agent whose behaviour the prompt decides. The integration tests run it
//! as a program of its own, the daemon embeds it as the agent `demo`.

pub mod agent;
#[cfg(feature = "fuzz")]
pub mod fuzz;
#[cfg(all(feature = "harness", target_os = "linux"))]
pub mod harness;
pub mod hostile;
#[cfg(feature = "sim")]
pub mod sim;
