extension CatalogueRegion {
    /// What a look-up without a lock found.
    enum Finding {
        /// The entry, the slot where it was, and the slot's second word then.
        case found(CatalogueRecord, slot: Int, word: UInt64)
        /// There is none.
        case absent
        /// Slots were being moved, or one is damaged: only the folder knows.
        case unknown
    }

    /// Looks for `name`, from any thread, without a lock.
    func find(_ name: EntryName) -> Finding {
        let sequence = self[.sequence]
        var slot = self.home(of: name)
        for _ in 0..<self.slotCount {
            let first = self.loadSlot(slot, word: 0)
            if first == 0 {
                // Whoever moves slots makes the sequence odd before, and raises it after.
                return sequence.isMultiple(of: 2) && self[.sequence] == sequence ? .absent : .unknown
            }
            if first == name.high {
                let (second, third) = (self.loadSlot(slot, word: 1), self.loadSlot(slot, word: 2))
                if CatalogueRecord.matches(name, second, third) {
                    // Read while somebody changed it, or damaged.
                    guard let record = CatalogueRecord((first, second, third, self.loadSlot(slot, word: 3))) else {
                        return .unknown
                    }
                    return .found(record, slot: slot, word: second)
                }
            }
            slot = slot + 1 == self.slotCount ? 0 : slot + 1
        }
        return .unknown
    }

    /// Calls `body` with every entry, from any thread, without a lock; says how many slots are
    /// damaged or were being changed.
    ///
    /// An entry that is moved meanwhile may come twice or not at all.
    func forEachRecord(in slots: Range<Int>? = nil, _ body: (CatalogueRecord) -> Void) -> Int {
        var damaged = 0
        for slot in slots ?? 0..<self.slotCount {
            let words = self.loadSlot(slot)
            guard words.0 != 0 else { continue }
            if let record = CatalogueRecord(words) { body(record) } else { damaged += 1 }
        }
        return damaged
    }
}
