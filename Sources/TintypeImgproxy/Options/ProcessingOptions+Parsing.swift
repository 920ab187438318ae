// SPDX-License-Identifier: Apache-2.0

extension ProcessingOptions {
    /// Applies an option of a URL.
    ///
    /// Presets have no effect here.
    mutating func set(_ name: OptionName, _ arguments: OptionArguments) throws(OptionError) {
        guard arguments.count <= name.maximumArgumentCount else {
            throw OptionError(
                message: "There are \(arguments.count) arguments, and at most \(name.maximumArgumentCount) are allowed."
            )
        }
        switch name {
        case .resize, .size, .resizingType, .width, .height, .minimumWidth, .minimumHeight, .zoom, .dpr, .enlarge,
            .extend, .extendAspectRatio:
            try self.setSize(name, arguments)
        case .gravity, .crop, .trim, .padding, .autoRotate, .rotate, .flip: try self.setPlace(name, arguments)
        case .background, .blur, .sharpen, .pixelate, .watermark: try self.setLook(name, arguments)
        case .stripMetadata, .keepCopyright, .stripColorProfile, .preserveHDR, .enforceThumbnail, .quality,
            .formatQuality, .maximumBytes, .format, .skipProcessing, .raw:
            try self.setFile(name, arguments)
        case .cacheBuster, .expires, .fileName, .returnAttachment: try self.setResponse(name, arguments)
        case .maximumSourceResolution, .maximumSourceFileSize, .maximumAnimationFrames,
            .maximumAnimationFrameResolution, .maximumResultDimension:
            try self.setLimit(name, arguments)
        case .preset: break
        }
    }

    /// Throws if a side is longer than the limits permit.
    ///
    /// The limits may come after the sides, so this comes last.
    func checkSides() throws(OptionError) {
        let longest = max(SecurityLimits().resultSide, self.limits.effectiveResultSide)
        let sides = [
            self.width, self.height, self.minimumWidth, self.minimumHeight, self.padding.top, self.padding.right,
            self.padding.bottom, self.padding.left,
        ]
        guard let side = sides.first(where: { $0 > longest }) else { return }
        throw OptionError(message: "A side or a padding of \(side) pixels is over the limit of \(longest).")
    }

    // MARK: Size

    /// ``checkSides()`` refuses sides that are too long, when the limits of the URL are known.
    private static let sides = 0...Int.max
    private static let zooms = 0.000_001...100
    private static let pixelRatios = 0.000_001...8

    private mutating func setSize(_ name: OptionName, _ arguments: OptionArguments) throws(OptionError) {
        switch name {
        case .resize:
            if !arguments.isSkipped(0), let type = try arguments.name(0, of: ResizingType.self) {
                self.resizingType = type
            }
            try self.setBox(arguments.dropFirst(1))
        case .size: try self.setBox(arguments)
        case .resizingType: self.resizingType = try arguments.name(0, of: ResizingType.self) ?? self.resizingType
        case .width: self.width = try arguments.integer(0, in: Self.sides) ?? self.width
        case .height: self.height = try arguments.integer(0, in: Self.sides) ?? self.height
        case .minimumWidth: self.minimumWidth = try arguments.integer(0, in: Self.sides) ?? self.minimumWidth
        case .minimumHeight: self.minimumHeight = try arguments.integer(0, in: Self.sides) ?? self.minimumHeight
        case .zoom:
            guard let zoom = try arguments.number(0, in: Self.zooms) else { return }
            self.horizontalZoom = zoom
            self.verticalZoom = try arguments.number(1, in: Self.zooms) ?? zoom
        case .dpr: self.pixelRatio = try arguments.number(0, in: Self.pixelRatios) ?? self.pixelRatio
        case .enlarge: self.enlarges = arguments.bool(0) ?? self.enlarges
        case .extend: try self.extend.set(arguments)
        default: try self.extendAspectRatio.set(arguments)
        }
    }

    private mutating func setBox(_ arguments: OptionArguments) throws(OptionError) {
        if !arguments.isSkipped(0), let width = try arguments.integer(0, in: Self.sides) { self.width = width }
        if !arguments.isSkipped(1), let height = try arguments.integer(1, in: Self.sides) { self.height = height }
        if !arguments.isSkipped(2), let enlarges = arguments.bool(2) { self.enlarges = enlarges }
        try self.extend.set(arguments.dropFirst(3), skipsEmpty: true)
    }

    // MARK: Place

