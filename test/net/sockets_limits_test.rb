# frozen_string_literal: true

# test: each selector
# test: not sanitized

require_relative "support/sockets_program"

# The system refuses more descriptors, fibers or memory. Not under the sanitizers: they end a program that leaves them
# no descriptor for their own file.
class SocketsLimitsTest < Minitest::Test
  include Heddle::TestHelpers::SocketsCase

  # Opens connections, and has each served as often as it is told to.
  CLIENT = <<~'RUBY'
    Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
    $stdout.sync = true
    port, count = ARGV.map(&:to_i)
    # Several addresses: one alone has about 28,000 ports, some of which may be in use.
    sockets = Array.new(count) { |i| TCPSocket.new("127.0.0.1", port, "127.0.0.#{2 + i % 4}") }
    puts "open"
    while $stdin.gets
      sockets.each_slice(100) do |some|
        some.each { |socket| socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
        some.each { |socket| socket.readpartial(1000).end_with?("\r\nx") or abort "no answer" }
      end
      puts "served"
    end
  RUBY

  def test_without_descriptors_accepting_rests_and_continues
    Heddle::TestHelpers::SOCKET_SETS.each do |set|
      Heddle::TestHelpers::SocketsProgram.run("SET" => set.to_s) do |program|
        leave_descriptors(program, 5)
        clients = Array.new(20) { program.connect }
        clients.each(&:ask)
        # All that are pending are accepted in one tick, until it fails.
        program.ask_until("sockets.accepted", &:positive?)

        assert_operator program.ask("sockets.accepted"), :<, 20
        before = program.ask("scheduler.statistics[:ticks]")
        started = now
        sleep 0.3
        turns = program.ask("scheduler.statistics[:ticks]") - before

        assert_operator turns / (now - started), :<, 170, "turns a second: it spins"
        assert_equal 20, close_when_served(clients)
        assert_equal 20, program.ask("sockets.accepted")
      end
    end
  end

  # They are in a set of epoll's.
  IDLE_CONNECTIONS = Heddle::TestHelpers.thorough? ? 10_000 : 1_000

  def test_thousands_of_idle_connections_cost_no_fiber_and_little_memory
    count = IDLE_CONNECTIONS
    skip "the limit of open files is #{Process.getrlimit(:NOFILE).last}" if Process.getrlimit(:NOFILE).last < 2 * count
    Heddle::TestHelpers::SocketsProgram.run do |program|
      program.ask("Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)")
      before = program.memory
      client = IO.popen([RbConfig.ruby, "-rsocket", "-e", CLIENT, program.port.to_s, count.to_s], "r+")

      assert_equal "open\n", client.gets
      each = [memory_of_each(program, count, before)]
      client.puts

      assert_equal "served\n", client.gets
      each << memory_of_each(program, count, before)
      puts "\nbytes of memory an idle connection: #{each.join(", once served ")}" if ENV["HEDDLE_FIGURES"]

      assert_operator each.max, :<=, 1024 unless ENV["HEDDLE_SANITIZED"]
    ensure
      client&.close
    end
  end

  def test_a_connection_is_served_later_when_no_fiber_stack_can_be_mapped
    output, status = ruby(<<~'RUBY')
      require "socket"
      require "heddle/http"
      require "heddle/net/sockets"
      scheduler = Heddle::Scheduler.new
      Fiber.set_scheduler(scheduler)
      listener = TCPServer.new("127.0.0.1", 0)
      service = Heddle::HTTP::Engine.new
      sockets = Heddle::Net::Sockets.new(scheduler, service:) { |exchange| exchange.write("x") && exchange.close }
      sockets.listen(listener)
      Fiber.schedule do
        client = TCPSocket.new("127.0.0.1", listener.local_address.ip_port)
        used = File.read("/proc/self/status")[/VmSize:\s+(\d+)/, 1].to_i * 1024
        Process.setrlimit(:AS, used + 50_000_000)
        hogs = []
        begin
          loop { hogs << Fiber.new { Fiber.yield }.tap(&:resume) }
        rescue FiberError
          nil
        end
        client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        sleep 0.12
        puts client.wait_readable(0) ? "served without a fiber" : "waiting"
        hogs.each(&:resume)
        puts client.readpartial(1)
        sockets.close
      end
      scheduler.run
    RUBY
    skip "the limit of address space does not bound fibers here" if output.include?("served without")

    assert_equal "waiting\nx\n", plain(output)
    assert_predicate status, :success?
  end

  private

  def leave_descriptors(program, count)
    program.ask(<<~RUBY)
      hogs = []
      Process.setrlimit(:NOFILE, 64)
      begin loop { hogs << File.open(File::NULL) }; rescue Errno::EMFILE then #{count}.times { hogs.pop.close }; end
    RUBY
  end

  # How many were served.
  def close_when_served(clients)
    served = 0
    until clients.empty?
      readable, = IO.select(clients, nil, nil, LIMIT)
      return served unless readable

      served += readable.count { |client| client.answer == "x" }
      readable.each(&:close)
      clients -= readable
    end
    served
  end

  def memory_of_each(program, count, before)
    program.ask_until("sockets.idle") { |idle| idle == count }

    assert_operator program.ask("scheduler.fiber_count"), :<=, 10
    (program.memory - before) / count
  end
end
