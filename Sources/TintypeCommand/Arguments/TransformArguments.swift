// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype

/// The options of `tintype load` that transform the image, in the order in which they are given.
struct TransformArguments {
    static let flags: Set = ["--enlarge", "--linear", "--gray", "--sepia", "--invert", "--circle", "--flatten"]
    static let values: Set = [
        "--resize", "--mode", "--filter", "--gravity", "--background", "--crop", "--trim", "--rotate", "--flip",
        "--pad",
        "--extend", "--blur", "--sharpen", "--pixelate", "--brightness", "--contrast", "--saturation", "--gamma",
        "--hue", "--round", "--tint", "--overlay",
        "--pipeline",
    ]
    /// The options that configure other options, wherever they stand.
    private static let settings: Set = ["--enlarge", "--linear", "--mode", "--filter", "--gravity", "--background"]
    /// Settings with values, and the transforms that they are for.
    private static let users: [String: Set] = [
        "--mode": ["--resize"], "--filter": ["--resize"],
        "--gravity": ["--resize", "--crop", "--extend", "--overlay"],
        "--background": ["--rotate", "--pad", "--extend", "--flatten"],
    ]

    static let help = """
          --resize GEOMETRY     WxH, Wx (or W), xH or N%: bring the image to a size. Only WxH!, N% over
                                100 and --enlarge enlarge. WxH^ covers the box and cuts nothing, WxH!
                                is exactly that size, WxH> is as without it
          --mode MODE           how the box of --resize is met: fit within it (default), fill it and
                                cut what is outside, fillDown (the same, a small image only cut),
                                cover it and cut nothing, or stretch
          --enlarge             let --resize enlarge
          --filter FILTER       lanczos3 (default), lanczos2, bicubic, mitchell, bilinear, box or nearest
          --linear              resize and blur in linear light
          --gravity GRAVITY     what is kept or where: center, north, southeast, ... or a point X,Y in
                                shares of the sides, such as 0.3,0.7; for --resize, --crop, --extend
                                and --overlay
          --background COLOR    #rgb or #rrggbb, also with alpha: what --pad, --extend and --rotate add,
                                what --flatten lays below, and what is below a JPEG
                                --gravity, --background, --mode and --filter hold for all where they
                                are given once, and else for what follows them
          --crop AREA           WxH+X+Y, WxH by gravity, or a ratio such as 16:9
          --trim TOLERANCE      take away borders of the corner's colour, 0 to 255
          --rotate DEGREES      turn clockwise; other than quarter turns on a larger canvas
          --flip DIRECTION      horizontal, vertical or both
          --pad N[,N,N,N]       add pixels to all sides, or to the top, right, bottom and left
          --extend WxH          lay the image on a canvas of that size, by gravity
          --blur SIGMA          blur with a Gaussian
          --sharpen SIGMA       sharpen by an unsharp mask
          --pixelate N          make blocks of N pixels
          --brightness N, --contrast N, --saturation N, --gamma N, --hue DEGREES
                                change colours; 1 (0 for --hue) changes nothing
          --gray, --sepia, --invert
          --tint COLOR          give all that is drawn this colour
          --round RADIUS        round the corners
          --circle              cut out the largest circle
          --flatten             lay the image over the background, so that it has no transparency
          --overlay FILE        draw another image on it, by gravity; a pipeline also has opacity,
                                offset, scale and tiles
          --pipeline FILE       transforms that FILE describes in JSON, such as
                                [{"resize": {"width": 400}}, {"blur": {"sigma": 2}}]; what overlays
                                name are files, beside FILE. FILE is also -, standard input, here and
                                for --overlay
        """

    /// The transforms in their order.
    private(set) var pipeline: TransformPipeline = []
    /// The colour below transparent pixels in formats without alpha; `nil` if it is not set.
    let background: Color?

    private let arguments: ParsedArguments
    private let light: LightSpace
    // The settings for the next transform.
    private var gravity = Gravity.center
    private var color: Color?
    private var mode: Resize.Mode?
    private var filter = Resize.Filter.lanczos3

