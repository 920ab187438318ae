import Testing

@testable import TintypeCaching

@Suite struct CacheKeyTests {
    @Test func equalTextsMakeEqualKeys() {
        let first = CacheKey("https://example.org/a.jpg")
        let second = CacheKey("https://example.org/" + "a.jpg")
        #expect(first == second)
        #expect(first.hashValue == second.hashValue)
        #expect(Set([first, second]).count == 1)
        #expect(first.description == "https://example.org/a.jpg")
    }

    @Test(arguments: [("a", "b"), ("", "a"), ("e\u{301}", "\u{e9}"), ("a", "a ")])
    func textsOfOtherBytesMakeOtherKeys(first: String, second: String) {
        #expect(CacheKey(first) != CacheKey(second))
        #expect(CacheKey(first).digest != CacheKey(second).digest)
    }

    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ])
    func digestIsTheSHA256OfTheText(text: String, digest: String) {
        #expect(CacheKey(text).digest == digest)
    }

    @Test func entryNameIsReadBackFromItsFileName() {
        let entry = EntryName(CacheKey("abc"))
        #expect(entry.path == "entries/ba/7816bf8f01cfea414140de")
        #expect(
            Array("7816bf8f01cfea414140de".utf8).withUnsafeBufferPointer { EntryName(shard: 0xba, fileName: $0) }
                == entry
        )
    }

    @Test(arguments: ["", "tmp", String(repeating: "A", count: 22), String(repeating: "0", count: 21) + "g"])
    func otherFileNamesAreNoEntries(name: String) {
        #expect(Array(name.utf8).withUnsafeBufferPointer { EntryName(shard: 1, fileName: $0) } == nil)
    }
}
