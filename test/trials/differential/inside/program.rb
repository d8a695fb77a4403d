# frozen_string_literal: true

require "stringio"

module Trials
  # A program of programs/: each of its examples prints what must be the same in all four ways. With the protections it
  # also prints where another fiber has run during a callback of a library that is not declared re-entrant, which is a
  # difference.
  module Program
    # Runs the block, and so long as it runs, other fibers.
    # @yieldparam out [StringIO] what it prints
    def self.example(name)
      return if Inside.skip?(name)

      out = StringIO.new
      Inside.run(name) do
        yield out
      rescue StandardError => e
        out.puts "#{e.class}: #{e.message}"
      end
      Inside.printed(name, [out.string, *callback_waits].join)
    end

    def self.callback_waits
      return [] unless defined?(Heddle) && Heddle.enabled.include?(:callback_report)

      Heddle::CallbackReport.recent.map { |wait| "#{wait}\n" }
    end
    private_class_method :callback_waits

    # Runs the blocks at once: threads where there is no loop.
    # @return [Array] what they returned
    def self.together(*blocks)
      return blocks.map { |block| Thread.new(&block) }.map(&:value) unless defined?(Heddle) && Fiber.scheduler

      Heddle.map(blocks, &:call)
    end

    # Seconds that the block computes in Ruby.
    def self.compute(seconds)
      ended = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      nil until Process.clock_gettime(Process::CLOCK_MONOTONIC) > ended
    end
  end
end
