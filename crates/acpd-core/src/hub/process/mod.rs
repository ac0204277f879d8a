mod from_agents;
mod processes;
mod usable;
mod waiting;
