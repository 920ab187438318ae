// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeCaching

@Suite struct CacheKeyTests {
    @Test func `equal texts make equal keys`() {
        let first = CacheKey("https://example.org/a.jpg")
        let second = CacheKey("https://example.org/" + "a.jpg")
        #expect(first == second)
        #expect(first.hashValue == second.hashValue)
        #expect(Set([first, second]).count == 1)
        #expect(first.description == "https://example.org/a.jpg")
    }

    @Test(arguments: [("a", "b"), ("", "a"), ("e\u{301}", "\u{e9}"), ("a", "a ")])
    func `texts of other bytes make other keys`(first: String, second: String) {
        #expect(CacheKey(first) != CacheKey(second))
        #expect(CacheKey(first).digest != CacheKey(second).digest)
    }

    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ])
    func `digest is the SHA256 of the text`(text: String, digest: String) {
        #expect(CacheKey(text).digest == digest)
    }

    @Test func `entry name is read back from its file name`() {
        let entry = EntryName(CacheKey("abc"))
        #expect(entry.path == "entries/ba/7816bf8f01cfea414140de")
        #expect(
            Array("7816bf8f01cfea414140de".utf8).withUnsafeBufferPointer { EntryName(shard: 0xba, fileName: $0) }
                == entry
        )
    }

    @Test(arguments: ["", "tmp", String(repeating: "A", count: 22), String(repeating: "0", count: 21) + "g"])
    func `other file names are no entries`(name: String) {
        #expect(Array(name.utf8).withUnsafeBufferPointer { EntryName(shard: 1, fileName: $0) } == nil)
    }

    @Test(arguments: [
        ("a", "a", true), ("a\n>b", "a", true), ("a\n>b\n>c", "a", true), ("a\n>b\n>c", "a\n>b", true),
        ("a\n>c", "a\n>b", true), ("ab", "a", false), ("a\n|b", "a", false), ("a\nb\n>c", "a\nb", true),
        ("a\nb\n>c", "a", false), ("a\n>", "a", true), ("", "a", false), ("\n>b", "", true),
    ])
    func `keys that are derived from one key are of one family`(key: String, other: String, isOfFamily: Bool) {
        #expect(CacheKey(key).isOfFamily(of: CacheKey(other)) == isOfFamily)
        #expect(CacheKey(other).isOfFamily(of: CacheKey(key)) == isOfFamily)
    }

    @Test(arguments: [
        ("a", "a"), ("", ""), ("a\n>b", "a"), ("a\n>b\n>c", "a"), ("a\nb\n>c", "a\nb"), ("a\n|b", "a\n|b"),
        ("a>b\n", "a>b\n"), ("a\n", "a\n"), ("a\0b\n>c", "a\0b"), ("\n>", ""), ("\n\n>b", "\n"),
        ("\u{e9}\n>b", "\u{e9}"), (">a", ">a"),
    ])
    func `root of a key is the text before its first derivation`(text: String, root: String) {
        let key = CacheKey(text)
        #expect(key.root == CacheKey(root))
        #expect(key.isDerived == (text != root))
    }

    @Test(arguments: ["", "a", "https://example.org/a\nheader: value"])
    func `derived keys have entry names of one family, and of their own`(text: String) {
        let key = CacheKey(text)
        let names = [key.entryName] + (0..<100).map { key.derived("\($0)").entryName }
        #expect(Set(names).count == names.count)
        for name in names {
            #expect(name.isOfFamily(of: key.entryName))
            #expect(!name.isOfFamily(of: CacheKey(text + "b").entryName))
        }
        #expect(key.derived("1").derived("2").entryName.isOfFamily(of: key.entryName))
        #expect(Set(names.map(\.shard)).count > 50)
    }
}
