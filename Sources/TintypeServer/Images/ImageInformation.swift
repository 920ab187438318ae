// SPDX-License-Identifier: Apache-2.0

import Tintype

/// The answer of `/info`.
struct ImageInformation: Encodable {
    let format: String
    let width: Int
    let height: Int
    let orientation: Int
    let frames: Int
    let hasAlpha: Bool
    let bitDepth: Int
    let bytes: Int

    init(_ header: ImageHeader, byteCount: Int) {
        let size = header.uprightSize
        self.format = header.format.name
        self.width = size.width
        self.height = size.height
        self.orientation = Int(header.orientation.rawValue)
        self.frames = header.animation.frameCount
        self.hasAlpha = header.hasAlpha
        self.bitDepth = header.bitDepth
        self.bytes = byteCount
    }
}
