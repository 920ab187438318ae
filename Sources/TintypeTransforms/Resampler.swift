import CZimg
import TintypeImage

/// Resamples one buffer with zimg, streaming rows: besides the target it holds a few rows.
struct Resampler {
    private let source: PixelBuffer
    private let geometry: ResizeGeometry
    private let filter: Resize.Filter

    init(from source: PixelBuffer, geometry: ResizeGeometry, filter: Resize.Filter) {
        self.source = source
        self.geometry = geometry
        self.filter = filter
    }

    /// The resampled pixels, in the source's format.
    func resample() throws -> PixelBuffer {
        let graph = try self.makeGraph()
        let layout = try PixelLayout(
            format: self.source.format,
            width: self.geometry.width,
            height: self.geometry.height
        )
        return try PixelBuffer(
            layout,
            fillingUnsafely: { target in
                try self.source.withUnsafeBytes { source in
                    try graph.process(
                        from: InterleavedRows(base: source.baseAddress, layout: self.source.layout),
                        to: InterleavedRows(base: UnsafeRawPointer(target.baseAddress), layout: layout)
                    )
                }
            }
        )
    }

    private func makeGraph() throws(TransformError) -> ResampleGraph {
        var from = Self.format(self.source.format, width: self.source.width, height: self.source.height)
        from.active_region.left = self.geometry.left
        from.active_region.top = self.geometry.top
        from.active_region.width = self.geometry.sourceWidth
        from.active_region.height = self.geometry.sourceHeight
        var to = Self.format(self.source.format, width: self.geometry.width, height: self.geometry.height)
        var parameters = zimg_graph_builder_params()
        zimg_graph_builder_params_default(&parameters, UInt32(czimg_api_version))
        switch self.filter {
        case .lanczos3:
            parameters.resample_filter = ZIMG_RESIZE_LANCZOS
            parameters.filter_param_a = 3
        case .bicubic:
            parameters.resample_filter = ZIMG_RESIZE_BICUBIC
            parameters.filter_param_a = 0
            parameters.filter_param_b = 0.5
        case .bilinear: parameters.resample_filter = ZIMG_RESIZE_BILINEAR
        case .nearest: parameters.resample_filter = ZIMG_RESIZE_POINT
        }
        return try ResampleGraph(from: &from, to: &to, parameters: &parameters)
    }

    private static func format(_ format: PixelFormat, width: Int, height: Int) -> zimg_image_format {
        var result = zimg_image_format()
        zimg_image_format_default(&result, UInt32(czimg_api_version))
        result.width = UInt32(width)
        result.height = UInt32(height)
        result.pixel_type = ZIMG_PIXEL_BYTE
        result.depth = 8
        result.pixel_range = ZIMG_RANGE_FULL
        let isGray = format == .gray8
        result.color_family = isGray ? ZIMG_COLOR_GREY : ZIMG_COLOR_RGB
        result.matrix_coefficients = isGray ? ZIMG_MATRIX_UNSPECIFIED : ZIMG_MATRIX_RGB
        result.alpha = format.hasAlpha ? ZIMG_ALPHA_STRAIGHT : ZIMG_ALPHA_NONE
        return result
    }
}
