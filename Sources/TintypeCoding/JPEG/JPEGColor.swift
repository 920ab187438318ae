import FoundationEssentials

/// How the four samples of a CMYK or YCCK picture become RGB.
///
/// They say how much light is left, as Adobe's programs store them, whether or not there is an Adobe marker:
/// so libvips, Pillow and browsers take them.
struct JPEGColor {
    private let converter: CMYKConverter?

    /// The conversion for a picture: by its profile where it has one and the options want it.
    init(_ header: JPEGHeader, _ handling: ColorHandling) {
        guard header.components.count == 4, case .convert(let intent) = handling, let profile = header.colorProfile
        else {
            self.converter = nil
            return
        }
        self.converter = CMYKConverter.converter(profile: profile, intent: intent)
    }

    /// The work of a pixel: by a profile it is interpolated between the points of a grid of four dimensions.
    var unitsPerPixel: Int { self.converter == nil ? 1 : 8 }

    /// Converts a row of `inks` to the start of `pixels`.
    func convert(_ inks: UnsafeRawBufferPointer, to pixels: UnsafeMutableRawBufferPointer) {
        let count = inks.count / 4
        precondition(pixels.count >= count * 3, "The row does not fit.")
        if let converter = self.converter {
            converter.convert(inks, to: pixels, count: count)
            return
        }
        // Without a profile inks are taken as filters: each lets through its share of the light.
        for column in 0..<count {
            let key = UInt32(inks[column * 4 + 3])
            for channel in 0..<3 {
                let light = UInt32(inks[column * 4 + channel])
                pixels[column * 3 + channel] = UInt8(truncatingIfNeeded: (light * key + 127) / 255)
            }
        }
    }
}
