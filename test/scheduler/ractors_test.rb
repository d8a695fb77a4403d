# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# R10: every Ractor can have its own loop, and serve.
class RactorLoopsTest < Minitest::Test
  include Scheduled

  ASK = <<~RUBY
    def answers(port) = Array.new(40) { TCPSocket.open("127.0.0.1", port, &:gets) }
    def result(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take
  RUBY
  private_constant :ASK

  def check(program)
    out, status = ruby("require 'heddle/scheduler'; require 'socket'\n#{ASK}#{program}", flags: ["-W:no-experimental"])

    assert_predicate status, :success?, out
    assert_equal "40 [1, 2]\n", out
  end

  # Ruby has no hook for such a wait.
  def test_waits_for_a_ractor_within_offload_block_only_their_fiber
    out, = ruby(<<~RUBY, flags: ["-W:no-experimental"])
      require "heddle"
      #{ASK}
      main = Ractor.current
      ractor = Ractor.new(main) { |main| main.send(Ractor.receive) }
      Heddle.run do
        waiting = Heddle.async { Heddle.offload { [Ractor.receive, result(ractor) ? "ended" : "lost"] } }
        Fiber.scheduler.yield until waiting.state == :waiting
        ractor.send("received")
        puts waiting.value
      end
    RUBY

    assert_equal "received\nended\n", out
  end

  def test_each_accepts_from_a_listener_of_its_own
    check(<<~RUBY)
      listeners = [0, nil].map do |port|
        socket = Socket.new(:INET, :STREAM)
        socket.setsockopt(:SOCKET, :REUSEPORT, true)
        socket.bind(Addrinfo.tcp("127.0.0.1", port || $port))
        socket.listen(64)
        $port ||= socket.local_address.ip_port
        socket.autoclose = false
        socket.fileno
      end
      ractors = listeners.each_with_index.map do |descriptor, index|
        Ractor.new(descriptor, index + 1) do |descriptor, number|
          server = TCPServer.for_fd(descriptor)
          Fiber.set_scheduler(Heddle::Scheduler.new)
          Fiber.schedule do
            while (client = server.accept)
              client.tap { |socket| Fiber.schedule { socket.puts(number); socket.close } }
            end
          rescue IOError, Errno::EINVAL
            nil # no more
          end
          Fiber.scheduler.run
        end
      end
      numbers = answers($port)
      numbers.concat(answers($port)) until numbers.uniq.size == 2
      puts "40 \#{numbers.map(&:to_i).uniq.sort}"
      $stdout.flush
      exit!(0) # they accept without an end
    RUBY
  end

  def test_one_ractor_accepts_connections_for_others
    check(<<~RUBY)
      ractors = [1, 2].map do |number|
        reader, writer = IO.pipe
        reader.autoclose = false
        ractor = Ractor.new(reader.fileno, number) do |descriptor, number|
          work = IO.for_fd(descriptor)
          Fiber.set_scheduler(Heddle::Scheduler.new)
          Fiber.schedule do
            while (line = work.gets)
              TCPSocket.for_fd(Integer(line)).tap { |socket| Fiber.schedule { socket.puts(number); socket.close } }
            end
          end
          Fiber.scheduler.run
          number
        end
        [writer, ractor]
      end
      server = TCPServer.new("127.0.0.1", 0)
      clients = Thread.new { answers(server.local_address.ip_port) }
      40.times do |n|
        client = server.accept
        client.autoclose = false
        ractors[n % 2].first.puts(client.fileno)
      end
      numbers = clients.value
      ractors.each { |writer, _| writer.close }
      puts "\#{numbers.size} \#{ractors.map { |_, ractor| result(ractor) } & numbers.map(&:to_i)}"
    RUBY
  end

  # Before Ruby 4.0 all Ractors take fiber stacks from one list without a lock.
  def test_loops_that_begin_in_several_ractors_at_once_share_no_stack
    out, status = ruby(<<~RUBY, flags: ["-W:no-experimental"])
      require "heddle"
      #{ASK}
      Heddle.eager_load
      start = -> { Ractor.new { Heddle.run { Array.new(200) { Heddle.async { 1 } }.sum(&:value) } } }
      answers = Array.new(40) { Array.new(4) { start.call }.sum { |ractor| result(ractor) } }
      p answers.uniq
    RUBY

    assert_predicate status, :success?, out
    assert_equal "[800]\n", out
  end

  # The code that reports stalls runs in the main Ractor alone.
  def test_a_loop_of_another_ractor_takes_no_stall_from_the_loop_that_reports_it
    out, status = ruby(<<~RUBY, flags: %w[-W:no-experimental --enable=gems])
      require "heddle"
      Heddle.eager_load
      Heddle.enable :stall_report, threshold: 0.04
      def time(clock) = Process.clock_gettime(clock)
      begun, signal = IO.pipe
      Ractor.new(signal.fileno) do |descriptor|
        Heddle.run do
          IO.for_fd(descriptor, autoclose: false).syswrite("x")
          loop { sleep 0.0001 }
        end
      end
      told = []
      Heddle::Protection.reporting_to(told.method(:push)) do
        Heddle.run do
          begun.read(1)
          last = time(Process::CLOCK_THREAD_CPUTIME_ID) + 0.2
          Heddle.without_preemption { nil until time(Process::CLOCK_THREAD_CPUTIME_ID) > last }
          last = time(Process::CLOCK_MONOTONIC) + 10
          sleep 0.01 until told.any? || time(Process::CLOCK_MONOTONIC) > last
        end
        p told.any?
        $stdout.flush
        exit!(0) # the Ractor's loop does not end
      end
    RUBY

    assert_predicate status, :success?, out
    assert_equal "true\n", out
  end
end
