# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/sockets_case"

# The garbage collector may run, and move things, at any moment.
class SocketsCollectorTest < Minitest::Test
  include Heddle::TestHelpers::SocketsCase

  PROGRAM = <<~'RUBY'
    require "socket"
    require "heddle/http"
    require "heddle/net/sockets"
    Heddle::HTTP::Response
    compact = false
    scheduler = Heddle::Scheduler.new
    Fiber.set_scheduler(scheduler)
    listener = TCPServer.new("127.0.0.1", 0)
    held = []
    limits = Heddle::HTTP::Limits.new(head_timeout: 600, idle_timeout: 600, write_timeout: 600)
    sockets = Heddle::Net::Sockets.new(scheduler, service: Heddle::HTTP::Engine.new(limits)) do |exchange|
      GC.compact if compact
      case exchange.target
      when "/echo"
        exchange.response.start(200, {}, length: 4)
        exchange.response.write_all(["ec", "ho"], 4)
        exchange.response.finish
      when "/large" then exchange.write(["a" * 100, "b" * 3_000_000, "c" * 7]); exchange.drain
      when "/detach" then held << exchange.detach
      when "/raise" then Fiber[:x] = 1; Thread.current[:x] = 1; raise "on purpose"
      end
    end
    sockets.listen(listener)
    connect = -> { TCPSocket.new("127.0.0.1", listener.local_address.ip_port) }
    ask = ->(client, path) { client.write("GET /#{path} HTTP/1.1\r\nHost: a\r\n\r\n") }
    echoed = ->(client) { ask.call(client, "echo"); client.readpartial(1_000).end_with?("\r\n\r\necho") }
    def scheduler.report_failure(_fiber, error) = error.message == "on purpose" || super
    Fiber.schedule do
      kept = connect.call
      clients = Array.new(2) { connect.call }
      HOW
      2.times { echoed.call(kept) or abort "echo" }
      ask.call(clients[0], "large")
      GC.compact if compact
      clients[0].read == "a" * 100 + "b" * 3_000_000 + "c" * 7 or abort "large"
      clients[1].write("GET /detach HTTP/1.1\r\nHost: a\r\n\r\nrest")
      sleep 0.001 while held.empty?
      held[0].readpartial(10) == "rest" or abort "detach"
      broken = connect.call
      ask.call(broken, "raise")
      broken.read
      echoed.call(kept) or abort "echo again"
      sockets.shutdown_idle
      kept.read(1).nil? or abort "idle"
      GC.stress = false
      sockets.close
    end
    scheduler.run
    puts "fine"
  RUBY

  def test_under_gc_stress = check("GC.stress = true")

  if Heddle::TestHelpers.thorough?
    def test_while_everything_moves = check("GC.auto_compact = true; GC.stress = true")

    def test_compacted_now_and_then = check("compact = true")
  end

  def test_a_process_that_ends_with_everything_open
    output, status = ruby(<<~'RUBY')
      require "socket"
      require "heddle/http"
      require "heddle/net/sockets"
      scheduler = Heddle::Scheduler.new
      Fiber.set_scheduler(scheduler)
      listener = TCPServer.new("127.0.0.1", 0)
      service = Heddle::HTTP::Engine.new
      sockets = Heddle::Net::Sockets.new(scheduler, service:) { |exchange| exchange.readpartial(10) }
      sockets.listen(listener)
      Fiber.schedule do
        clients = Array.new(5) { TCPSocket.new("127.0.0.1", listener.local_address.ip_port) }
        clients.first(2).each { |client| client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
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
    output, status = ruby(PROGRAM.sub("HOW", how), flags: %w[-W:no-experimental])

    assert_equal "fine\n", plain(output)
    assert_predicate status, :success?
  end
end
