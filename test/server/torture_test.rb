# frozen_string_literal: true

# test: each selector
# test: not sanitized

require "test_helper"
require "json"
require "open3"
require_relative "torture/conversation"
require_relative "torture/shim"

# Each system call while a request is served fails once, in turn, as the system might let it fail (every second one
# outside of the nightly). The server neither crashes nor hangs nor loses a descriptor, and unaffected clients are
# served.
class TortureTest < Minitest::Test
  # Seconds for what the server does by itself, on a machine that is busy with other tests.
  PATIENCE = 30

  # What can happen to a call without anything being wrong: nobody may notice.
  HARMLESS = { recv: [Errno::EINTR, Errno::EAGAIN, :short], recvmsg: [Errno::EINTR, Errno::EAGAIN, :short],
               read: [Errno::EINTR, Errno::EAGAIN], readv: [Errno::EINTR, Errno::EAGAIN, :short],
               send: [Errno::EINTR, Errno::EAGAIN, :short], sendmsg: [Errno::EINTR, Errno::EAGAIN, :short],
               writev: [Errno::EINTR, Errno::EAGAIN, :short], sendfile: [Errno::EINTR, Errno::EAGAIN, :short],
               accept4: [Errno::EINTR, Errno::EAGAIN, Errno::EMFILE],
               epoll_wait: [Errno::EINTR, :short], syscall: [Errno::EINTR] }.freeze
  # What ends a connection, or an exchange.
  HARMFUL = { malloc: [Errno::ENOMEM], calloc: [Errno::ENOMEM], realloc: [Errno::ENOMEM],
              accept4: [Errno::ECONNABORTED], recv: [Errno::ECONNRESET, Errno::ENOMEM],
              recvmsg: [Errno::ECONNRESET], readv: [Errno::ECONNRESET], send: [Errno::EPIPE, Errno::ECONNRESET],
              sendmsg: [Errno::EPIPE, Errno::ENOBUFS], writev: [Errno::EPIPE, Errno::ECONNRESET],
              sendfile: [Errno::EPIPE, Errno::EIO, Errno::EINVAL], epoll_ctl: [Errno::ENOMEM, Errno::ENOSPC],
              getsockname: [Errno::ENOBUFS], setsockopt: [Errno::EINVAL], shutdown: [Errno::ENOTCONN] }.freeze

  def self.start
    return @server if @server

    shim = Torture::Shim.new
    lib = File.expand_path("../../lib", __dir__)
    said = "#{shim.path}.log"
    input, output, thread = Open3.popen2(shim.environment, RbConfig.ruby, "-I#{lib}",
                                         File.join(__dir__, "torture/server.rb"), err: said)
    # On a busy machine a stall may be reported before.
    url = output.each_line.find { |line| line.start_with?("http://") } or raise "the server does not start"
    Minitest.after_run { stop }
    @server = { shim:, input:, output:, thread:, port: url[/\d+$/].to_i }
  end

  def self.stop
    server = @server or return
    @server = nil
    server[:input].close
    server[:thread].join(PATIENCE) || Process.kill(:KILL, server[:thread].pid)
    server[:shim].close
    server[:thread].value
  end

  def setup
    skip "needs Linux and glibc" unless RUBY_PLATFORM.match?(/linux(-gnu)?\z/)
    @server = self.class.start
    @conversation = Torture::Conversation.new(@server[:port])
    @server[:rest] ||= warm_up
    @start = @server[:rest]
  end

  Torture::Shim::FUNCTIONS.each do |function|
    next unless HARMLESS.key?(function) || HARMFUL.key?(function)

    define_method(:"test_each_#{function}_fails_once") { torture(function) }
  end

  def test_a_conversation_that_nothing_disturbs_is_answered
    counts = counted

    assert_equal @start, at_rest
    assert_operator counts.values_at(:recv, :recvmsg, :read, :readv).sum, :>, 20
    assert_operator counts.values_at(:send, :sendmsg, :writev).sum, :>, 15
    assert_operator counts[:malloc] + counts[:calloc], :>, 10
    assert_operator counts[:accept4], :>=, 20
  end

  private

  def torture(function)
    most = counted[function]
    HARMLESS.fetch(function, []).each { |failure| torture_each(function, most, failure, harmless: true) }
    HARMFUL.fetch(function, []).each { |failure| torture_each(function, most, failure, harmless: false) }
  end

  def torture_each(function, most, failure, harmless:)
    number = failure == :short ? Torture::Shim::SHORT : failure::Errno
    Torture::Shim.calls(most, step: 2).each do |nth|
      what = "#{function} #{nth} of #{most}: #{failure}"
      failed, came = disturbed(function, nth, number, what)

      assert_empty failed, what if harmless
      assert_operator failed.size, :<=, 3, "#{what}: #{failed.join(", ")}"
      assert_equal @start, at_rest, what
      # What comes in one read today comes in two tomorrow: a conversation need not make as many calls as the first.
      assert_predicate @server[:shim], :fired?, "#{what}: the call came and did not fail" if came
    end
  end

  # @return [Array(Array<String>, Boolean)] what was not answered, and whether the call came
  def disturbed(function, nth, number, what)
    shim = @server[:shim]
    shim.arm(function, nth, number)
    failed = @conversation.run
    [failed, shim.counts.fetch(function) >= nth]
  rescue Conformance::MalformedError => e
    flunk "#{what}: #{e.message}"
  ensure
    shim.disarm
    crashed(what) unless @server[:thread].alive?
  end

  def crashed(what)
    said = File.readlines("#{@server[:shim].path}.log").last(60).join
    status = self.class.stop

    flunk "#{what}: the server ended with #{status}\n#{said}"
  end

  # @return [Hash{Symbol => Integer}] the calls of one conversation
  def counted
    @server[:shim].arm(:malloc, 0)

    assert_empty @conversation.run
    at_rest
    @server[:shim].disarm
    @server[:shim].counts
  end

  # Descriptors that are opened once, and fibers and arenas that are kept, are there afterwards.
  # @return [Array(Integer, Integer)] descriptors and connections of the server at rest
  def warm_up
    3.times { @conversation.run }
    Array.new(200) { usage }.select { |_, connections| connections == 1 }.min
  end

  # Waits until nothing is left of a conversation. Asking makes the server call more: it is asked when the descriptors
  # are closed.
  # @return [Array(Integer, Integer)]
  def at_rest
    deadline = now + PATIENCE
    loop do
      late = now > deadline
      found = usage if late || descriptors == @start.first
      return found if late || found == @start

      sleep 0.001
    end
  end

  # @return [Array(Integer, Integer)] descriptors and connections, with the one that asks
  def usage = [descriptors, connections]

  def descriptors
    Dir.children("/proc/#{@server[:thread].pid}/fd").size
  rescue Errno::ENOENT
    crashed("afterwards")
  end

  def connections
    client = Conformance::Client.new(@server[:port], PATIENCE)
    client.send_at_once("GET /statistics HTTP/1.1\r\nHost: a\r\n\r\n")
    answer = client.answer

    assert_equal 200, answer&.status, "a later request"
    JSON.parse(answer.content).fetch("connections")
  ensure
    client&.close
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
