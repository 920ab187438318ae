import CZimg
import TintypeImage

/// Resamples one buffer with zimg, streaming rows: besides the target it holds a few rows.
struct Resampler {
    let source: PixelBuffer
    let geometry: ResizeGeometry
    let filter: Resize.Filter

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

/// One zimg filter graph; freed with the value.
struct ResampleGraph: ~Copyable {
    private let graph: OpaquePointer
    private let source: (width: Int, height: Int)
    private let target: (width: Int, height: Int)

    init(
        from source: inout zimg_image_format,
        to target: inout zimg_image_format,
        parameters: inout zimg_graph_builder_params
    ) throws(TransformError) {
        guard let graph = zimg_filter_graph_build(&source, &target, &parameters) else { throw Self.lastError() }
        self.graph = graph
        self.source = (Int(source.width), Int(source.height))
        self.target = (Int(target.width), Int(target.height))
    }

    deinit {
        zimg_filter_graph_free(self.graph)
    }

    /// Streams the rows of `source` through the graph into `target`.
    ///
    /// - Throws: `TransformError.Code.failed`, `ImageError` when memory runs out, or `CancellationError` between two rows.
    borrowing func process(from source: InterleavedRows, to target: InterleavedRows) throws {
        var inputRows: UInt32 = 0
        var outputRows: UInt32 = 0
        var scratchSize = 0
        zimg_filter_graph_get_input_buffering(self.graph, &inputRows)
        zimg_filter_graph_get_output_buffering(self.graph, &outputRows)
        zimg_filter_graph_get_tmp_size(self.graph, &scratchSize)
        let input = try PlaneRing(rows: inputRows, of: self.source, planes: source.channelCount)
        let output = try PlaneRing(rows: outputRows, of: self.target, planes: target.channelCount)
        let scratch = try AlignedMemory(byteCount: scratchSize)
        let unpacking = RowTransfer(rows: source, ring: input, splits: true)
        let packing = RowTransfer(rows: target, ring: output, splits: false)
        var from = input.constBuffer
        var to = output.buffer
        let code = zimg_filter_graph_process(
            self.graph,
            &from,
            &to,
            scratch.start,
            RowTransfer.callback,
            Unmanaged.passUnretained(unpacking).toOpaque(),
            RowTransfer.callback,
            Unmanaged.passUnretained(packing).toOpaque()
        )
        // The graph held them only by their addresses.
        withExtendedLifetime((unpacking, packing)) {}
        guard code != ZIMG_ERROR_SUCCESS else { return }
        try Task.checkCancellation()
        throw Self.lastError()
    }

    private static func lastError() -> TransformError {
        var message = [CChar](repeating: 0, count: 256)
        zimg_get_last_error(&message, message.count)
        zimg_clear_last_error()
        let reason = String(decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return TransformError(
            code: .failed,
            message: "The picture can't be resampled (\(reason)); choose another size."
        )
    }
}

/// What a row callback moves: interleaved rows on one side, plane rows on the other.
private final class RowTransfer {
    private let rows: InterleavedRows
    private let ring: PlaneRing
    /// Whether interleaved rows become plane rows, rather than the other way round.
    private let splits: Bool

    init(rows: InterleavedRows, ring: PlaneRing, splits: Bool) {
        self.rows = rows
        self.ring = ring
        self.splits = splits
    }

    /// What the graph calls, with the object as its context; other than 0 ends the work.
    static let callback: zimg_filter_graph_callback = { context, row, left, right in
        guard let context else { return 1 }
        let transfer = Unmanaged<RowTransfer>.fromOpaque(context).takeUnretainedValue()
        return transfer.move(Int(row), left: Int(left), right: Int(right)) ? 0 : 1
    }

    private func move(_ row: Int, left: Int, right: Int) -> Bool {
        // A few rows may be enlarged to very many.
        if row % 8 == 0, Task.isCancelled { return false }
        if self.splits {
            self.rows.split(row: row, left: left, right: right) { self.ring.row(row, plane: $0) }
        } else {
            self.rows.join(row: row, left: left, right: right) { self.ring.row(row, plane: $0) }
        }
        return true
    }
}

/// The last few rows of each plane, as many as the graph looks at together.
private final class PlaneRing {
    private let planeCount: Int
    private let bytesPerRow: Int
    private let mask: UInt32
    private let planeSize: Int
    private let memory: AlignedMemory

