// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// A coder whose preview decoder blocks until the latch opens or the task is cancelled.
private struct StuckPreviews: ImageCoder {
    private final class Decoder: IncrementalDecoder {
        let header: ImageHeader? = nil
        let entered: Box<Bool>
        let latch: Latch

        init(entered: Box<Bool>, latch: Latch) {
            self.entered = entered
            self.latch = latch
        }

        func append(_ bytes: Data) throws {
            self.entered.value = true
            while !self.latch.isOpen {
                try Task.checkCancellation()
            }
        }
        func preview() throws -> Image? { nil }
        func finish() throws -> DecodedImage { throw CancellationError() }
    }

    let base = JPEGCoder()
    let entered: Box<Bool>
    let latch: Latch

    var decodableFormats: Set<ImageFormat> { self.base.decodableFormats }
    var encodableFormats: Set<ImageFormat> { self.base.encodableFormats }
    func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        try self.base.open(data, limits: limits)
    }
    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try self.base.encode(image, as: format, options: options)
    }
    func makeIncrementalDecoder(
        for format: ImageFormat,
        options: DecodeOptions
    ) throws -> (any IncrementalDecoder)? {
        Decoder(entered: self.entered, latch: self.latch)
    }
}

@Suite(.waiting, .timeLimit(.minutes(5))) struct PreviewWaitTests {
    @Test func `an image does not wait for a preview of it`() async throws {
        let gate = Gate()
        let body = try PreviewTests.progressiveJPEG()
        let middle = body.count * 3 / 4
        let origin = ScriptedOrigin([
            "/a": .pieces([Array(body[..<middle]), Array(body[middle...])], movedBy: [gate])
        ])
        let (entered, latch) = (Box(false), Latch())
        let loader = try LoaderFixture(origin: origin).makeLoader {
            $0.laneCount = 2
            $0.coders = CoderRegistry(coders: [StuckPreviews(entered: entered, latch: latch)])
        }
        let request = ImageRequest(url: origin.url("/a"), options: [.previews])
        let end = Task { try await loader.image(for: request).width }
        await until { entered.value == true }
        await gate.open()
        #expect(try await end.value == 320)
        latch.open()
    }

    @Test func `an image does not wait for the lane of its previews`() async throws {
        let gate = Gate()
        let body = try PreviewTests.progressiveJPEG()
        let middle = body.count / 2
        let origin = ScriptedOrigin([
            "/a": .pieces([Array(body[..<middle]), Array(body[middle...])], movedBy: [gate]),
            "/b": .body(try makePNG()),
        ])
        let fixture = try LoaderFixture(origin: origin)
        let latch = Latch()
        let loader = fixture.makeLoader {
            $0.laneCount = 2
            $0.coders = CoderRegistry(coders: [
                JPEGCoder(), CountingCoder(PNGCoder(), fixture.decodes, heldBy: latch),
            ])
        }
        let shown = Box(false)
        let request = ImageRequest(url: origin.url("/a"), options: [.previews])
        let end = Task {
            for try await event in loader.events(for: request) {
                if case .preview = event { shown.value = true }
            }
        }
        await until { shown.value == true }
        // The lane of the previews is the first idle lane, so the other decode takes it.
        let other = Task { try await loader.image(for: origin.url("/b")) }
        await until { fixture.decodes.count == 1 }
        await gate.open()
        try await end.value
        latch.open()
        _ = try await other.value
        await loader.shutdown()
    }
}
