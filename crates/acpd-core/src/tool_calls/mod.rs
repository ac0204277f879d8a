//! What is known of agents' tool calls: the merged call ([`call`]), the call that a question fixed
//! ([`frozen`]) and the files that calls changed ([`changed_files`]). Nothing here touches state; sessions and
//! questions keep these values.

pub(crate) mod call;
pub(crate) mod changed_files;
pub(crate) mod frozen;