    private mutating func setPlace(_ name: OptionName, _ arguments: OptionArguments) throws(OptionError) {
        switch name {
        case .gravity:
            self.gravity =
                try arguments.gravity(0, changing: self.gravity, kinds: GravityOption.cropKinds) ?? self.gravity
        case .crop:
            // The whole part of a number of pixels counts.
            func side(_ side: Double) -> Double { side < 1 ? side : side.rounded(.down) }
            if let width = try arguments.number(0, in: 0...1_000_000) { self.crop.width = side(width) }
            if let height = try arguments.number(1, in: 0...1_000_000) { self.crop.height = side(height) }
            self.crop.gravity =
                try arguments.gravity(2, changing: self.crop.gravity ?? GravityOption(), kinds: GravityOption.cropKinds)
                ?? self.crop.gravity
        case .trim: try self.setTrim(arguments)
        case .padding: try self.padding.set(arguments, sides: Self.sides)
        case .autoRotate: self.autoRotates = arguments.bool(0) ?? self.autoRotates
        case .rotate:
            guard let degrees = try arguments.integer(0, in: -360_000...360_000) else { return }
            guard degrees.isMultiple(of: 90) else { throw .value("\(degrees)", isNot: "a multiple of 90") }
            self.rotation = (degrees % 360 + 360) % 360
        default:
            if !arguments.isSkipped(0), let flips = arguments.bool(0) { self.flipsHorizontally = flips }
            if !arguments.isSkipped(1), let flips = arguments.bool(1) { self.flipsVertically = flips }
        }
    }

    private mutating func setTrim(_ arguments: OptionArguments) throws(OptionError) {
        guard !arguments.isSkipped(0), let threshold = try arguments.number(0, in: 0...1_000) else {
            self.trim = nil
            return
        }
        var trim = self.trim ?? TrimOption(threshold: threshold)
        trim.threshold = threshold
        if !arguments.isSkipped(1) { trim.color = try arguments.color(1) }
        if !arguments.isSkipped(2), let isEqual = arguments.bool(2) { trim.isEqualHorizontally = isEqual }
        if !arguments.isSkipped(3), let isEqual = arguments.bool(3) { trim.isEqualVertically = isEqual }
        self.trim = trim
    }

    // MARK: Look

    private mutating func setLook(_ name: OptionName, _ arguments: OptionArguments) throws(OptionError) {
        switch name {
        case .background: try self.setBackground(arguments)
        case .blur: self.blur = try arguments.number(0, in: 0...100) ?? self.blur
        case .sharpen: self.sharpen = try arguments.number(0, in: 0...100) ?? self.sharpen
        case .pixelate:
            self.pixelate = try arguments.integer(0, in: 0...SecurityLimits().resultSide) ?? self.pixelate
        default: try self.setWatermark(arguments)
        }
    }

    private mutating func setBackground(_ arguments: OptionArguments) throws(OptionError) {
        switch arguments.count {
        case 1: self.background = arguments.isSkipped(0) ? nil : try arguments.color(0)
        case 3:
            var parts: [UInt8] = []
            for index in 0..<3 { parts.append(UInt8(try arguments.integer(index, in: 0...255) ?? 0)) }
            self.background = ColorOption(red: parts[0], green: parts[1], blue: parts[2])
        default: throw OptionError(message: "Give one hexadecimal colour, or three numbers from 0 to 255.")
        }
    }

    private mutating func setWatermark(_ arguments: OptionArguments) throws(OptionError) {
        guard let opacity = try arguments.number(0, in: 0...1) else { return }
        var watermark = self.watermark ?? WatermarkOption(opacity: opacity)
        watermark.opacity = opacity
        // The place and its offsets may be left out one by one.
        let offsets = OptionArguments(
            [arguments.isSkipped(1) ? watermark.position.kind.rawValue : arguments.text(1) ?? ""]
                + arguments.all.dropFirst(2).prefix(2)
        )
        watermark.position =
            try offsets.gravity(0, changing: watermark.position, kinds: GravityOption.watermarkKinds)
            ?? watermark.position
        if !arguments.isSkipped(4) { watermark.scale = try arguments.number(4, in: 0...10) ?? watermark.scale }
        self.watermark = opacity > 0 ? watermark : nil
    }

    // MARK: File

