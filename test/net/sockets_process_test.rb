# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/sockets_case"
require "io/wait"

# What has to be tried in a process of its own: limits of the system, the garbage collector, fork.
class SocketsProcessTest < Minitest::Test
  include Heddle::TestHelpers::SocketsCase

  # A server that is asked about itself through its standard input.
  SERVER = <<~RUBY
    require "socket"
    require "heddle/net/sockets"
    scheduler = Heddle::Scheduler.new
    Fiber.set_scheduler(scheduler)
    listener = TCPServer.new("127.0.0.1", 0)
    listener.listen(4096)
    set = ENV["SET"]&.to_sym
    sockets = Heddle::Net::Sockets.new(scheduler, set:) do |connection|
      if (input = connection.read_partial(4096))
        connection.write(input)
        connection.idle!
      end
    end
    sockets.listen(listener)
    $stdout.sync = true
    puts listener.local_address.ip_port
    Fiber.schedule do
      while (question = $stdin.gets)
        answer = eval(question)
        puts answer.inspect
      end
      sockets.close
    end
    scheduler.run
  RUBY

  # The other side of {SERVER}.
  class Program
    attr_reader :port

    def initialize(pipe)
      @pipe = pipe
      @port = Integer(pipe.gets)
    end

    def ask(question)
      @pipe.puts(question.lines(chomp: true).join("; "))
      eval(@pipe.gets) # rubocop:disable Security/Eval -- our own program answers
    end

    def connect = TCPSocket.new("127.0.0.1", port)
  end

  def test_without_descriptors_accepting_rests_and_goes_on
    Heddle::TestHelpers::SOCKET_SETS.each do |set|
      with_program("SET" => set.to_s) do |program|
        program.ask(<<~RUBY)
          hogs = []
          Process.setrlimit(:NOFILE, 64)
          begin loop { hogs << File.open(File::NULL) }; rescue Errno::EMFILE then 5.times { hogs.pop.close }; end
        RUBY
        clients = Array.new(20) { program.connect }
        clients.each { |client| client.write("x") }
        Timeout.timeout(10) { sleep 0.01 until program.ask("sockets.accept_failures") > 0 }
        before = program.ask("scheduler.statistics[:turns]")
        sleep 0.3

        assert_operator program.ask("scheduler.statistics[:turns]") - before, :<, 50, "it spins"
        served = 0
        until clients.empty?
          readable, = IO.select(clients, nil, nil, 3)
          flunk "only #{served} were served" unless readable
          readable.each do |client|
            assert_equal "x", client.readpartial(1)
            served += 1
            client.close
          end
          clients -= readable
        end

        assert_equal 20, program.ask("sockets.accepted")
      end
    end
  end

  def test_ten_thousand_idle_connections_cost_no_fiber_and_little_memory
    skip "the limit of open files is #{Process.getrlimit(:NOFILE).last}" if Process.getrlimit(:NOFILE).last < 20_000
    count = 10_000
    with_program do |program|
      program.ask("Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)")
      client = IO.popen([RbConfig.ruby, "-rsocket", "-e", <<~'RUBY', program.port.to_s, count.to_s], "r+")
        Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
        $stdout.sync = true
        port, count = ARGV.map(&:to_i)
        # Several addresses: one alone has about 28,000 ports, some of which may be in use.
        sockets = Array.new(count) { |i| TCPSocket.new("127.0.0.1", port, "127.0.0.#{2 + i % 4}") }
        puts "open"
        while $stdin.gets
          sockets.each_slice(100) do |some|
            some.each { |socket| socket.write("x") }
            some.each { |socket| socket.readpartial(1) == "x" or abort "no answer" }
          end
          puts "served"
        end
      RUBY
      before = memory(program)

      assert_equal "open\n", client.gets
      Timeout.timeout(30) { sleep 0.05 until program.ask("sockets.idle") == count }
      opened = memory(program)

      assert_operator program.ask("scheduler.fiber_count"), :<=, 10
      client.puts

      assert_equal "served\n", client.gets
      Timeout.timeout(30) { sleep 0.05 until program.ask("sockets.idle") == count }
      assert_operator program.ask("scheduler.fiber_count"), :<=, 10
      served = memory(program)
      each = [opened, served].map { |bytes| (bytes - before) / count }
      puts "\n#{count} idle connections: #{each.first} bytes of user memory each, #{each.last} once they were served" if
        ENV["HEDDLE_FIGURES"]

      assert_operator each.last, :<=, 1024
    ensure
      client&.close
    end
  end

  def test_a_forked_child_holds_no_connection_open
    child_said = +""
    busy_connection = nil
    handler = lambda do |connection|
      busy_connection = connection
      connection.read_partial(1)
      until_true { connection.closed? }
    end
    serve(handler) do |server|
      busy = server.connect
      busy.write("x")
      until_true { busy_connection }
      idle = server.connect
      until_true { server.sockets.connections == 2 }
      end_of_child, end_of_test = UNIXSocket.pair
      pid = fork do
        end_of_test.close
        words = [error_of(IOError) { server.sockets.listen(server.listener) }, server.sockets.connections,
                 error_of(IOError) { busy_connection.write("y") }, server.sockets.closed?]
        end_of_child.write("#{Marshal.dump(words)}end")
        end_of_child.read(1) # lives on
        exit!(0)
      end
      end_of_child.close
      child_said << end_of_test.readpartial(4096) until child_said.end_with?("end")
      server.sockets.close

      [busy, idle].each do |client|
        assert client.wait_readable(5), "the child keeps the connection open"
        assert_nil(error_of(Errno::ECONNRESET) { assert_nil client.read(1) })
      end
      end_of_test.close
      Process.wait(pid)
    end
    first, connections, second, closed = Marshal.load(child_said) # rubocop:disable Security/MarshalLoad

    assert_match(/this is a child/, first.message)
    assert_equal 0, connections
    assert_instance_of IOError, second
    assert closed
  end

  def test_a_parent_goes_on_beside_a_child_that_runs_a_server_of_its_own
    serve(echo) do |server|
      client = server.connect
      client.write("a")
      client.readpartial(1)
      from_child, to_parent = IO.pipe
      pid = fork do
        from_child.close
        listener = TCPServer.new("127.0.0.1", 0)
        sockets = Heddle::Net::Sockets.new(server.scheduler, &echo)
        sockets.listen(listener)
        own = TCPSocket.new("127.0.0.1", listener.local_address.ip_port)
        own.write("child")
        to_parent.write(own.readpartial(10))
        exit!(0)
      end
      to_parent.close

      assert_equal "child", from_child.read
      client.write("b")

      assert_equal "b", client.readpartial(1)
      Process.wait(pid)
    end
  end

  def test_under_gc_stress_and_compaction
    ["GC.stress = true", "GC.auto_compact = true; GC.stress = true", "compact = true"].each do |how|
      output, status = ruby(<<~RUBY, flags: %w[-W:no-experimental])
        require "socket"
        require "tempfile"
        require "heddle/net/sockets"
        compact = false
        scheduler = Heddle::Scheduler.new
        Fiber.set_scheduler(scheduler)
        listener = TCPServer.new("127.0.0.1", 0)
        held = []
        file = Tempfile.new("heddle")
        file.write("f" * 3_000_000)
        file.flush
        sockets = Heddle::Net::Sockets.new(scheduler, idle_timeout: 60) do |connection|
          GC.compact if compact
          case connection.read_partial(10)
          when "echo" then connection.write(["ec", "ho"]); connection.idle!
          when "large" then connection.write(["a" * 100, "b" * 3_000_000, "c" * 7])
          when "file" then connection.sendfile(file, 0, 3_000_000)
          when "detach" then connection.unread("rest"); held << connection.detach
          when "raise" then Fiber[:x] = 1; Thread.current[:x] = 1; raise "on purpose"
          end
        end
        sockets.listen(listener)
        connect = -> { TCPSocket.new("127.0.0.1", listener.local_address.ip_port) }
        def scheduler.report_failure(_fiber, error) = error.message == "on purpose" || super
        Fiber.schedule do
          kept = connect.call
          clients = Array.new(3) { connect.call }
          #{how}
          2.times { kept.write("echo"); kept.readpartial(10) == "echo" or abort "echo" }
          clients[0].write("large")
          GC.compact if compact
          clients[1].write("file")
          GC.compact if compact
          clients[0].read == "a" * 100 + "b" * 3_000_000 + "c" * 7 or abort "large"
          clients[1].read == "f" * 3_000_000 or abort "file"
          clients[2].write("detach")
          sleep 0.001 while held.empty?
          held[0].readpartial(10) == "rest" or abort "detach"
          broken = connect.call
          broken.write("raise")
          broken.read
          kept.write("echo")
          kept.readpartial(10) == "echo" or abort "echo again"
          sockets.shutdown_idle
          kept.read(1).nil? or abort "idle"
          GC.stress = false
          sockets.close
        end
        scheduler.run
        puts "fine"
      RUBY

      assert_equal "fine\n", plain(output)
      assert_predicate status, :success?
    end
  end

  def test_no_stack_for_a_fiber_delays_a_connection_and_harms_nobody
    output, status = ruby(<<~'RUBY')
      require "socket"
      require "heddle/net/sockets"
      scheduler = Heddle::Scheduler.new
      Fiber.set_scheduler(scheduler)
      listener = TCPServer.new("127.0.0.1", 0)
      sockets = Heddle::Net::Sockets.new(scheduler) do |connection|
        connection.write(connection.read_partial(10))
        connection.idle!
      end
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
        client.write("x")
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

  def test_a_process_that_ends_with_everything_open
    output, status = ruby(<<~RUBY)
      require "socket"
      require "heddle/net/sockets"
      scheduler = Heddle::Scheduler.new
      Fiber.set_scheduler(scheduler)
      listener = TCPServer.new("127.0.0.1", 0)
      sockets = Heddle::Net::Sockets.new(scheduler) { |connection| 2.times { connection.read_partial(10) } }
      sockets.listen(listener)
      Fiber.schedule do
        clients = Array.new(5) { TCPSocket.new("127.0.0.1", listener.local_address.ip_port) }
        clients.first(2).each { |client| client.write("x") }
        sleep 0.001 until sockets.running == 2 && sockets.idle == 3
        puts "end"
        $stdout.flush
        exit!(0) if ARGV.first
        exit(0)
      end
      scheduler.run
    RUBY

    assert_equal "end\n", plain(output)
    assert_predicate status, :success?
  end

  private

  def with_program(env = {})
    lib = File.expand_path("../../lib", __dir__)
    pipe = IO.popen({ "RUBYOPT" => nil }.merge(env), [RbConfig.ruby, "-I#{lib}", "-e", SERVER], "r+")
    yield Program.new(pipe)
  ensure
    pipe&.close
  end

  # Without the notes that a sanitizer may make.
  def plain(output) = output.lines.grep_v(/ASan|False positive|sanitizers/).join

  # Private memory of the server in bytes, what it has freed and not given back not counted.
  def memory(program)
    program.ask('GC.start; File.read("/proc/self/smaps_rollup")[/Private_Dirty:\s+(\d+)/, 1].to_i * 1024')
  end
end
