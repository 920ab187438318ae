// SPDX-License-Identifier: Apache-2.0

/// Searches in bytes; the standard library's generic searches are hundreds of times slower.
extension ArraySlice<UInt8> {
    /// Returns the texts between the separators; a single one if there is no separator.
    ///
    /// The separator is not empty.
    func texts(separatedBy separator: [UInt8]) -> [String] {
        var texts: [String] = []
        var rest = self
        while let end = rest.firstIndex(of: separator) {
            texts.append(String(decoding: rest[..<end], as: UTF8.self))
            rest = rest[(end + separator.count)...]
        }
        texts.append(String(decoding: rest, as: UTF8.self))
        return texts
    }

    /// Returns the position of the first separator, or `nil` if there is no separator.
    ///
    /// The separator is not empty.
    func firstIndex(of separator: [UInt8]) -> Int? {
        let first = separator[0]
        guard separator.count > 1 else { return self.firstIndex(of: first) }
        return self.indices.first { self[$0] == first && self[$0...].starts(with: separator) }
    }

    /// Whether a segment of a path is `.` or `..`; a backslash counts as a slash, because some servers take it for one.
    package var hasDotSegment: Bool {
        var dotCount = 0
        var hasOther = false
        for byte in self {
            switch byte {
            case UInt8(ascii: "/"), UInt8(ascii: "\\"):
                if 1...2 ~= dotCount, !hasOther { return true }
                (dotCount, hasOther) = (0, false)
            case UInt8(ascii: "."): dotCount += 1
            default: hasOther = true
            }
        }
        return 1...2 ~= dotCount && !hasOther
    }
}
