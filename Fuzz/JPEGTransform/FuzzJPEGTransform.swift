// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCoding
import TintypeConformanceSupport
import TintypeImage

/// Transforms libFuzzer's input without loss, and compares the coefficients.
///
/// The last four bytes also determine the transform, so that real files remain valid inputs.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    guard let start, count > 4 else { return 0 }
    // A copy of its own, so that the address sanitizer sees reads over the end.
    let file = Data(Array(UnsafeRawBufferPointer(start: start, count: count)))
    let choice = file.suffix(4).map { Int($0) }
    let limits = DecodingLimits(maximumPixels: 100_000, maximumSide: 4_096, maximumWork: 20_000_000)
    let turns = JPEGTransform.Turn.allCases
    let codings = JPEGTransform.Coding.allCases
    let transform = JPEGTransform(
        turnsUpright: choice[0] & 1 != 0,
        turn: turns[choice[0] >> 1 & 7],
        crop: choice[1] & 3 == 0
            ? PixelRectangle(x: choice[1], y: choice[2] >> 1, width: choice[2] + 1, height: choice[3] + 1) : nil,
        isPerfect: choice[1] & 4 != 0,
        isGray: choice[1] & 8 != 0,
        coding: codings[choice[0] >> 4 & 3],
        metadata: JPEGTransform.Metadata.allCases[choice[2] % 3],
        keepsPosition: choice[3] & 1 != 0,
        keepsColorProfile: choice[3] & 2 != 0,
        allowsTruncated: choice[3] & 4 != 0
    )
    guard let result = try? transform.apply(to: file, limits: limits) else { return 0 }
    check(result, transform, file)
    return 0
}

private func check(_ result: JPEGTransform.Result, _ transform: JPEGTransform, _ file: Data) {
    guard let header = try? JPEGCoder().open(result.data).header else {
        preconditionFailure("the result has no header")
    }
    precondition(header.pixelWidth == result.width && header.pixelHeight == result.height, "it has another size")
    // If the orientation in the file does not turn the image, the result is known in advance.
    let isCoded = transform.coding != .stored || transform.turn != .none || transform.crop != nil
    guard !transform.turnsUpright, isCoded, let source = JPEGCoefficients(file) else { return }
    // libjpeg has a decoder for the middle of its input and one for the end, which read bits that are no code differently. So
    // such a block depends on the data behind the scan, which a transform of a file without an end leaves out.
    guard !result.damage.isSuperset(of: [.invalidCodes, .missingData]) else { return }
    guard let changed = JPEGCoefficients(result.data) else { preconditionFailure("the result has no coefficients") }
    let isGray = transform.isGray && source.components.count > 1
    let fault = changed.difference(
        from: source,
        turned: transform.turn,
        from: (result.crop?.x ?? 0, result.crop?.y ?? 0),
        isGray: isGray
    )
    precondition(fault == nil, fault ?? "")
}
