# frozen_string_literal: true

require "socket"

module Bench
  # One line of the table: a piece of work that every contestant does in the same way. A subclass says what it is
  # called and measured in, and does the work in `measure`, which runs in a child process of its own.
  class Row
    # @return [Array<Row>] the lines that this kind of work stands for
    def self.variants = [new]

    # @return [String] the word for --only
    def key = raise(NotImplementedError)

    # @return [String] the line's heading
    def title = raise(NotImplementedError)

    # @return [String] the unit of :value
    def unit = raise(NotImplementedError)

    # @return [Symbol] :lower or :higher
    def better = :lower

    # Whether "times as good as the best peer" says something about the figure: not where the best is next to nothing.
    #
    # @return [Boolean]
    def compared? = true

    # @return [Integer] seconds after which a child that has not answered is ended
    def time_limit = 30

    # @return [Integer, nil] the core to keep the child on; the load, where there is one, runs on core 1
    def core = nil

    # @return [Array<Symbol>] what is measured beside the value and shown in the details
    def details = []

    # @return [Array<Symbol>] those of them that have a line of their own in the first table
    def shown = []

    # @return [Array<Goal>] what Heddle should reach
    def goals = []

    # @return [Hash] sizes of the work; --quick makes them small
    def sizes(quick:) = raise(NotImplementedError)

    # @return [String, nil] why this contestant does not take part, nil when it does
    def excludes(_contestant) = nil

    # Things that the row needs beside the contestants, a server to talk to for instance. Runs in the parent.
    #
    # @yieldparam extra [Hash] merged into the sizes that `measure` gets
    def around(_quick) = yield({})

    # Runs in the child.
    #
    # @param contestant [Contestant]
    # @param size [Hash] what `sizes` and `around` gave
    # @return [Hash] :value in `unit`, and whatever `details` names
    def measure(_contestant, _size) = raise(NotImplementedError)

    # Runs in the parent while the child does its work; a row that drives its child from outside overrides it.
    #
    # @param child [Child]
    # @param size [Hash]
    # @return [Hash] the sample
    def drive(child, _size) = child.result

    private

    # @return [Array(Float, Float)] seconds by the clock, and of CPU in all threads, that the block took
    def timed
      cpu = ProcessUsage.cpu_seconds
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      yield
      [Process.clock_gettime(Process::CLOCK_MONOTONIC) - started, ProcessUsage.cpu_seconds - cpu]
    end

    # A figure is worth nothing if the work was not done.
    def check(done, expected, what)
      raise "only #{done} of #{expected} #{what}" unless done == expected
    end
  end
end
