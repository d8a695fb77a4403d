# frozen_string_literal: true

# ruby benchmark/short_loop.rb [LOOPS]
#
# CPU time of a loop that has one task and ends with it, with each selector that this machine has: what a fan-out in a
# thread of Puma pays beside its requests.

require_relative "../bin/support/gem_paths"
require "heddle"

LOOPS = Integer(ARGV.first || 2_000)

def cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

Heddle::Selector.available.each do |selector|
  10.times { Heddle.run(selector:) { nil } }
  before = cpu
  LOOPS.times { Heddle.run(selector:) { nil } }
  puts "#{selector.to_s.ljust(10)} #{((cpu - before) / LOOPS * 1e6).round} µs"
end