    init(_ arguments: ParsedArguments) throws(UsageError) {
        self.arguments = arguments
        self.background = try Self.color("--background", arguments)
        self.light = arguments.has("--linear") ? .linear : .sRGB
        for option in ["--mode", "--filter", "--enlarge"]
        where arguments.order.contains(where: { $0.option == option }) && arguments.value("--resize") == nil {
            throw UsageError("\(option) needs --resize")
        }
        // A setting that is given once holds for all, wherever it stands; one that is given again, for what follows.
        var unsaid: Set<String> = []
        for (option, value) in arguments.order where Self.users[option] != nil {
            if arguments.order.count(where: { $0.option == option }) > 1 {
                unsaid.insert(option)
            } else {
                try self.set(option, value?.text ?? "")
            }
        }
        var transforms: [ImageTransform] = []
        for (option, value) in arguments.order {
            if Self.users[option] != nil {
                unsaid.remove(option)
                try self.set(option, value?.text ?? "")
            } else if Self.flags.contains(option) || Self.values.contains(option), !Self.settings.contains(option) {
                if let setting = unsaid.sorted().first(where: { Self.users[$0]?.contains(option) == true }) {
                    throw UsageError(
                        "\(setting) is given more than once, and then holds for what follows it; put one before \(option)"
                    )
                }
                transforms += try self.transforms(option, value?.text ?? "")
            }
        }
        self.pipeline = TransformPipeline(transforms)
    }

    private mutating func set(_ setting: String, _ text: String) throws(UsageError) {
        switch setting {
        case "--gravity":
            guard let gravity = Gravity(text) else {
                let names = Gravity.named.map(\.name).joined(separator: ", ")
                throw UsageError("--gravity takes one of \(names), or a point such as 0.3,0.7, and not \(text)")
            }
            self.gravity = gravity
        case "--background": self.color = try Self.color(text, of: setting)
        case "--mode": self.mode = try Self.named(setting, text)
        default: self.filter = try Self.named(setting, text)
        }
    }

    private func transforms(_ option: String, _ text: String) throws(UsageError) -> [ImageTransform] {
        switch option {
        case "--resize": [.resize(try self.resize(text))]
        case "--crop": [.crop(try self.crop(text))]
        case "--trim": [.trim(Trim(tolerance: UInt8(try Self.whole(option, text, in: 0...255))))]
        case "--rotate":
            [.rotate(degrees: try Self.number(option, text), background: self.color ?? .clear)]
        case "--flip": [.flip(try Self.named(option, text))]
        case "--pad": [.pad(try self.pad(text))]
        case "--extend": [.pad(try self.extend(text))]
        case "--blur": [.blur(.gaussian(sigma: try Self.number(option, text, atLeast: 0), light: self.light))]
        case "--sharpen": [.sharpen(Sharpen(sigma: try Self.number(option, text, atLeast: 0)))]
        case "--pixelate": [.pixelate(size: try Self.whole(option, text, in: 1...1_000_000))]
        case "--brightness": [.adjust(.brightness(try Self.number(option, text, atLeast: 0)))]
        case "--contrast": [.adjust(.contrast(try Self.number(option, text, atLeast: 0)))]
        case "--saturation": [.adjust(.saturation(try Self.number(option, text, atLeast: 0)))]
        case "--gamma": [.adjust(.gamma(try Self.number(option, text, over: 0)))]
        case "--hue": [.adjust(.hue(degrees: try Self.number(option, text)))]
        case "--gray": [.adjust(.grayscale)]
        case "--sepia": [.adjust(.sepia)]
        case "--invert": [.adjust(.invert)]
        case "--tint": [.tint(try Self.color(text, of: option))]
        case "--round": [.roundCorners(RoundCorners(radius: try Self.number(option, text, atLeast: 0)))]
        case "--circle": [.circle()]
        case "--flatten": [.flatten(self.color ?? .white)]
        case "--overlay": [.overlay(Overlay(try Self.image(Argument(text)), placement: .single(self.gravity)))]
        default: try self.pipeline(in: text)
        }
    }

    // MARK: Sizes and parts

