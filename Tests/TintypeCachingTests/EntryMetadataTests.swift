import FoundationEssentials
import Testing

@testable import TintypeCaching

@Suite struct EntryMetadataTests {
    @Test(arguments: [
        EntryMetadata(),
        EntryMetadata.sample,
        EntryMetadata(formatName: "", byteCount: -1, extra: ["": "a"]),
        EntryMetadata(responseDate: .distantPast, byteCount: .max, expiry: .distantFuture),
    ])
    func comesBackFromItsStoredForm(metadata: EntryMetadata) {
        #expect(Self.decoded(metadata.encoded()) == metadata)
    }

    @Test func storedFormDoesNotDependOnTheOrderOfExtras() {
        let names = (0..<100).map { "name \($0)" }
        let first = EntryMetadata(extra: Dictionary(uniqueKeysWithValues: names.map { ($0, "v") }))
        let second = EntryMetadata(extra: Dictionary(uniqueKeysWithValues: names.reversed().map { ($0, "v") }))
        #expect(first.encoded() == second.encoded())
    }

    /// Entries that are on disk must stay readable: whoever changes this changes the version.
    @Test func storedFormIsStable() {
        let metadata = EntryMetadata(formatName: "png", byteCount: 258, extra: ["a": "b"])
        let expected: [UInt8] = [
            1, 1, 3, 0, 0, 0, 0x70, 0x6E, 0x67, 7, 8, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0,
            9, 6, 0, 0, 0, 1, 0, 0, 0, 0x61, 0x62,
        ]
        #expect(metadata.encoded() == expected)
    }

    @Test func fieldsOfALaterWriterAreSkipped() {
        let bytes: [UInt8] = [1, 200, 2, 0, 0, 0, 9, 9] + EntryMetadata(formatName: "png").encoded().dropFirst()
        #expect(Self.decoded(bytes) == EntryMetadata(formatName: "png"))
    }

    @Test(
        arguments: [
            [], [0], [2], [1, 1], [1, 1, 0, 0, 0], [1, 1, 255, 255, 255, 255], [1, 1, 1, 0, 0, 0, 0xFF],
            [1, 6, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xF0, 0x7F], [1, 7, 1, 0, 0, 0, 1], [1, 9, 4, 0, 0, 0, 1, 0, 0, 0],
        ] as [[UInt8]]
    )
    func whatNoWriterMakesIsRefused(bytes: [UInt8]) {
        #expect(Self.decoded(bytes) == nil)
    }

    @Test func garbageNeverTraps() {
        var random = SplitMix(state: 7)
        let sample = EntryMetadata.sample.encoded()
        for _ in 0..<20_000 {
            var bytes = sample
            for _ in 0...(random.next() % 4) {
                bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
            }
            bytes.removeLast(Int(random.next() % 8))
            _ = Self.decoded(bytes)
        }
    }

    private static func decoded(_ bytes: [UInt8]) -> EntryMetadata? {
        bytes.withUnsafeBytes { EntryMetadata(encoded: $0) }
    }
}
