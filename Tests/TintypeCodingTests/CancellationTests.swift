// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(10))) struct CancellationTests {
    /// Calls the coder directly, so that the decoder's own check does not throw first.
    @Test(arguments: [ImageFormat.png, .webp]) func `a decode stops inside`(format: ImageFormat) async throws {
        let data = try SampleFiles.smooth(format)
        await Self.expectCancellation {
            let coder = try SampleFiles.registry.coder(decoding: data)
            _ = try coder.open(data).decode(options: DecodeOptions())
        }
    }

    @Test(arguments: [ImageFormat.jpeg, .png, .webp]) func `a cancelled task decodes nothing`(
        format: ImageFormat
    ) async throws {
        let data = try SampleFiles.smooth(format)
        await Self.expectCancellation { _ = try SampleFiles.decode(data) }
    }

    @Test(arguments: [ImageFormat.png, .webp]) func `an encode stops inside`(format: ImageFormat) async throws {
        let pixels = try PixelBuffer.smooth(.rgb8, width: 100, height: 100)
        await Self.expectCancellation { _ = try SampleFiles.encode(pixels, as: format) }
    }

    @Test func `flattening stops inside`() async throws {
        let pixels = try PixelBuffer.smooth(.rgba8, width: 100, height: 100)
        await Self.expectCancellation { _ = try SampleFiles.encode(pixels, as: .jpeg) }
    }

    /// Expects `CancellationError` itself, without a wrapper.
    private static func expectCancellation(of work: @escaping @Sendable () throws -> Void) async {
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try work()
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}
