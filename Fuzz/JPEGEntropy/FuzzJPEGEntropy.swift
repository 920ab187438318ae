// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCoding
import TintypeImage

/// Decodes libFuzzer's input with the library alone and with the shortcuts, and compares the results.
///
/// The last byte determines the size, and whether the end may be missing, so that real files remain valid inputs.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    guard let start, count > 1 else { return 0 }
    // A copy of its own, so that the address sanitizer sees reads over the end.
    let file = Data(Array(UnsafeRawBufferPointer(start: start, count: count)))
    let choice = file[count - 1]
    let divisor = 1 << Int(choice & 3)
    let allowsTruncated = choice & 4 != 0
    guard
        let header = try? JPEGCoder().open(file).header, header.pixelWidth * header.pixelHeight <= 200_000
    else { return 0 }
    let library = decode(file, divisor, allowsTruncated, [])
    let own = decode(file, divisor, allowsTruncated, [.scans, .entropyDecodingOfSmallFiles])
    switch (library, own) {
    case (.success(let library), .success(let own)): compare(library, own, file, divisor)
    case (.failure(let library), .failure(let own)):
        precondition(library.code == own.code, "it fails otherwise: \(library.code), \(own.code)")
    default: preconditionFailure("only one of them fails")
    }
    return 0
}

private func decode(
    _ file: Data,
    _ divisor: Int,
    _ allowsTruncated: Bool,
    _ shortcuts: JPEGCoder.Shortcuts
) -> Result<PixelBuffer, CodingError> {
    let limits = DecodingLimits(maximumPixels: 200_000, maximumSide: 4_096)
    do {
        let encoded = try JPEGCoder(shortcuts: shortcuts).open(file, limits: limits)
        let size = PixelSize(
            width: encoded.header.pixelWidth / divisor,
            height: encoded.header.pixelHeight / divisor
        )
        var options = DecodeOptions(limits: limits, sufficientSize: size, allowsTruncated: allowsTruncated)
        options.color = .ignore
        return .success(try encoded.decode(options: options).image.pixels)
    } catch let error as CodingError {
        return .failure(error)
    } catch {
        preconditionFailure("\(error)")
    }
}

/// Checks that both results are equal, except one unit of the scan (MCU) for each marker, or its fill bytes, in the
/// data.
///
/// At these places, libjpeg-turbo up to 3.1 does not undo the partial results of its fast loop.
private func compare(_ library: PixelBuffer, _ own: PixelBuffer, _ file: Data, _ divisor: Int) {
    precondition(library.layout == own.layout, "it has another size")
    let full = scanUnit(of: file)
    let unit = (width: max(1, full.width / divisor), height: max(1, full.height / divisor))
    var differing = differences(library, own)
    var interruptionCount = interruptions(of: file)
    while !differing.isEmpty {
        precondition(interruptionCount > 0, "it is another image, at \(differing[0])")
        interruptionCount -= 1
        // The unit with most of the differences. Interpolated colour extends beyond its edges.
        let units = Dictionary(grouping: differing) { Place(column: $0.column / unit.width, row: $0.row / unit.height) }
        guard let most = units.max(by: { $0.value.count < $1.value.count })?.key else { return }
        let columns = most.column * unit.width - 3..<(most.column + 1) * unit.width + 3
        let rows = most.row * unit.height - 3..<(most.row + 1) * unit.height + 3
        differing.removeAll { columns.contains($0.column) && rows.contains($0.row) }
    }
}

private struct Place: Hashable {
    let column: Int
    let row: Int
}

private func differences(_ library: PixelBuffer, _ own: PixelBuffer) -> [Place] {
    let plane = library.layout.planes[0]
    let bytesPerPixel = plane.usedBytesPerRow / plane.width
    var places: [Place] = []
    library.withBytes { library in
        own.withBytes { own in
            for row in 0..<plane.height {
                for column in 0..<plane.usedBytesPerRow {
                    let offset = row * plane.bytesPerRow + column
                    let expected = library.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
                    guard own.unsafeLoad(fromByteOffset: offset, as: UInt8.self) != expected else { continue }
                    places.append(Place(column: column / bytesPerPixel, row: row))
                }
            }
        }
    }
    return places
}

/// Returns the number of places with a 0xFF byte that is not followed by stuffing.
private func interruptions(of file: Data) -> Int {
    var count = 0
    var last: UInt8 = 0
    for (byte, next) in zip(file, file.dropFirst()) {
        if byte == 0xFF, last != 0xFF, next != 0 { count += 1 }
        last = byte
    }
    return count
}

/// Returns the number of pixels in a unit of a scan with all components.
private func scanUnit(of file: Data) -> (width: Int, height: Int) {
    var start = 2
    while start + 10 < file.count {
        let marker = file[start + 1]
        guard file[start] == 0xFF, marker != 0xFF else {
            start += 1
            continue
        }
        if [0xC0, 0xC1, 0xC2].contains(marker) {
            let factors = (0..<Int(file[start + 9])).compactMap { index in
                start + 11 + index * 3 < file.count ? file[start + 11 + index * 3] : nil
            }
            // A single component is in units of one block, whatever its factors are.
            guard factors.count > 1 else { return (8, 8) }
            return (Int(factors.map { $0 >> 4 }.max() ?? 1) * 8, Int(factors.map { $0 & 15 }.max() ?? 1) * 8)
        }
        start +=
            marker == 0 || marker == 1 || (0xD0...0xD8).contains(marker)
            ? 2 : 2 + Int(file[start + 2]) << 8 + Int(file[start + 3])
    }
    return (8, 8)
}
