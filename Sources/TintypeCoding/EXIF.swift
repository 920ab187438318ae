import FoundationEssentials
import TintypeImage

/// The part of an EXIF block that pictures need: the orientation.
///
/// Source: Exif 2.32, section 4.5 (TIFF structure) and 4.6.4. A broken block is ignored,
/// never fatal.
enum EXIF {
    private static let orientationTag = 0x0112
    private static let shortType = 3

    /// The orientation in a TIFF block, or `nil` when there is none or the block is broken.
    static func orientation(in block: Data) -> Orientation? {
        let tiff = block.has("Exif\0\0", at: 0) ? block.slice(from: 6, to: block.count) : block
        let order: ByteOrder
        if tiff.has("II", at: 0) {
            order = .little
        } else if tiff.has("MM", at: 0) {
            order = .big
        } else {
            return nil
        }
        guard
            tiff.uint16(at: 2, order) == 42, let directory = tiff.uint32(at: 4, order),
            let count = tiff.uint16(at: directory, order)
        else { return nil }
        for index in 0..<count {
            let entry = directory + 2 + index * 12
            guard let tag = tiff.uint16(at: entry, order) else { return nil }
            guard tag == self.orientationTag else { continue }
            guard
                tiff.uint16(at: entry + 2, order) == self.shortType,
                let value = tiff.uint16(at: entry + 8, order)
            else { return nil }
            return Orientation(rawValue: UInt8(clamping: value))
        }
        return nil
    }
}