    /// A geometry as ImageMagick and vipsthumbnail write it: `800x600`, `800x`, `800`, `x600`, `50%`, and after it `^`, `!`
    /// or `>`.
    private func resize(_ text: String) throws(UsageError) -> Resize {
        var resize = Resize(
            .scale(1),
            mode: self.mode ?? .fit,
            upscales: self.arguments.has("--enlarge"),
            filter: self.filter,
            gravity: self.gravity,
            light: self.light
        )
        var size = text[...]
        guard size.last != "<" else {
            throw UsageError(
                "--resize cannot be told to enlarge only, as \(text) does; use --enlarge, which also shrinks"
            )
        }
        if let mark = size.last, "^!>".contains(mark) {
            size.removeLast()
            switch mark {
            case "^": resize.mode = .cover
            case "!": (resize.mode, resize.upscales) = (.stretch, true)
            default: resize.upscales = false
            }
            guard mark == ">" || self.mode == nil else {
                throw UsageError("--mode and the \(mark) of --resize contradict each other")
            }
        }
        if size.last == "%" {
            guard let percent = Double(size.dropLast()), percent > 0, percent.isFinite, percent <= 100_000 else {
                throw Self.notASize(text)
            }
            resize.size = .scale(percent / 100)
            resize.upscales = text.last != ">" && (resize.upscales || percent > 100)
            return resize
        }
        let sides = size.split(separator: "x", omittingEmptySubsequences: false)
        let numbers = sides.map { Int($0) }
        for (side, number) in zip(sides, numbers) where !side.isEmpty {
            guard let number, (1...Int(Int32.max)).contains(number) else { throw Self.notASize(text) }
        }
        switch (sides.count, numbers.first ?? nil, numbers.last ?? nil) {
        case (1, let width?, _), (2, let width?, nil): resize.size = .width(width)
        case (2, nil, let height?): resize.size = .height(height)
        case (2, let width?, let height?): resize.size = .box(width: width, height: height)
        default: throw Self.notASize(text)
        }
        return resize
    }

    private static func notASize(_ text: String) -> UsageError {
        UsageError("--resize takes a size such as 800x600, 800x, x600, 50%, 800x600^ or 800x600!, and not \(text)")
    }

    /// `WxH+X+Y`, `WxH` by gravity, or a ratio `W:H`.
    private func crop(_ text: String) throws(UsageError) -> Crop {
        let refusal = UsageError("--crop takes an area such as 400x300+16+32, 400x300 or 16:9, and not \(text)")
        let ratio = text.split(separator: ":", omittingEmptySubsequences: false).map { Double($0) ?? .nan }
        if ratio.count == 2 {
            guard ratio.allSatisfy({ $0 > 0 && $0.isFinite }) else { throw refusal }
            return .aspectRatio(ratio[0] / ratio[1], gravity: self.gravity)
        }
        let parts = text.split(separator: "+", omittingEmptySubsequences: false)
        guard let size = Self.box(parts[0]) else { throw refusal }
        if parts.count == 1 { return .size(width: size.width, height: size.height, gravity: self.gravity) }
        guard parts.count == 3, let x = Int(parts[1]), let y = Int(parts[2]), x >= 0, y >= 0 else { throw refusal }
        return .rectangle(x: x, y: y, width: size.width, height: size.height)
    }

