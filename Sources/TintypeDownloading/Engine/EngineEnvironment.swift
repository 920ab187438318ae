import FoundationEssentials

/// The time of day and chance, which tests choose.
struct EngineEnvironment: Sendable {
    var date: @Sendable () -> Date = { Date() }
    /// A number from 0 to 1.
    var random: @Sendable () -> Double = { Double.random(in: 0...1) }
    /// How long bytes may not come back, or a transfer that may exceed the budget not receive any, until another one
    /// may exceed it.
    var memoryPatience: Duration = .seconds(1)
}
