# frozen_string_literal: true

# Input that comes while the loop of the calling thread waits, and no fiber runs.
module Feeding
  # Writes five bytes at most while the block runs, each when the one before was read and the thread waits.
  #
  # @param reader [IO] of the same pipe
  # @param writer [IO]
  def feeding(reader, writer)
    loop_thread = Thread.current
    over = false
    feeder = Thread.new do
      5.times do
        Thread.pass until over || (loop_thread.stop? && !reader.wait_readable(0))
        writer << "x"
      end
    end
    yield
  ensure
    over = true
    feeder&.join
  end
end
