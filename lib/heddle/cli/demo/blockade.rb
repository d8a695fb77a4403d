# frozen_string_literal: true

require "tempfile"

module Heddle
  module CLI
    class Demo
      # Three ways to hold up a thread. Nothing in here gives way of itself.
      module Blockade
        # Seconds of a blockade that ends by the clock.
        SECONDS = 2.0
        # Seconds, about, of the one that nothing can interrupt.
        HELD = 1.0
        # Bits of the exponent that tells how fast this machine is.
        PROBE = 1024
        private_constant :SECONDS, :HELD, :PROBE

        module_function

        # A native call that waits and releases Ruby's lock: for a file that another process has locked.
        def wait(seconds = SECONDS)
          Tempfile.create("heddle") do |file|
            file.flock(File::LOCK_EX)
            owner = Thread.new { [sleep(seconds), file.flock(File::LOCK_UN)] }
            File.open(file.path) { |other| other.flock(File::LOCK_EX) }
          ensure
            owner&.kill&.join
          end
        end

        # Ruby that computes.
        def compute(seconds = SECONDS)
          ends = now + seconds
          number = 0
          number += 1 while now < ends
        end

        # One native call that keeps Ruby's lock. It takes longer with each bit of the exponent: a short call shows how
        # many bits this machine needs. The quickest of three counts, as other programs slow down some of them.
        def hold(seconds = HELD)
          modulus = (1 << 4096) - 3
          quickest = Array.new(3) do
            began = now
            3.pow((1 << PROBE) - 1, modulus)
            now - began
          end.min
          bits = (PROBE * seconds / quickest).to_i.clamp(PROBE, 1_000_000)
          3.pow((1 << bits) - 1, modulus)
        end

        def now
          MonotonicClock.now
        end
      end
    end
  end
end
