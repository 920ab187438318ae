import CZimg
import TintypeImage

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
    /// - Throws: `TransformError.Code.failed`, or `CancellationError` between two rows.
    borrowing func process(from source: InterleavedRows, to target: InterleavedRows) throws {
        var inputRows: UInt32 = 0
        var outputRows: UInt32 = 0
        var scratchSize = 0
        zimg_filter_graph_get_input_buffering(self.graph, &inputRows)
        zimg_filter_graph_get_output_buffering(self.graph, &outputRows)
        zimg_filter_graph_get_tmp_size(self.graph, &scratchSize)
        let input = PlaneRing(rows: inputRows, of: self.source, planes: source.channelCount)
        let output = PlaneRing(rows: outputRows, of: self.target, planes: target.channelCount)
        let scratch = UnsafeMutableRawPointer.allocate(
            byteCount: max(64, scratchSize),
            alignment: PixelLayout.alignment
        )
        defer { scratch.deallocate() }
        let unpacking = RowTransfer(rows: source, ring: input)
        let packing = RowTransfer(rows: target, ring: output)
        var from = input.constBuffer
        var to = output.buffer
        let code = zimg_filter_graph_process(
            self.graph,
            &from,
            &to,
            scratch,
            { context, row, left, right in
                guard let transfer = RowTransfer.from(context) else { return 1 }
                if row % 8 == 0, Task.isCancelled { return 1 }
                transfer.rows.split(row: Int(row), left: Int(left), right: Int(right)) {
                    transfer.ring.row(Int(row), plane: $0)
                }
                return 0
            },
            Unmanaged.passUnretained(unpacking).toOpaque(),
            { context, row, left, right in
                guard let transfer = RowTransfer.from(context) else { return 1 }
                // A few rows may be enlarged to very many.
                if row % 8 == 0, Task.isCancelled { return 1 }
                transfer.rows.join(row: Int(row), left: Int(left), right: Int(right)) {
                    transfer.ring.row(Int(row), plane: $0)
                }
                return 0
            },
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
    let rows: InterleavedRows
    let ring: PlaneRing

    init(rows: InterleavedRows, ring: PlaneRing) {
        self.rows = rows
        self.ring = ring
    }

    static func from(_ context: UnsafeMutableRawPointer?) -> RowTransfer? {
        context.map { Unmanaged<RowTransfer>.fromOpaque($0).takeUnretainedValue() }
    }
}

/// The last few rows of each plane, as many as the graph looks at together.
private final class PlaneRing {
    private let planeCount: Int
    private let bytesPerRow: Int
    private let mask: UInt32
    private let planeSize: Int
    private let base: UnsafeMutableRawPointer

    init(rows: UInt32, of size: (width: Int, height: Int), planes: Int) {
        self.planeCount = planes
        self.bytesPerRow = (size.width + PixelLayout.alignment - 1) / PixelLayout.alignment * PixelLayout.alignment
        // The number of rows is a power of two, less one as a mask; all bits mean every row.
        self.mask = zimg_select_buffer_mask(rows)
        self.planeSize = self.bytesPerRow * (self.mask == .max ? size.height : Int(self.mask) + 1)
        self.base = .allocate(byteCount: self.planeSize * planes, alignment: PixelLayout.alignment)
    }

    deinit {
        self.base.deallocate()
    }

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
