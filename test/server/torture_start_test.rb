# frozen_string_literal: true

# test: long
# test: each selector
# test: not sanitized

require "test_helper"
require "open3"
require_relative "conformance/support/client"
require_relative "torture/shim"

# A server whose system calls fail at the start reports that and exits, or serves without what it could not get.
class TortureStartTest < Minitest::Test
  PATIENCE = 60
  FAILURES = { epoll_create1: Errno::EMFILE, eventfd: Errno::EMFILE, epoll_ctl: Errno::ENOSPC, malloc: Errno::ENOMEM,
               calloc: Errno::ENOMEM, realloc: Errno::ENOMEM }.freeze
  # Of functions that a start calls more often, every eighth call fails; in the nightly run each.
  FEW = 12

  def setup
    skip "needs Linux and glibc" unless RUBY_PLATFORM.match?(/linux(-gnu)?\z/)
    @shim = Torture::Shim.new
  end

  def teardown = @shim&.close

  FAILURES.each do |function, failure|
    define_method(:"test_each_#{function}_of_a_start_fails_once") do
      most = calls_of_a_start.fetch(function)
      numbers = Torture::Shim.calls(most, step: most <= FEW ? 1 : 8)
      numbers.each do |number|
        @shim.arm(function, number, failure::Errno)
        outcome = start
        assert outcome, "#{function} #{number} of #{most}: the server does not end"

        assert_sound(outcome, "#{function} #{number} of #{most}")
        # A start that reports a stall of a busy machine makes more calls than another.
        assert_equal @shim.counts.fetch(function) >= number, @shim.fired?, "#{function} #{number} of #{most}"
      end
    end
  end

  private

  def calls_of_a_start
    @shim.arm(:malloc, 0)
    served, output, status = start

    assert(served && status.success?, output) # rubocop:disable Minitest/AssertWithExpectedArgument
    @shim.counts
  end

  # @return [Array(Boolean, String, Process::Status), nil] whether a request was answered, what was printed, and the
  #   end; nil when there was none
  def start
    lib = File.expand_path("../../lib", __dir__)
    input, output, thread = Open3.popen2e(@shim.environment, RbConfig.ruby, "-I#{lib}",
                                          File.join(__dir__, "torture/server.rb"))
    said = +""
    said << output.readline until (port = said[%r{^http://.*:(\d+)$}, 1]) || output.eof?
    # The call may be one of the first request's own: then the second one is answered.
    served = port && Array.new(2) { served?(port.to_i) }.any?
    input.close
    unless thread.join(PATIENCE)
      Process.kill(:KILL, thread.pid)
      return
    end
    [served, said + output.read, thread.value]
  ensure
    output&.close
  end

  def served?(port)
    client = Conformance::Client.new(port, PATIENCE)
    client.send_at_once("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    client.answer&.status == 200
  rescue SystemCallError
    false
  ensure
    client&.close
  end

  def assert_sound(outcome, what)
    served, output, status = outcome

    refute_predicate status, :signaled?, "#{what}: #{status}\n#{output}"
    return if served && status.success?

    refute_predicate status, :success?, what
    assert_match(/Errno::|failed to allocate memory/, output, what)
  end
end
