# frozen_string_literal: true

require "test_helper"
require "etc"
require "open3"
require "rbconfig"
require "socket"
require "timeout"

# A server that has no descriptor left for a new connection waits until it has one: without spinning, without losing the
# connections that it has, and without help.
class DescriptorLimitTest < Minitest::Test
  PATIENCE = 30
  DESCRIPTORS = 48
  # Connections that it has room for, at least.
  FEWEST = 10
  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  # It takes more connections than there are descriptors, if it may.
  SERVER = <<~RUBY
    Process.setrlimit(Process::RLIMIT_NOFILE, Integer(ARGV.first), Integer(ARGV.first))
    require "heddle/server"
    require "rack/lint"
    configuration = Heddle::Server::Configuration.new(bind: ["127.0.0.1:0"], access_log: false, max_connections: 10_000,
                                                      idle_timeout: 300, selector: ENV["HEDDLE_SELECTOR"]&.to_sym)
    server = Heddle::Server.new(configuration)
    url = server.open.first
    app = ->(_env) { [200, {}, ["hello"]] }
    Thread.new { $stdin.read && server.stop }
    server.run(Rack::Lint.new(app)) { puts(url) || $stdout.flush }
  RUBY

  def test_a_server_without_descriptors_backs_off_and_continues
    served do |port, pid|
      assert_answered_once(port) # which loads what the server has not loaded yet
      exhaust(port, pid)
    end
  end

  # In a process whose soft limit is lower than its hard one, which of them the application then has.
  LIMITS = <<~RUBY
    soft, hard = 300, [400, Process.getrlimit(Process::RLIMIT_NOFILE).last].min
    Process.setrlimit(Process::RLIMIT_NOFILE, soft, hard)
    require "heddle/server"
    configuration = Heddle::Server::Configuration.new(bind: ["127.0.0.1:0"],
                                                      max_connections: ENV["HEDDLE_MAX_CONNECTIONS"].to_i)
    server = Heddle::Server.new(configuration, log: Heddle::Server::Log.new(output: $stderr))
    server.run(nil) do
      puts Process.getrlimit(Process::RLIMIT_NOFILE).first
      server.stop
    end
  RUBY

  def test_server_raises_the_soft_limit_to_what_its_connections_can_use_at_most_to_the_hard_one
    lib = File.expand_path("../../lib", __dir__)
    { "0" => "400", "200" => "352" }.each do |connections, expected|
      output, errors, = Open3.capture3({ "RUBYOPT" => nil, "HEDDLE_MAX_CONNECTIONS" => connections }, RbConfig.ruby,
                                       "-I#{lib}", "-e", LIMITS)

      assert_equal expected, output[/\d+/], errors
    end
  end

  private

  def exhaust(port, pid)
    sockets = Array.new(DESCRIPTORS * 2) { TCPSocket.new("127.0.0.1", port) }
    answered, waiting = request(sockets)

    refute_empty waiting, "the limit was not reached"
    assert_operator processor_seconds(pid) { answered.first.wait_readable(1) }, :<, 0.3, "it spins"
    # Those that it has are served all the while.
    answered.each { |socket| socket.write(GET) }

    assert(answered.all? { |socket| answered?(socket, PATIENCE) })

    answered.each(&:close)
    # The others have their turn, each in the place of one before.
    waiting.each do |socket|
      assert answered?(socket, PATIENCE)
      socket.close
    end
    assert_answered_once(port)
  ensure
    sockets&.each(&:close)
  end

  def served
    lib = File.expand_path("../../lib", __dir__)
    command = [RbConfig.ruby, "-I#{lib}", "-e", SERVER, DESCRIPTORS.to_s]
    Open3.popen2e({ "RUBYOPT" => nil }, *command) do |input, output, thread|
      # On a busy machine a stall may be reported before.
      url = output.each_line.find { |line| line.start_with?("http://") } or flunk "the server does not start"
      yield url[/\d+$/].to_i, thread.pid
      input.close

      assert thread.join(PATIENCE), "the server does not end"
      assert_predicate thread.value, :success?, output.read
    ensure
      Process.kill(:KILL, thread.pid) if thread.alive?
    end
  end

  # The server accepts them in their order, so that the first ones are answered, however long that takes.
  # @return [Array(Array<TCPSocket>, Array<TCPSocket>)] who was answered, and who was not within a moment more
  def request(sockets)
    sockets.each { |socket| socket.write(GET) }
    first, others = sockets.partition.with_index { |_, index| index <= FEWEST }

    assert(first.all? { |socket| answered?(socket, PATIENCE) })
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.5
    answered, waiting = others.partition do |socket|
      answered?(socket, [deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC), 0].max)
    end
    [first + answered, waiting]
  end

  def answered?(socket, patience)
    return false unless socket.wait_readable(patience)

    Timeout.timeout(PATIENCE) { socket.gets("\r\n\r\n").start_with?("HTTP/1.1 200 ") && socket.read(5) == "hello" }
  end

  def assert_answered_once(port)
    socket = TCPSocket.new("127.0.0.1", port)

    socket.write(GET)

    assert answered?(socket, PATIENCE)
  ensure
    socket&.close
  end

  # @return [Float] seconds of both cores that the process used meanwhile
  def processor_seconds(pid)
    before = ticks(pid)
    yield
    (ticks(pid) - before) / Etc.sysconf(Etc::SC_CLK_TCK).to_f
  end

  def ticks(pid)
    skip "needs /proc" unless File.readable?("/proc/#{pid}/stat")
    File.read("/proc/#{pid}/stat").split(") ").last.split[11, 2].sum(&:to_i)
  end
end
