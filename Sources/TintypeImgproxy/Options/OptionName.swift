// SPDX-License-Identifier: Apache-2.0

/// The options of imgproxy's open-source edition, with their long names in URLs.
enum OptionName: String, CaseIterable {
    case resize, size, width, height, zoom, dpr, enlarge, extend, gravity, crop, trim, padding, rotate, flip
    case background, blur, sharpen, pixelate, watermark, quality, format, raw, expires, preset
    case resizingType = "resizing_type"
    case minimumWidth = "min-width"
    case minimumHeight = "min-height"
    case extendAspectRatio = "extend_aspect_ratio"
    case autoRotate = "auto_rotate"
    case stripMetadata = "strip_metadata"
    case keepCopyright = "keep_copyright"
    case stripColorProfile = "strip_color_profile"
    case preserveHDR = "preserve_hdr"
    case enforceThumbnail = "enforce_thumbnail"
    case formatQuality = "format_quality"
    case maximumBytes = "max_bytes"
    case skipProcessing = "skip_processing"
    case cacheBuster = "cachebuster"
    case fileName = "filename"
    case returnAttachment = "return_attachment"
    case maximumSourceResolution = "max_src_resolution"
    case maximumSourceFileSize = "max_src_file_size"
    case maximumAnimationFrames = "max_animation_frames"
    case maximumAnimationFrameResolution = "max_animation_frame_resolution"
    case maximumResultDimension = "max_result_dimension"

    /// Finds an option by its long name or a short one.
    init?(urlName: String) {
        guard let name = Self.names[urlName] else { return nil }
        self = name
    }

    /// Whether the option sets a limit.
    var isSecurityOption: Bool {
        switch self {
        case .maximumSourceResolution, .maximumSourceFileSize, .maximumAnimationFrames,
            .maximumAnimationFrameResolution, .maximumResultDimension:
            true
        default: false
        }
    }

    /// The largest number of arguments.
    var maximumArgumentCount: Int {
        switch self {
        case .resize: 8
        case .size, .watermark: 7
        case .crop: 5
        case .extend, .extendAspectRatio, .trim, .padding: 4
        case .gravity, .background: 3
        case .zoom, .flip, .fileName: 2
        case .formatQuality, .skipProcessing, .preset: 64
        default: 1
        }
    }

    private static let names: [String: OptionName] = {
        var names = Dictionary(uniqueKeysWithValues: OptionName.allCases.map { ($0.rawValue, $0) })
        names.merge(Self.shortNames) { _, name in name }
        return names
    }()

    private static let shortNames: [String: OptionName] = [
        "rs": .resize, "s": .size, "rt": .resizingType, "w": .width, "h": .height, "mw": .minimumWidth,
        "mh": .minimumHeight, "z": .zoom, "el": .enlarge, "ex": .extend, "extend_ar": .extendAspectRatio,
        "exar": .extendAspectRatio, "g": .gravity, "c": .crop, "t": .trim, "pd": .padding, "ar": .autoRotate,
        "rot": .rotate, "fl": .flip, "bg": .background, "bl": .blur, "sh": .sharpen, "pix": .pixelate,
        "wm": .watermark, "sm": .stripMetadata, "kcr": .keepCopyright, "scp": .stripColorProfile, "ph": .preserveHDR,
        "eth": .enforceThumbnail, "q": .quality, "fq": .formatQuality, "mb": .maximumBytes, "f": .format,
        "ext": .format, "skp": .skipProcessing, "cb": .cacheBuster, "exp": .expires, "fn": .fileName,
        "att": .returnAttachment, "pr": .preset, "msr": .maximumSourceResolution, "msfs": .maximumSourceFileSize,
        "maf": .maximumAnimationFrames, "mafr": .maximumAnimationFrameResolution, "mrd": .maximumResultDimension,
    ]

    /// The names of options that only imgproxy Pro has.
    static let proNames: Set<String> = [
        "resizing_algorithm", "ra", "objects_position", "obj_pos", "op", "crop_aspect_ratio", "crop_ar", "car",
        "crop_objects", "co", "background_alpha", "bga", "adjust", "a", "brightness", "br", "contrast", "saturation",
        "sa", "monochrome", "mc", "duotone", "dt", "unsharp_masking", "ush", "blur_areas", "ba", "progressive_blur",
        "pbl", "blur_detections", "bd", "draw_detections", "dd", "colorize", "col", "gradient", "gr", "watermark_url",
        "wmu", "watermark_text", "wmt", "watermark_size", "wms", "watermark_rotate", "wm_rot", "wmr",
        "watermark_shadow", "wmsh", "style", "st", "dpi", "color_profile", "cp", "icc", "autoquality", "aq",
        "jpeg_options", "jpgo", "png_options", "pngo", "webp_options", "webpo", "avif_options", "avifo", "page", "pg",
        "pages", "pgs", "disable_animation", "da", "video_thumbnail_second", "vts", "video_thumbnail_keyframes", "vtk",
        "video_thumbnail_tile", "vtt", "video_thumbnail_animation", "vta", "fallback_image_url", "fiu", "bypass_cache",
        "bc", "cache_tags", "ct", "hashsum", "hs",
    ]
}
