// SPDX-License-Identifier: Apache-2.0

import TintypeTestSupport

/// ICC profiles (ICC.1:2022) that cost more than their use.
enum ProfileFiles {
    static let genes: [Gene] = [
        .linear("profileKind", 0...3), .logarithmic("profileBytes", 0...1_000_000),
        .logarithmic("profileTags", 0...200),
    ]

    /// Nothing (0), noise (1), a matrix with long curves (2), or a table of colours (3).
    static func profile(_ recipe: Recipe, limit: Int) -> [UInt8] {
        let size = min(recipe["profileBytes"], limit)
        var random = recipe.random
        switch recipe["profileKind"] {
        case 1:
            var noise = ByteWriter()
            noise.random(size, &random)
            return noise.bytes
        case 2: return self.matrix(curveEntries: max(2, size / 6), tags: recipe["profileTags"])
        case 3: return self.table(side: max(2, Int(Double(size / 6).squareRoot().squareRoot())), &random)
        default: return []
        }
    }

    private static func matrix(curveEntries: Int, tags: Int) -> [UInt8] {
        var xyz = ByteWriter()
        xyz.append("XYZ \0\0\0\0")
        for value in [0x6FA2, 0x38F5, 0x0390] { xyz.big(value, 4) }
        var curve = ByteWriter()
        curve.append("curv\0\0\0\0")
        curve.big(curveEntries, 4)
        for index in 0..<curveEntries { curve.big(index * 65_535 / max(1, curveEntries - 1), 2) }
        if curveEntries % 2 == 1 { curve.big(0, 2) }
        // All curves in one place, as profiles may share them.
        var entries: [(String, Int)] = [("rXYZ", 0), ("gXYZ", 0), ("bXYZ", 0), ("wtpt", 0)]
        entries += [("rTRC", 1), ("gTRC", 1), ("bTRC", 1)]
        for index in 0..<tags { entries.append(("t" + String(1_000 + index).suffix(3), index % 2)) }
        return self.profile(space: "RGB ", connection: "XYZ ", entries, [xyz.bytes, curve.bytes])
    }

    private static func table(side: Int, _ random: inout SeededGenerator) -> [UInt8] {
        let side = min(side, 60)
        var table = ByteWriter()
        table.append("mft2\0\0\0\0")
        table.append([3, 3, UInt8(side), 0])
        for index in 0..<9 { table.big(index % 4 == 0 ? 0x10000 : 0, 4) }
        table.big(2, 2)
        table.big(2, 2)
        for _ in 0..<3 { table.big(0x0000_FFFF, 4) }
        table.random(side * side * side * 6, &random)
        for _ in 0..<3 { table.big(0x0000_FFFF, 4) }
        return self.profile(space: "RGB ", connection: "Lab ", [("A2B0", 0)], [table.bytes])
    }

    private static func profile(
        space: StaticString,
        connection: StaticString,
        _ entries: [(name: String, block: Int)],
        _ blocks: [[UInt8]]
    ) -> [UInt8] {
        let start = 132 + 12 * entries.count
        let offsets = blocks.indices.map { start + blocks[..<$0].reduce(0) { $0 + $1.count } }
        var profile = ByteWriter()
        profile.big(start + blocks.reduce(0) { $0 + $1.count }, 4)
        profile.big(0, 4)
        profile.big(0x0210_0000, 4)
        profile.append("mntr")
        profile.append(space)
        profile.append(connection)
        profile.append(repeating: 0, count: 12)
        profile.append("acsp")
        profile.append(repeating: 0, count: 28)
        for value in [0xF6D6, 0x10000, 0xD32D] { profile.big(value, 4) }
        profile.append(repeating: 0, count: 48)
        profile.big(entries.count, 4)
        for entry in entries {
            profile.append(entry.name.utf8)
            profile.big(offsets[entry.block], 4)
            profile.big(blocks[entry.block].count, 4)
        }
        for block in blocks { profile.append(block) }
        return profile.bytes
    }
}
