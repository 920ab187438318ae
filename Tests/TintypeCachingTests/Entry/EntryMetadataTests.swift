// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeHTTP
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.computing) struct EntryMetadataTests {
    @Test(arguments: [
        EntryMetadata(),
        EntryMetadata.sample,
        EntryMetadata(formatName: "", byteCount: -1, extra: ["": "a"]),
        EntryMetadata(responseDate: .distantPast, byteCount: .max, expiry: .distantFuture),
        EntryMetadata(response: .sample, bodyDigest: .max),
        EntryMetadata(animation: .init(frameCount: 3, loopCount: 0, milliseconds: .max), extra: ["a": "b"]),
        EntryMetadata(bodyDigest: 1, damage: [.missingData, .lostRestarts], extra: ["a": "b"]),
        EntryMetadata(
            response: ResponseRecord(
                status: 0,
                fields: [:],
                requestDate: .distantPast,
                responseDate: .distantFuture,
                selectionDigest: nil,
                freshness: Freshness(birth: .distantPast)
            )
        ),
    ])
    func `comes back from its stored form`(metadata: EntryMetadata) {
        #expect(Self.decoded(metadata.encoded()) == metadata)
    }

    @Test func `stored form does not depend on the order of extras`() {
        let names = (0..<100).map { "name \($0)" }
        let first = EntryMetadata(extra: Dictionary(uniqueKeysWithValues: names.map { ($0, "v") }))
        let second = EntryMetadata(extra: Dictionary(uniqueKeysWithValues: names.reversed().map { ($0, "v") }))
        #expect(first.encoded() == second.encoded())
    }

    /// Existing entries must stay readable, so a change of the format must change the version.
    @Test func `stored form is stable`() {
        let metadata = EntryMetadata(formatName: "png", byteCount: 258, extra: ["a": "b"])
        let expected: [UInt8] = [
            1, 1, 3, 0, 0, 0, 0x70, 0x6E, 0x67, 7, 8, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0,
            9, 6, 0, 0, 0, 1, 0, 0, 0, 0x61, 0x62,
        ]
        #expect(metadata.encoded() == expected)
    }

    @Test func `the stored form of an animation is stable`() {
        let metadata = EntryMetadata(animation: .init(frameCount: 3, loopCount: 258, milliseconds: 1_000))
        let expected: [UInt8] = [
            1, 12, 24, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0xE8, 3, 0, 0, 0, 0, 0, 0,
        ]
        #expect(metadata.encoded() == expected)
    }

    @Test func `the stored form of damage is stable`() {
        #expect(EntryMetadata(damage: [.missingData, .lostRestarts]).encoded() == [1, 13, 1, 0, 0, 0, 6])
    }

    @Test func `fields of a later writer are skipped`() {
        let bytes: [UInt8] = [1, 200, 2, 0, 0, 0, 9, 9] + EntryMetadata(formatName: "png").encoded().dropFirst()
        #expect(Self.decoded(bytes) == EntryMetadata(formatName: "png"))
    }

    @Test(
        arguments: [
            [], [0], [2], [1, 1], [1, 1, 0, 0, 0], [1, 1, 255, 255, 255, 255], [1, 1, 1, 0, 0, 0, 0xFF],
            [1, 6, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xF0, 0x7F], [1, 7, 1, 0, 0, 0, 1], [1, 9, 4, 0, 0, 0, 1, 0, 0, 0],
            [1, 12, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
        ] as [[UInt8]]
    )
    func `what no writer makes is refused`(bytes: [UInt8]) {
        #expect(Self.decoded(bytes) == nil)
    }

    @Test func `the stored form of a response is stable`() {
        let record = ResponseRecord(
            status: 200,
            fields: ["A": "bc"],
            requestDate: Date(timeIntervalSinceReferenceDate: 0),
            responseDate: Date(timeIntervalSinceReferenceDate: 0),
            selectionDigest: "d",
            freshness: Freshness(birth: Date(timeIntervalSinceReferenceDate: 0), lifetime: 1, flags: .noCache)
        )
        let zeros = [UInt8](repeating: 0, count: 24)
        let expected: [UInt8] =
            [1, 10, 62, 0, 0, 0, 200, 0] + zeros + [0, 0, 0, 0, 0, 0, 0xF0, 0x3F] + zeros.dropLast(8)
            + [1, 1, 0x64, 1, 0, 0x41, 2, 0, 0, 0, 0x62, 0x63, 11, 8, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]
        #expect(EntryMetadata(response: record, bodyDigest: 7).encoded() == expected)
    }

    @Test(arguments: [1e300, -1e300, 1e12, -1e12])
    func `a date that no program can count in seconds is refused, and is not written`(seconds: Double) {
        let date = Date(timeIntervalSinceReferenceDate: seconds)
        let record = ResponseRecord(
            status: 200,
            fields: [:],
            requestDate: Date(timeIntervalSinceReferenceDate: 0),
            responseDate: Date(timeIntervalSinceReferenceDate: 0),
            selectionDigest: nil,
            freshness: Freshness(birth: date, lifetime: 1)
        )
        #expect(Self.decoded(EntryMetadata(response: record).encoded()) == nil)
        #expect(Self.decoded(EntryMetadata(expiry: date).encoded()) == EntryMetadata())
    }

    @Test func `a response that no writer makes is refused`() {
        let encoded = EntryMetadata(response: .sample).encoded()
        // Try every prefix of the field with the matching length.
        for count in 0..<(encoded.count - 6) {
            let field = [UInt8](encoded[6..<(6 + count)])
            let length = withUnsafeBytes(of: UInt32(count).littleEndian) { [UInt8]($0) }
            guard let decoded = Self.decoded([1, 10] + length + field) else { continue }
            // A prefix that ends between two fields is valid, but has fewer fields.
            #expect(decoded.response.map { $0.fields.count < ResponseRecord.sample.fields.count } ?? false)
        }
    }

    @Test func `garbage never traps`() {
        var random = SeededGenerator(seed: 7)
        var sample = EntryMetadata.sample
        sample.response = .sample
        sample.bodyDigest = 1
        let encoded = sample.encoded()
        for _ in 0..<20_000 {
            var bytes = encoded
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
