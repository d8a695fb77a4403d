# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/sockets_case"

# The garbage collector may run, and move things, at any moment.
class SocketsCollectorTest < Minitest::Test
  include Heddle::TestHelpers::SocketsCase

  PROGRAM = <<~RUBY
    require "socket"
    require "heddle/net/sockets"
    compact = false
    scheduler = Heddle::Scheduler.new
    Fiber.set_scheduler(scheduler)
    listener = TCPServer.new("127.0.0.1", 0)
    held = []
    sockets = Heddle::Net::Sockets.new(scheduler, idle_timeout: 60) do |connection|
      GC.compact if compact
      case connection.readpartial(10)
      when "echo" then connection.write(["ec", "ho"]); connection.idle!
      when "large" then connection.write(["a" * 100, "b" * 3_000_000, "c" * 7])
      when "detach" then connection.unread("rest"); held << connection.detach
      when "raise" then Fiber[:x] = 1; Thread.current[:x] = 1; raise "on purpose"
      end
    end
    sockets.listen(listener)
    connect = -> { TCPSocket.new("127.0.0.1", listener.local_address.ip_port) }
    def scheduler.report_failure(_fiber, error) = error.message == "on purpose" || super
    Fiber.schedule do
      kept = connect.call
      clients = Array.new(2) { connect.call }
      HOW
      2.times { kept.write("echo"); kept.readpartial(10) == "echo" or abort "echo" }
      clients[0].write("large")
      GC.compact if compact
      clients[0].read == "a" * 100 + "b" * 3_000_000 + "c" * 7 or abort "large"
      clients[1].write("detach")
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

  def test_under_gc_stress = check("GC.stress = true")

  def test_while_everything_moves = check("GC.auto_compact = true; GC.stress = true")

  def test_compacted_now_and_then = check("compact = true")

  def test_a_process_that_ends_with_everything_open
    output, status = ruby(<<~RUBY)
      require "socket"
      require "heddle/net/sockets"
      scheduler = Heddle::Scheduler.new
      Fiber.set_scheduler(scheduler)
      listener = TCPServer.new("127.0.0.1", 0)
      sockets = Heddle::Net::Sockets.new(scheduler) { |connection| 2.times { connection.readpartial(10) } }
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

  # Without RubyGems there is a third of the objects to look at, each time.
  def check(how)
    output, status = ruby(PROGRAM.sub("HOW", how), flags: %w[-W:no-experimental --disable=gems])

    assert_equal "fine\n", plain(output)
    assert_predicate status, :success?
  end
end
