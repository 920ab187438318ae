// SPDX-License-Identifier: Apache-2.0

extension ProcessingOptions {
    /// A text for cache keys: equal for options with equal results.
    ///
    /// Names, order and spelling in the URL do not count. Options with imgproxy's default, and options that change only
    /// the response's fields, are left out. The text has no control characters.
    package var canonicalText: String {
        var parts: [String] = []
        if self.isRaw {
            parts.append("raw")
        } else {
            self.appendSize(to: &parts)
            self.appendPlace(to: &parts)
            self.appendLook(to: &parts)
            self.appendFile(to: &parts)
        }
        self.appendLimits(to: &parts)
        // The last part, because it may have any characters.
        if !self.cacheBuster.isEmpty { parts.append("cb:\(self.cacheBuster)") }
        return parts.joined(separator: "/")
    }

    private func appendSize(to parts: inout [String]) {
        if self.resizingType != .fit { parts.append("rt:\(self.resizingType.rawValue)") }
        if self.width != 0 { parts.append("w:\(self.width)") }
        if self.height != 0 { parts.append("h:\(self.height)") }
        if self.minimumWidth != 0 { parts.append("mw:\(self.minimumWidth)") }
        if self.minimumHeight != 0 { parts.append("mh:\(self.minimumHeight)") }
        if self.horizontalZoom != 1 || self.verticalZoom != 1 {
            parts.append("z:\(self.horizontalZoom):\(self.verticalZoom)")
        }
        if self.pixelRatio != 1 { parts.append("dpr:\(self.pixelRatio)") }
        if self.enlarges { parts.append("el") }
        if self.extend.isOn { parts.append("ex:\(self.extend.gravity.canonicalText)") }
        if self.extendAspectRatio.isOn { parts.append("exar:\(self.extendAspectRatio.gravity.canonicalText)") }
    }

    private func appendPlace(to parts: inout [String]) {
        if self.gravity != GravityOption() { parts.append("g:\(self.gravity.canonicalText)") }
        if !self.crop.isOff {
            let gravity = self.crop.gravity ?? self.gravity
            parts.append("c:\(self.crop.width):\(self.crop.height):\(gravity.canonicalText)")
        }
        if let trim = self.trim {
            let isEqual = "\(trim.isEqualHorizontally):\(trim.isEqualVertically)"
            parts.append("t:\(trim.threshold):\(trim.color?.canonicalText ?? ""):\(isEqual)")
        }
        if self.padding != PaddingOption() {
            let padding = self.padding
            parts.append("pd:\(padding.top):\(padding.right):\(padding.bottom):\(padding.left)")
        }
        if !self.autoRotates { parts.append("ar:false") }
        if self.rotation != 0 { parts.append("rot:\(self.rotation)") }
        if self.flipsHorizontally || self.flipsVertically {
            parts.append("fl:\(self.flipsHorizontally):\(self.flipsVertically)")
        }
    }

    private func appendLook(to parts: inout [String]) {
        if let background = self.background { parts.append("bg:\(background.canonicalText)") }
        if self.blur > 0 { parts.append("bl:\(self.blur)") }
        if self.sharpen > 0 { parts.append("sh:\(self.sharpen)") }
        if self.pixelate > 1 { parts.append("pix:\(self.pixelate)") }
        if let watermark = self.watermark {
            parts.append("wm:\(watermark.opacity):\(watermark.position.canonicalText):\(watermark.scale)")
        }
    }

    private func appendFile(to parts: inout [String]) {
        if !self.stripsMetadata { parts.append("sm:false") }
        if !self.keepsCopyright { parts.append("kcr:false") }
        if !self.stripsColorProfile { parts.append("scp:false") }
        if self.preservesHDR { parts.append("ph") }
        if self.prefersEmbeddedThumbnail { parts.append("eth") }
        if self.quality != 0 { parts.append("q:\(self.quality)") }
        for (format, quality) in self.formatQuality.sorted(by: { $0.key < $1.key }) {
            parts.append("fq:\(format.rawValue):\(quality)")
        }
        if self.maximumByteCount != 0 { parts.append("mb:\(self.maximumByteCount)") }
        if let format = self.format { parts.append("f:\(format.rawValue)") }
        for format in self.skippedFormats.sorted() { parts.append("skp:\(format.rawValue)") }
    }

    /// Limits count: a result within one set of limits may be refused under another.
    private func appendLimits(to parts: inout [String]) {
        let standard = SecurityLimits()
        if let count = self.limits.sourcePixelCount { parts.append("msr:\(count)") }
        if self.limits.framePixelCount != standard.framePixelCount {
            parts.append("mafr:\(self.limits.framePixelCount)")
        }
        if let count = self.limits.sourceByteCount { parts.append("msfs:\(count)") }
        if self.limits.frameCount != standard.frameCount { parts.append("maf:\(self.limits.frameCount)") }
        if self.limits.effectiveResultSide != standard.resultSide {
            parts.append("mrd:\(self.limits.effectiveResultSide)")
        }
    }
}

extension GravityOption {
    fileprivate var canonicalText: String {
        // The offsets of a smart crop have no meaning.
        self.kind == .smart ? self.kind.rawValue : "\(self.kind.rawValue):\(self.x):\(self.y)"
    }
}

extension ColorOption {
    fileprivate var canonicalText: String { "\(self.red):\(self.green):\(self.blue)" }
}
