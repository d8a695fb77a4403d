# frozen_string_literal: true

# ruby benchmark/alarms.rb [NUMBER…]
#
# Time limits of a loop (Heddle.timeout): µs to add one and to cancel one, while so many are set. They are added at
# random distances or all at one distance, and cancelled in random order. The least of five runs.

require_relative "../bin/support/gem_paths"
require "heddle"

# See above.
class Alarms
  include Heddle::MonotonicClock

  RUNS = 5

  def initialize(alarms)
    @alarms = alarms
  end

  # @param distances [Array<Numeric>] seconds
  # @return [Array(Float, Float)] µs
  def run(distances)
    Array.new(RUNS) { run_once(distances) }.transpose.map { |seconds| seconds.min * 1e6 / distances.size }
  end

  private

  def run_once(distances)
    GC.start
    set = Array.new(distances.size)
    added = measure { distances.each_with_index { |seconds, i| set[i] = @alarms.add(seconds, self, :inspect) } }
    set.shuffle!
    [added, measure { set.each { |alarm| @alarms.remove(alarm) } }]
  end

  def measure
    start = now
    yield
    now - start
  end
end

Heddle.run do
  alarms = Alarms.new(Heddle::Concurrency::Context.of(Fiber.scheduler).alarms)
  numbers = ARGV.empty? ? [10_000, 100_000] : ARGV.map { |number| Integer(number) }
  numbers.each do |count|
    { "random distances" => Array.new(count) { 1_000 + (rand * 1_000) }, "one distance" => [1_000] * count }
      .each do |name, distances|
        add, cancel = alarms.run(distances).map { |microseconds| microseconds.round(2) }
        puts "#{count} alarms at #{name}: #{add} µs to add, #{cancel} µs to cancel"
      end
  end
end