    init(rows: UInt32, of size: (width: Int, height: Int), planes: Int) throws(ImageError) {
        self.planeCount = planes
        self.bytesPerRow = (size.width + PixelLayout.alignment - 1) / PixelLayout.alignment * PixelLayout.alignment
        // The number of rows is a power of two, less one as a mask; all bits mean every row.
        self.mask = zimg_select_buffer_mask(rows)
        self.planeSize = self.bytesPerRow * (self.mask == .max ? size.height : Int(self.mask) + 1)
        self.memory = try AlignedMemory(byteCount: self.planeSize * planes)
    }

    private var base: UnsafeMutableRawPointer { self.memory.start }

    func row(_ row: Int, plane: Int) -> UnsafeMutablePointer<UInt8> {
        (self.base + self.planeSize * plane + (row & Int(self.mask)) * self.bytesPerRow)
            .assumingMemoryBound(to: UInt8.self)
    }

    var constBuffer: zimg_image_buffer_const {
        var buffer = zimg_image_buffer_const()
        buffer.version = UInt32(czimg_api_version)
        for plane in 0..<self.planeCount {
            czimg_set_plane_const(&buffer, CInt(plane), self.base + self.planeSize * plane, self.bytesPerRow, self.mask)
        }
        return buffer
    }

    var buffer: zimg_image_buffer {
        var buffer = zimg_image_buffer()
        buffer.version = UInt32(czimg_api_version)
        for plane in 0..<self.planeCount {
            czimg_set_plane(&buffer, CInt(plane), self.base + self.planeSize * plane, self.bytesPerRow, self.mask)
        }
        return buffer
    }
}

/// The rows of an interleaved buffer, split into planes and joined again: zimg works on planes.
struct InterleavedRows {
    private let base: UnsafeRawPointer?
    private let bytesPerRow: Int
    let channelCount: Int

    init(base: UnsafeRawPointer?, layout: PixelLayout) {
        self.base = base
        self.bytesPerRow = layout.planes[0].bytesPerRow
        self.channelCount = layout.format.channelCount
    }

    /// Writes the samples of one row, from column `left` up to `right`, to one plane row each.
    func split(row: Int, left: Int, right: Int, to planes: (Int) -> UnsafeMutablePointer<UInt8>) {
        guard let base else { return }
        let row = (base + row * self.bytesPerRow).assumingMemoryBound(to: UInt8.self)
        switch self.channelCount {
        case 1: planes(0).advanced(by: left).update(from: row + left, count: right - left)
        case 3:
            let (red, green, blue) = (planes(0), planes(1), planes(2))
            for column in left..<right {
                red[column] = row[column * 3]
                green[column] = row[column * 3 + 1]
                blue[column] = row[column * 3 + 2]
            }
        default:
            let (red, green, blue, alpha) = (planes(0), planes(1), planes(2), planes(3))
            for column in left..<right {
                red[column] = row[column * 4]
                green[column] = row[column * 4 + 1]
                blue[column] = row[column * 4 + 2]
                alpha[column] = row[column * 4 + 3]
            }
        }
    }

    /// Reads the samples of one row back from one plane row each.
    func join(row: Int, left: Int, right: Int, from planes: (Int) -> UnsafeMutablePointer<UInt8>) {
        guard let base else { return }
        // Only the target's rows are joined, and its memory is mutable.
        let row = UnsafeMutablePointer(mutating: (base + row * self.bytesPerRow).assumingMemoryBound(to: UInt8.self))
        switch self.channelCount {
        case 1: row.advanced(by: left).update(from: planes(0) + left, count: right - left)
        case 3:
            let (red, green, blue) = (planes(0), planes(1), planes(2))
            for column in left..<right {
                row[column * 3] = red[column]
                row[column * 3 + 1] = green[column]
                row[column * 3 + 2] = blue[column]
            }
        default:
            let (red, green, blue, alpha) = (planes(0), planes(1), planes(2), planes(3))
            for column in left..<right {
                row[column * 4] = red[column]
                row[column * 4 + 1] = green[column]
                row[column * 4 + 2] = blue[column]
                row[column * 4 + 3] = alpha[column]
            }
        }
    }
}
