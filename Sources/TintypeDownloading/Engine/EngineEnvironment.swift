import FoundationEssentials

/// The time of day and chance, which tests choose.
struct EngineEnvironment: Sendable {
    var date: @Sendable () -> Date = { Date() }
    /// A number from 0 to 1.
    var random: @Sendable () -> Double = { Double.random(in: 0...1) }
}
