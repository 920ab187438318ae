// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Files that are cut short or damaged, loaded in every way.
@Suite(.waiting, .timeLimit(.minutes(5))) struct DamagedLoadTests {
    private static func bodies() async throws -> [Data] {
        let loader = try LoaderFixture().makeLoader { $0.coders = CoderRegistry() }
        let frames = try (0..<4).map { index in
            let pixels = try PixelBuffer.make(.rgba8, width: 33, height: 21) { column, row, sample in
                sample == 3
                    ? (column + index > 12 ? 255 : 0) : UInt8((column * 7 + row * 3 + index * 31) & 255)
            }
            return AnimationContent.Frame(image: Image(pixels: pixels), milliseconds: 50)
        }
        let animation = AnimationContent(frames: frames, loopCount: 0)
        var bodies = [Data(try PreviewTests.progressiveJPEG())]
        for format in [ImageFormat.gif, .webp, .png] {
            bodies.append(try await loader.encode(animation, as: format, options: EncodeOptions()))
        }
        return bodies
    }

    @Test func `a response says what is damaged, from the network, from memory, and from a variant on disk`()
        async throws
    {
        let pixels = try PixelBuffer.noise(.rgb8, width: 64, height: 64, seed: 1)
        var data = try JPEGCoder().encode(Image(pixels: pixels), as: .jpeg, options: EncodeOptions())
        let middle = data.count / 2
        data.replaceSubrange(middle...middle + 1, with: [0xFF, 0xE5])
        let origin = ScriptedOrigin(["/a": .body(Array(data)), "/b": .body(try makePNG())])
        let fixture = try LoaderFixture(origin: origin)
        let loader = fixture.makeLoader()
        let thumbnail = ImageRequest(
            url: origin.url("/a"),
            thumbnail: .fit(width: 9, height: 9),
            transforms: [.pixelate(size: 2)],
            options: .waitForStore
        )
        for source in [LoadSource.network, .memory] {
            let response = try await loader.response(for: thumbnail)
            #expect(response.source == source)
            #expect(response.damage == .missingData)
        }
        let stored = try await fixture.makeLoader().response(for: thumbnail)
        #expect((stored.source, stored.damage) == (.disk, .missingData))
        #expect(try await loader.response(for: ImageRequest(url: origin.url("/a"))).damage == .missingData)
        #expect(try await loader.response(for: ImageRequest(url: origin.url("/b"))).damage == [])
        let transformed = try await loader.transform(data, by: JPEGTransform(turn: .rotate90))
        #expect(transformed.damage == .missingData)
    }

    @Test(arguments: 0..<8) func `whatever is cut or damaged ends in an image or in an error`(
        seed: UInt64
    ) async throws {
        var random = SeededGenerator(seed: seed)
        let bodies = try await Self.bodies()
        let current = Box<(Data, Int)>()
        let fetcher = ClosureFetcher(respond: { request, observer in
            guard let (body, size) = current.value else { throw CancellationError() }
            for start in stride(from: 0, to: body.count, by: size) {
                observer.didReceive?(body[start..<min(start + size, body.count)])
                if start % 3 == 0 { await Task.yield() }
            }
            return DownloadResponse(body: body, url: request.url)
        })
        let loader = try LoaderFixture().makeLoader { configuration in
            configuration.fetcher = fetcher
            configuration.coders = CoderRegistry()
            configuration.disk = nil
            configuration.decodingMemory = seed.isMultiple(of: 2) ? 1 : 1 << 20
            configuration.framePoolByteLimit = 0
        }
        for index in 0..<120 {
            var body = bodies.randomElement(using: &random) ?? Data()
            if Bool.random(using: &random) {
                body = body.prefix(Int.random(in: 1..<body.count, using: &random))
            }
            for _ in 0..<Int.random(in: 0..<4, using: &random) {
                body[Int.random(in: 0..<body.count, using: &random)] = UInt8.random(
                    in: 0...255,
                    using: &random
                )
            }
            current.value = (body, Int.random(in: 1..<2_000, using: &random))
            let url = try #require(URL(string: "https://origin.example/\(index)"))
            var request = ImageRequest(url: url)
            if Bool.random(using: &random) { request.options.insert(.previews) }
            if Bool.random(using: &random) { request.options.insert(.allowTruncated) }
            if Bool.random(using: &random) { request.thumbnail = .fit(width: 7, height: 50) }
            let final = request
            do {
                for try await _ in loader.events(for: final) {}
            } catch is LoadError {}
            do {
                let frames = try await loader.frames(for: final)
                for frame in (0..<frames.frameCount).reversed() { _ = try await frames.frame(at: frame) }
            } catch is LoadError {} catch is CodingError {}
        }
        await until { await loader.downloads.counters.bodyBytes == 0 }
        await loader.shutdown()
    }
}
