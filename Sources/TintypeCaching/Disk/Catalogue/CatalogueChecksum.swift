/// The small hash that guards the catalogue's words against accidents.
enum CatalogueChecksum {
    /// Mixes another word into a hash (the finaliser of SplitMix64).
    static func mix(_ hash: UInt64, _ word: UInt64) -> UInt64 {
        var value = hash &+ 0x9E37_79B9_7F4A_7C15 ^ word
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }

    /// Hashes words in their order.
    static func of(_ words: UInt64...) -> UInt64 {
        words.reduce(0x5449_4E54_5950_4531) { self.mix($0, $1) }
    }
}
