# frozen_string_literal: true

require "tempfile"

module Heddle
  module CLI
    class Demo
      # Two ways to block a thread.
      module Blockade
        SECONDS = 2.0

        module_function

        # Calls flock(2), which waits until another thread unlocks the file. Ruby releases the GVL during this call.
        def wait(seconds = SECONDS)
          Tempfile.create("heddle") do |file|
            file.flock(File::LOCK_EX)
            owner = Thread.new { [sleep(seconds), file.flock(File::LOCK_UN)] }
            File.open(file.path) { |other| other.flock(File::LOCK_EX) }
          ensure
            owner&.kill&.join
          end
        end

        # Computes in Ruby.
        def compute(seconds = SECONDS)
          ends = MonotonicClock.now + seconds
          number = 0
          number += 1 while MonotonicClock.now < ends
        end

        # The ways, by the names that the query uses.
        WAYS = { "flock" => method(:wait), "ruby" => method(:compute) }.freeze
      end
    end
  end
end
