# frozen_string_literal: true

# test: not sanitized

require "test_helper"
require "open3"

# What the extension does with an error that Ruby code never sees.
class TakeErrinfoTest < Minitest::Test
  LIMIT = 60
  # The log of rejections fails for want of memory, in a C function that only C functions have called.
  PROGRAM = <<~'RUBY'
    require "socket"
    require "heddle/http"
    require "heddle/net/sockets"

    exhaustion = [].method(:push).to_proc >> Hash.new(1 << 61).to_proc >> "x".method(:*)
    mine, client = UNIXSocket.pair
    loop = Thread.current
    Thread.new do
      client.write("no request\r\n\r\n")
      print client.read[/\AHTTP\/1.1 \d+/]
      loop.raise("interrupted")
    end
    Fiber.set_scheduler(scheduler = Heddle::Scheduler.new)
    Fiber.schedule do
      engine = Heddle::HTTP::Engine.new(on_rejection: exhaustion)
      Heddle::Net::Sockets.new(scheduler, service: engine) {}.adopt(mine)
      mine.close
      sleep
    end
    begin
      scheduler.run
    rescue RuntimeError => e
      print " ", e.message
    end
  RUBY

  # In a process of its own: a thread that takes no interrupt doesn't let go of the others either.
  def test_a_loop_that_ran_out_of_memory_still_gets_exceptions_raised_at_its_thread
    assert_equal "HTTP/1.1 400 interrupted", output_of(PROGRAM)
  end

  private

  def output_of(program)
    lib = File.expand_path("../../lib", __dir__)
    Open3.popen2e(RbConfig.ruby, "-I#{lib}", "-e", program) do |input, output, process|
      input.close
      unless process.join(LIMIT)
        Process.kill(:KILL, process.pid)
        flunk "hangs after #{LIMIT} s: #{output.read}"
      end
      output.read
    end
  end
end
