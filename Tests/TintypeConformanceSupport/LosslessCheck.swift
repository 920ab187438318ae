// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeCoding

/// A check that turns a JPEG in every lossless way and back, and compares the coefficients.
public struct LosslessCheck: Sendable {
    /// The number of files that were transformed.
    public private(set) var changed = 0
    /// The number of transforms whose coefficients were compared.
    public private(set) var transforms = 0
    /// The number of transforms that were reversed and compared with the original.
    public private(set) var inverses = 0
    /// The number of refused files by error.
    public private(set) var refused: [String: Int] = [:]

    public init() {}

    private static let ways: [(JPEGTransform.Turn, JPEGTransform.Coding)] =
        JPEGTransform.Turn.allCases.map { ($0, .optimizedTables) }
        + [(.none, .standardTables), (.rotate90, .standardTables), (.none, .progressive), (.transverse, .progressive)]

    /// Returns the faults in the transforms of one file, or an empty list if the file cannot be transformed at all.
    ///
    /// - Throws: Any error except a `CodingError`.
    public mutating func faults(of data: Data, limits: DecodingLimits = DecodingLimits()) throws -> [String] {
        do {
            _ = try JPEGTransform(coding: .optimizedTables, allowsTruncated: true).apply(to: data, limits: limits)
        } catch let error as CodingError {
            self.refused[error.code.description, default: 0] += 1
            return []
        }
        // The transform repairs a file that is cut within a table, but libjpeg cannot read it.
        guard let source = JPEGCoefficients(data) else {
            self.refused["unread by libjpeg", default: 0] += 1
            return []
        }
        var faults: [String] = []
        for (turn, coding) in Self.ways {
            do {
                let fault = try self.fault(of: data, source, turn, coding, limits)
                if let fault { faults.append("\(turn), \(coding): \(fault)") }
            } catch let error as CodingError {
                // The image is narrower than one block.
                if error.code != .notLossless { faults.append("\(turn), \(coding): \(error)") }
            }
        }
        self.changed += 1
        return faults
    }

    private mutating func fault(
        of data: Data,
        _ source: JPEGCoefficients,
        _ turn: JPEGTransform.Turn,
        _ coding: JPEGTransform.Coding,
        _ limits: DecodingLimits
    ) throws -> String? {
        let transform = JPEGTransform(turn: turn, coding: coding, metadata: .none, allowsTruncated: true)
        let result = try transform.apply(to: data, limits: limits)
        guard let turned = JPEGCoefficients(result.data) else { return "libjpeg reads no coefficients of the result" }
        guard turned.width == result.width, turned.height == result.height else { return "its size is another" }
        guard turned.colorSpace == source.colorSpace else { return "its colours are another" }
        if let fault = turned.difference(from: source, turned: turn) { return fault }
        self.transforms += 1
        guard result.trimmedColumns == 0, result.trimmedRows == 0 else { return nil }
        let inverse: JPEGTransform.Turn = turn == .rotate90 ? .rotate270 : turn == .rotate270 ? .rotate90 : turn
        let back = try JPEGTransform(turn: inverse, coding: coding).apply(to: result.data, limits: limits)
        // An edge with a partial block cannot be turned back.
        guard back.trimmedColumns == 0, back.trimmedRows == 0 else { return nil }
        self.inverses += 1
        guard let before = JPEGCoefficients(back.data) else { return "libjpeg reads no coefficients of the way back" }
        return before.difference(from: source).map { "after the way back, \($0)" }
    }
}