    private mutating func setFile(_ name: OptionName, _ arguments: OptionArguments) throws(OptionError) {
        switch name {
        case .stripMetadata: self.stripsMetadata = arguments.bool(0) ?? self.stripsMetadata
        case .keepCopyright: self.keepsCopyright = arguments.bool(0) ?? self.keepsCopyright
        case .stripColorProfile: self.stripsColorProfile = arguments.bool(0) ?? self.stripsColorProfile
        case .preserveHDR: self.preservesHDR = arguments.bool(0) ?? self.preservesHDR
        case .enforceThumbnail: self.prefersEmbeddedThumbnail = arguments.bool(0) ?? self.prefersEmbeddedThumbnail
        case .quality: self.quality = try arguments.integer(0, in: 0...100) ?? self.quality
        case .formatQuality:
            guard arguments.count.isMultiple(of: 2) else {
                throw OptionError(message: "Give a quality behind each format, such as webp:70:avif:50.")
            }
            for index in stride(from: 0, to: arguments.count, by: 2) {
                guard let format = try arguments.format(index),
                    let quality = try arguments.integer(index + 1, in: 0...100)
                else { return }
                self.formatQuality[format] = quality
            }
        case .maximumBytes: self.maximumByteCount = try arguments.integer(0, in: 0...(.max)) ?? self.maximumByteCount
        case .format: self.format = try arguments.format(0) ?? self.format
        case .skipProcessing:
            for text in arguments.all { self.skippedFormats.insert(try OptionArguments.format(text)) }
        default: self.isRaw = arguments.bool(0) ?? self.isRaw
        }
    }

    // MARK: Response

    private mutating func setResponse(_ name: OptionName, _ arguments: OptionArguments) throws(OptionError) {
        switch name {
        case .cacheBuster: self.cacheBuster = arguments.text(0) ?? self.cacheBuster
        case .expires:
            guard let time = try arguments.integer(0, in: .min ... .max) else { return }
            self.expires = time > 0 ? time : nil
        case .fileName: try self.setFileName(arguments)
        default: self.isAttachment = arguments.bool(0) ?? self.isAttachment
        }
    }

    private mutating func setFileName(_ arguments: OptionArguments) throws(OptionError) {
        guard let text = arguments.text(0) else { return }
        var name = text
        if arguments.bool(1) ?? false {
            guard let bytes = Base64URL.decode(Array(text.utf8)), let decoded = String(validating: bytes, as: UTF8.self)
            else { throw .value(text, isNot: "a UTF-8 text in URL-safe Base64") }
            name = decoded
        }
        // A line break would end the field of the response.
        guard name.unicodeScalars.allSatisfy({ $0.value >= 0x20 && !(0x7F...0x9F ~= $0.value) }) else {
            throw OptionError(message: "The file name has a control character.")
        }
        self.fileName = name.isEmpty ? nil : name
    }

    // MARK: Limits

    private mutating func setLimit(_ name: OptionName, _ arguments: OptionArguments) throws(OptionError) {
        func pixels(_ megapixels: Double) -> Int { Int((megapixels * 1_000_000).rounded()) }
        switch name {
        case .maximumSourceResolution:
            guard let megapixels = try arguments.number(0, in: 0.000_001...1_000_000) else { return }
            self.limits.sourcePixelCount = pixels(megapixels)
        case .maximumAnimationFrameResolution:
            guard let megapixels = try arguments.number(0, in: 0...1_000_000) else { return }
            self.limits.framePixelCount = pixels(megapixels)
        case .maximumSourceFileSize:
            self.limits.sourceByteCount = try arguments.integer(0, in: 0...(.max)) ?? self.limits.sourceByteCount
        case .maximumAnimationFrames:
            self.limits.frameCount = try arguments.integer(0, in: 1...(.max)) ?? self.limits.frameCount
        default:
            self.limits.resultSide =
                try arguments.integer(0, in: 0...SecurityLimits.largestSide) ?? self.limits.resultSide
        }
    }
}

extension ExtendOption {
    fileprivate mutating func set(_ arguments: OptionArguments, skipsEmpty: Bool = false) throws(OptionError) {
        if !(skipsEmpty && arguments.isSkipped(0)) { self.isOn = arguments.bool(0) ?? self.isOn }
        self.gravity =
            try arguments.gravity(1, changing: self.gravity, kinds: GravityOption.extendKinds) ?? self.gravity
    }
}

extension PaddingOption {
    /// Sets the sides as in CSS: a side that is left out takes the value of the opposite one, or of the top.
    fileprivate mutating func set(_ arguments: OptionArguments, sides: ClosedRange<Int>) throws(OptionError) {
        if !arguments.isSkipped(0), let width = try arguments.integer(0, in: sides) {
            (self.top, self.right, self.bottom, self.left) = (width, width, width, width)
        }
        if !arguments.isSkipped(1), let width = try arguments.integer(1, in: sides) {
            (self.right, self.left) = (width, width)
        }
        if !arguments.isSkipped(2), let width = try arguments.integer(2, in: sides) { self.bottom = width }
        if !arguments.isSkipped(3), let width = try arguments.integer(3, in: sides) { self.left = width }
    }
}
