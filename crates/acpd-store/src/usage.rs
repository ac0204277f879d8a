//! Sums of tokens and cost.

use std::collections::BTreeMap;

use acpd_api::{Amount, Cost, Tokens, UsageBy, UsageParams, UsageTotal};
use rusqlite::Row;

use crate::code::number;
use crate::error::StoreError;
use crate::reader::Reader;

impl Reader {
    /// The totals since a time, ordered by key.
    pub fn usage(&mut self, asked: UsageParams) -> Result<Vec<UsageTotal>, StoreError> {
        let key = match asked.by {
            UsageBy::Agent => "agent, NULL, NULL, NULL",
            UsageBy::Session => "agent, session, NULL, NULL",
            UsageBy::Workspace => "NULL, NULL, cwd, NULL",
            UsageBy::Day => "NULL, NULL, NULL, day",
        };
        // `total` instead of `sum`: no figure of an agent overflows it.
        let sql = format!(
            "SELECT {key}, count(turn), count(turn) FILTER (WHERE parts IS NULL AND \
             coalesce(total, input, output, thought, cached_read, cached_write) IS NULL), \
             count(total), total(total), count(input), total(input), count(output), total(output), \
             count(thought), total(thought), count(cached_read), total(cached_read), \
             count(cached_write), total(cached_write), currency, total(parts) \
             FROM usage WHERE place >= ?1 << 10 AND at >= ?1 GROUP BY 1, 2, 3, 4, currency"
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let since = i64::try_from(asked.since).unwrap_or(i64::MAX);
        let mut rows = statement.query([since])?;
        let mut totals: BTreeMap<_, UsageTotal> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let key: (Option<String>, Option<String>, Option<String>, Option<i64>) =
                (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            let total = totals.entry(key.clone()).or_insert_with(|| {
                let (agent, session, cwd, day) = key;
                UsageTotal {
                    agent: agent.map(Into::into),
                    session_id: session.map(Into::into),
                    cwd: cwd.map(Into::into),
                    day: day.map(|day| day as u64),
                    ..UsageTotal::default()
                }
            });
            add(total, row)?;
        }
        Ok(totals.into_values().collect())
    }
}

/// Adds the usage in one currency, or in none.
fn add(total: &mut UsageTotal, row: &Row<'_>) -> Result<(), StoreError> {
    total.turns += number(row, 4)?;
    total.untold += number(row, 5)?;
    let Tokens { total: all, input, output, thought, cached_read, cached_write } =
        &mut total.tokens;
    let members = [all, input, output, thought, cached_read, cached_write];
    for (member, column) in members.into_iter().zip((6..).step_by(2)) {
        if number(row, column)? > 0 {
            let so_far = member.get_or_insert_default();
            *so_far = so_far.saturating_add(row.get::<_, f64>(column + 1)? as u64);
        }
    }
    if let Some(currency) = row.get::<_, Option<String>>(18)? {
        let amount = Amount::from_parts(row.get::<_, f64>(19)? as u64);
        total.costs.push(Cost { amount, currency: currency.into() });
    }
    Ok(())
}
