pub(crate) mod from_agents;
pub(crate) mod processes;
pub(crate) mod usable;
pub(crate) mod waiting;