    private func pad(_ text: String) throws(UsageError) -> Pad {
        let sides = text.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) ?? -1 }
        guard sides.count == 1 || sides.count == 4, sides.allSatisfy({ (0...1_000_000).contains($0) }) else {
            throw UsageError("--pad takes a number of pixels, or four for top, right, bottom and left, and not \(text)")
        }
        let (top, right, bottom, left) =
            sides.count == 4 ? (sides[0], sides[1], sides[2], sides[3]) : (sides[0], sides[0], sides[0], sides[0])
        return .sides(left: left, top: top, right: right, bottom: bottom, color: self.color ?? .clear)
    }

    private func extend(_ text: String) throws(UsageError) -> Pad {
        guard let size = Self.box(text[...]) else {
            throw UsageError("--extend takes a size such as 800x600, and not \(text)")
        }
        return .size(
            width: size.width,
            height: size.height,
            gravity: self.gravity,
            color: self.color ?? .clear
        )
    }

    private static func box(_ text: Substring) -> (width: Int, height: Int)? {
        let sides = text.split(separator: "x", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
        guard sides.count == 2, sides.allSatisfy({ (1...Int(Int32.max)).contains($0) }) else { return nil }
        return (sides[0], sides[1])
    }

    // MARK: Values

    private static func number(
        _ option: String,
        _ text: String,
        atLeast least: Double = -.infinity,
        over bound: Double = -.infinity
    ) throws(UsageError) -> Double {
        // Hexadecimal numbers would be taken too: 0x10 is written for a radius and a sigma elsewhere.
        guard let number = Double(text), !text.lowercased().contains("x"), number.isFinite, number >= least,
            number > bound
        else {
            let range = bound.isFinite ? " over \(Int(bound))" : least.isFinite ? ", \(Int(least)) or more" : ""
            throw UsageError("\(option) takes a number\(range), and not \(text)")
        }
        return number
    }

    private static func whole(_ option: String, _ text: String, in range: ClosedRange<Int>) throws(UsageError) -> Int {
        guard let number = Int(text), range.contains(number) else {
            throw UsageError("\(option) takes a number, \(range.lowerBound) to \(range.upperBound), and not \(text)")
        }
        return number
    }

    private static func named<Value: RawRepresentable<String> & CaseIterable>(
        _ option: String,
        _ text: String
    ) throws(UsageError) -> Value {
        guard let value = Value(rawValue: text) else {
            let names = Value.allCases.map(\.rawValue).joined(separator: ", ")
            throw UsageError("\(option) takes one of \(names), and not \(text)")
        }
        return value
    }

    private static func color(_ option: String, _ arguments: ParsedArguments) throws(UsageError) -> Color? {
        guard let text = arguments.value(option) else { return nil }
        return try self.color(text, of: option)
    }

    private static func color(_ text: String, of option: String) throws(UsageError) -> Color {
        guard let color = Color(hex: text) else {
            throw UsageError("\(option) takes a colour such as #f80 or #ff8800, and not \(text)")
        }
        return color
    }

    // MARK: Files

    private static func image(_ path: Argument) throws(UsageError) -> Image {
        let limits = DecodingLimits()
        let bytes = try self.bytes(of: path, to: "drawn", atMost: limits.maximumEncodedBytes)
        do {
            return try ImageDecoder(bytes, registry: CoderRegistry(), limits: limits).decode()
        } catch {
            throw UsageError("\(path.text) cannot be drawn: \(ErrorText(error).line)")
        }
    }

    /// The content of a file, which may be a pipe as well: shells name what another command writes as one.
    private static func bytes(of path: Argument, to purpose: String, atMost most: Int) throws(UsageError) -> Data {
        var content = Data()
        do throws(SystemError) {
            let file = try InputFile(path)
            while content.count <= most, case let piece = try file.read(), !piece.isEmpty { content += piece }
        } catch {
            throw UsageError("\(path.text) cannot be \(purpose): \(error)")
        }
        guard content.count <= most else {
            throw UsageError("\(path.text) has more than \(most) bytes; name another file")
        }
        return content
    }

    /// The transforms that a file describes.
    private func pipeline(in path: String) throws(UsageError) -> [ImageTransform] {
        let text = try Self.bytes(of: Argument(path), to: "read", atMost: 1 << 20)
        let decoder = JSONDecoder()
        let folder = path.lastIndex(of: "/").map { path[...$0] } ?? "./"
        decoder.userInfo =
            Overlay.Resolver { source in
                try Self.image(Argument(source.hasPrefix("/") ? source : folder + source))
            }
            .userInfo
        do {
            return try decoder.decode(TransformPipeline.self, from: text).transforms
        } catch let error as UsageError {
            throw error
        } catch let error as DecodingError {
            throw UsageError("\(path) describes no transforms: \(error.reason)")
        } catch {
            throw UsageError("\(path) describes no transforms: \(error)")
        }
    }
}

extension DecodingError {
    /// The mistake and its place, in one line.
    fileprivate var reason: String {
        let context: Context? =
            switch self {
            case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context): context
            case .keyNotFound(let key, let context):
                Context(
                    codingPath: context.codingPath,
                    debugDescription: "\(key.stringValue) is missing",
                    underlyingError: context.underlyingError
                )
            @unknown default: nil
            }
        guard let context else { return "\(self)" }
        let path = context.codingPath.map { $0.intValue.map { "\($0 + 1)." } ?? $0.stringValue }.joined(separator: " ")
        return path.isEmpty ? context.debugDescription : "\(path): \(context.debugDescription)"
    }
}
