// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

/// Files have no HTTP fields.
///
/// Their modification time and size tell their versions apart.
@Suite(.waiting, .timeLimit(.minutes(5))) struct FileFreshnessTests {
    private let fixture: LoaderFixture
    private let url: URL

    init() throws {
        self.fixture = try LoaderFixture()
        self.url = self.fixture.directory.url(of: "image.png")
        try self.write(width: 10)
    }

    private func write(width: Int) throws {
        try Data(makePNG(width: width)).write(to: self.url)
    }

    @Test(arguments: [CachePolicy.honorFreshness, .revalidate], [nil, Resize.stretch(width: 5, height: 3)])
    func `a file that is as it was is not read again, and one that has changed is`(
        policy: CachePolicy,
        thumbnail: Resize?
    ) async throws {
        let loader = self.fixture.makeLoader { $0.cachePolicy = policy }
        let request = ImageRequest(url: self.url, thumbnail: thumbnail)
        let first = try await loader.response(for: request)
        #expect(first.source == .file)
        let again = try await loader.response(for: request)
        #expect(again.source == .memory)
        #expect(again.revalidation == .notModified)
        #expect(self.fixture.decodes.count == 1)
        try self.write(width: 20)
        let changed = try await loader.response(for: request)
        #expect(changed.source == .file)
        #expect(changed.image.width == (thumbnail == nil ? 20 : 5))
        #expect(changed.metadata.bodyDigest != first.metadata.bodyDigest)
        #expect(self.fixture.decodes.count == 2)
    }

    @Test func `a file of the same size and time that took its place is seen, and the tag tells no inode`() async throws
    {
        let loader = self.fixture.makeLoader { $0.cachePolicy = .honorFreshness }
        let first = try await loader.response(for: ImageRequest(url: self.url))
        let old = try FileManager.default.attributesOfItem(atPath: self.url.path)
        let inode = try #require(old[.systemFileNumber] as? Int)
        #expect(first.metadata.etag?.contains("\(inode)") == false)
        let other = self.fixture.directory.url(of: "other.png")
        try Data(makePNG(width: 10, gray: 99)).write(to: other)
        let date = try #require(old[.modificationDate] as? Date)
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: other.path)
        try #require(rename(other.path, self.url.path) == 0)
        let second = try await loader.response(for: ImageRequest(url: self.url))
        #expect(second.source == .file)
        #expect(second.metadata.bodyDigest != first.metadata.bodyDigest)
    }

    @Test(arguments: [CachePolicy.honorFreshness, .revalidate])
    func `a change is seen that comes too soon after another one for the clock of the files`(
        policy: CachePolicy
    ) async throws {
        let loader = self.fixture.makeLoader { $0.cachePolicy = policy }
        for gray in UInt8(0)..<100 {
            let body = Data(try makePNG(width: 10, gray: gray))
            // The write is in place, so only the times tell the versions apart.
            try body.write(to: self.url)
            #expect(try await loader.data(for: ImageRequest(url: self.url)) == body)
            let image = try await loader.response(for: ImageRequest(url: self.url))
            #expect(image.metadata.bodyDigest == BodyDigest.value(of: body))
        }
    }

    @Test func `a file that is gone is an error where it is looked at, and none where it is not`() async throws {
        let loader = self.fixture.makeLoader()
        _ = try await loader.image(for: self.url)
        try FileManager.default.removeItem(at: self.url)
        #expect(try await loader.image(for: self.url).width == 10)
        let asking = ImageRequest(url: self.url, cachePolicy: .revalidate)
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: asking) }
        #expect(error?.code == .fileNotFound)
    }

    @Test func `bytes of a file are those that it has now`() async throws {
        let loader = self.fixture.makeLoader { $0.cachePolicy = .honorFreshness }
        #expect(try await loader.data(for: ImageRequest(url: self.url)) == Data(contentsOf: self.url))
        try self.write(width: 20)
        #expect(try await loader.data(for: ImageRequest(url: self.url)) == Data(contentsOf: self.url))
    }
}
