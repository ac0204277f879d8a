pub(crate) mod replay;
