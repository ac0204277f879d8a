//! Numbers from a seed.

/// SplitMix64: small, seedable, good enough to choose with.
pub(crate) struct Rng(u64);

impl Rng {
    /// Of one round: rounds do not depend on each other.
    pub(crate) fn new(seed: u64, round: u64) -> Rng {
        let mut rng = Rng(seed ^ round.wrapping_mul(0xD1B5_4A32_D192_ED03));
        rng.next();
        rng
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}
