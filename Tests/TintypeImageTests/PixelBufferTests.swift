// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeImage
import TintypeTestSupport

@Suite struct PixelBufferTests {
    @Test(arguments: [(1, 1), (7, 3), (64, 64), (333, 5)]) func `is zero before it is filled`(
        width: Int,
        height: Int
    ) throws {
        // Leave non-zero memory behind for the allocator to reuse.
        for _ in 0..<4 { _ = try PixelBuffer.make(.rgba8, width: width, height: height) { _, _, _ in 255 } }
        let layout = try PixelLayout(format: .rgba8, width: width, height: height)
        let buffer = try PixelBuffer(
            layout,
            filling: { bytes in
                #expect(bytes.byteCount == layout.byteCount)
                for offset in 0..<bytes.byteCount {
                    guard bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self) != 0 else { continue }
                    Issue.record("byte \(offset) is not zero")
                    break
                }
            }
        )
        #expect(buffer.samples.allSatisfy { $0 == 0 })
    }

    @Test func `an image is described by its size, and what is unusual`() throws {
        let plain = Image(pixels: try .noise(.rgb8, width: 5, height: 3), sourceFormat: .jpeg)
        #expect("\(plain)" == "jpeg 5x3")
        let turned = Image(pixels: try .noise(.gray8, width: 5, height: 3), orientation: .right)
        #expect("\(turned.markedAsPreview())" == "5x3 gray8, stored with orientation 6, preview")
    }

    @Test func `padding is zero however it is filled`() throws {
        let layout = try PixelLayout(format: .rgb8, width: 5, height: 3)
        let buffer = try PixelBuffer(
            layout,
            fillingUnsafely: { $0.initializeMemory(as: UInt8.self, repeating: 255) }
        )
        buffer.withUnsafeBytes { bytes in
            for (offset, byte) in bytes.enumerated() { #expect(byte == (offset % 64 < 15 ? 255 : 0)) }
        }
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8]) func `keeps what was filled in`(format: PixelFormat) throws {
        let buffer = try PixelBuffer.make(format, width: 5, height: 3) { UInt8($0 * 40 + $1 * 10 + $2) }
        #expect(buffer.format == format)
        #expect(buffer.width == 5)
        #expect(buffer.height == 3)
        #expect(buffer.byteCount == 3 * 64)
        for row in 0..<3 {
            for column in 0..<5 {
                for channel in 0..<format.channelCount {
                    #expect(buffer.sample(column, row, channel) == column * 40 + row * 10 + channel)
                }
            }
        }
    }

    /// Checks that a frame reuses the memory of a freed frame, although other blocks lie between them.
    ///
    /// Otherwise each frame of an animation would take new memory. Runs in a process of its own, so that no other test
    /// takes that memory.
    @Test(.enabled(if: AllocatedMemory.isMeasured)) func `takes the place of one that is gone`() async {
        await #expect(processExitsWith: .success) {
            let layout = try PixelLayout(format: .rgba8, width: 16, height: 308)
            var reuseCount = 0
            for _ in 0..<100 {
                var buffer = try PixelBuffer(layout, filling: { _ in })
                let place = buffer.withUnsafeBytes { Int(bitPattern: $0.baseAddress) }
                // Allocate blocks that stay. The small ones fit into the part that was cut off from the buffer. The
                // large one does not fit into a buffer's memory and therefore lies after it.
                for size in stride(from: 16, through: 160, by: 16) {
                    for _ in 0..<8 where malloc(size) == nil { return }
                }
                guard malloc(layout.byteCount + 4_096) != nil else { return }
                buffer = try .make(.gray8, width: 1, height: 1) { _, _, _ in 0 }
                buffer = try PixelBuffer(layout, filling: { _ in })
                if buffer.withUnsafeBytes({ Int(bitPattern: $0.baseAddress) }) == place { reuseCount += 1 }
            }
            precondition(reuseCount > 90, "only \(reuseCount) of 100 took the place")
        }
    }

    @Test func `lends its bytes aligned`() throws {
        for width in [1, 63, 200] {
            let buffer = try PixelBuffer.noise(.gray8, width: width, height: 3)
            buffer.withUnsafeBytes { bytes in
                #expect(Int(bitPattern: bytes.baseAddress) % PixelLayout.alignment == 0)
                #expect(bytes.count == buffer.byteCount)
            }
            buffer.withBytes { span in
                #expect(span.byteCount == buffer.byteCount)
                #expect(Int(span.unsafeLoad(fromByteOffset: 0, as: UInt8.self)) == buffer.sample(0, 0))
            }
        }
    }

    @Test func `rethrows the error of the fill`() throws {
        let layout = try PixelLayout(format: .gray8, width: 4, height: 4)
        #expect(throws: CancellationError.self) {
            try PixelBuffer(layout, filling: { _ in throw CancellationError() })
        }
    }

    /// Runs in a process of its own, whose memory no other test uses.
    @Test(.disabled(if: ThisProcess.isSanitized, "the sanitizers keep freed memory, and find leaks themselves"))
    func `frees the memory of a fill that fails`() async {
        await #expect(processExitsWith: .success) {
            let layout = try PixelLayout(format: .gray8, width: 1_024, height: 4_096)
            let before = ThisProcess.residentBytes
            for _ in 0..<64 {
                _ = try? PixelBuffer(layout, filling: { _ in throw CancellationError() })
            }
            let grown = ThisProcess.residentBytes - before
            precondition(grown < 16 * layout.byteCount, "64 failed fills kept \(grown) bytes")
        }
    }

    @Test(.disabled(if: ThisProcess.isSanitized, "the sanitizers end the process where memory is refused"))
    func `memory that the system refuses is an error`() throws {
        let layout = try PixelLayout(format: .gray8, width: Int(Int32.max), height: Int(Int32.max))
        let error = #expect(throws: ImageError.self) { try PixelBuffer(layout, filling: { _ in }) }
        #expect(error?.code == .outOfMemory)
        #expect(error?.message.contains("\(layout.byteCount)") == true)
    }

    @Test func `an image knows its pixels`() throws {
        let pixels = try PixelBuffer.noise(.rgba8, width: 6, height: 2)
        let image = Image(pixels: pixels, orientation: .left, sourceFormat: .png)
        #expect(image.width == 6)
        #expect(image.height == 2)
        #expect(image.hasAlpha)
        let other = image.replacingPixels(try PixelBuffer.noise(.gray8, width: 1, height: 1), orientation: .up)
        #expect(other.sourceFormat == .png)
        #expect(other.orientation == .up)
        #expect(other.width == 1)
        #expect(!other.hasAlpha)
    }

    @Test func `an image keeps its scale whatever becomes of its pixels`() throws {
        let pixels = try PixelBuffer.noise(.rgba8, width: 6, height: 2)
        let image = Image(pixels: pixels, orientation: .left, scale: 2)
        #expect(Image(pixels: pixels).scale == 1)
        #expect(image.replacingPixels(pixels, orientation: .up).scale == 2)
        #expect(try image.upright().scale == 2)
        #expect(image.tagged(with: ColorProfile(data: Data())).scale == 2)
        let other = image.replacingScale(3)
        #expect(other.scale == 3)
        #expect(other.pixels === pixels)
        #expect(other.orientation == .left)
    }

    @Test func `an error says its code`() {
        let error = ImageError(code: .invalidSize, message: "The image is too small.")
        #expect(error.description == "invalidSize: The image is too small.")
    }
}
