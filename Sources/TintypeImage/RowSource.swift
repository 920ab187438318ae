/// Gives the rows of a picture one at a time, from the top: for work that needs no whole picture.
///
/// Used by one thread at a time.
public protocol RowSource: AnyObject {
    /// The size and format of the picture; its planes say how long a row is.
    var layout: PixelLayout { get }

    /// Writes the samples of the next row to the start of `row`, which holds at least one row.
    ///
    /// - Throws: What the source throws for damaged input; `CancellationError`.
    func readRow(into row: UnsafeMutableRawBufferPointer) throws
}
