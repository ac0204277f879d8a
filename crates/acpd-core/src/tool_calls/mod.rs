//! Tool calls of agents: the merged call ([`call`]), the call that a question froze ([`frozen`])
//! and changed files ([`changed_files`]). These are values; sessions and questions keep them.

pub(crate) mod call;
pub(crate) mod changed_files;
pub(crate) mod frozen;
