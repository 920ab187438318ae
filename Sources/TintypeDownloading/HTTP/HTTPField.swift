/// One header field.
struct HTTPField: Sendable {
    let name: String
    var value: String

    func isNamed(_ other: String) -> Bool {
        let mine = self.name.utf8
        let theirs = other.utf8
        guard mine.count == theirs.count else { return false }
        // Names are looked up many times for each response; this is much faster than two iterators.
        let isEqual = mine.withContiguousStorageIfAvailable { mine in
            theirs.withContiguousStorageIfAvailable { theirs in
                mine.indices.allSatisfy { Self.lowercased(mine[$0]) == Self.lowercased(theirs[$0]) }
            }
        }
        return (isEqual ?? nil) ?? zip(mine, theirs).allSatisfy { Self.lowercased($0) == Self.lowercased($1) }
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
    }
}

// MARK: - Hashable

extension HTTPField: Hashable {
    static func == (left: HTTPField, right: HTTPField) -> Bool {
        left.value == right.value && left.isNamed(right.name)
    }

    func hash(into hasher: inout Hasher) {
        for byte in self.name.utf8 { hasher.combine(Self.lowercased(byte)) }
        hasher.combine(self.value)
    }
}
