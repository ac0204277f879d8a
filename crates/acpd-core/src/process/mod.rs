pub(crate) mod outbox;
