# frozen_string_literal: true

# test: sanitize

require "heddle/rack"
require_relative "../support/http_case"

# Exchanges, their engine and their sockets while the garbage collector runs at any moment.
class H1ExchangeMemoryTest < Minitest::Test
  include Heddle::TestHelpers::HTTPCase

  PROGRAM = <<~'RUBY'
    require "socket"
    require "heddle/rack"
    H1 = Heddle::HTTP::H1
    Heddle::HTTP::RequestBody # nothing is loaded under stress
    Heddle::HTTP::Response
    compact = false
    scheduler = Heddle::Scheduler.new
    Fiber.set_scheduler(scheduler)
    rejections = []
    engine = Heddle::HTTP::Engine.new(Heddle::HTTP::Limits.new(body_buffer: 6_000),
                            on_rejection: ->(*told) { rejections << told })
    kept = []
    sockets = Heddle::Net::Sockets.new(scheduler, service: engine) do |exchange|
      GC.compact if compact
      kept << exchange
      body = +""
      while exchange.body && (bytes = exchange.body.read)
        body << bytes
      end
      case exchange.target
      when "/plain" then Heddle::Rack.respond(exchange, [200, { "x" => "y" * 10 }, ["a" * 100, body]], false)
      when "/large" then Heddle::Rack.respond(exchange, [200, {}, ["b" * 20_000] * 20], false)
      when "/each"
        exchange.response.start(200, {})
        30.times { |n| exchange.response.write(n.to_s * 10_000) }
        GC.compact if compact
        exchange.response.finish
      when "/left" then exchange.write("l" * 100)
      end
    end
    # A client that ends its side is rejected when it has waited for long, as it may under stress: the connection is
    # closed by the server in place of that.
    converse = lambda do |*pieces, close: false|
      mine, client = UNIXSocket.pair
      sockets.adopt(mine)
      mine.close
      pieces.each do |piece|
        client.write(piece)
        scheduler.yield
      end
      GC.compact if compact
      client.shutdown(Socket::SHUT_WR) unless close
      client.read
    end
    head = ->(path, *fields) { "#{["GET #{path} HTTP/1.1", "Host: a", *fields].join("\r\n")}\r\n\r\n" }
    Fiber.schedule do
      warm = ARGV.empty? ? 1 : 0
      (1 + warm).times do |round|
        HOW if round == warm
        converse.(head.("/plain", "Content-Length: 5000") + "b" * 2_500, "b" * 2_500)
          .end_with?("a" * 100 + "b" * 5_000) or abort "plain"
        converse.(head.("/plain", "Content-Length: 70000") + "d" * 30_000, "d" * 40_000)
          .end_with?("a" * 100 + "d" * 70_000) or abort "in a file"
        converse.(head.("/plain", "Transfer-Encoding: chunked"), "2710\r\n#{"e" * 10_000}\r\n0\r\n\r\n")
          .end_with?("a" * 100 + "e" * 10_000) or abort "chunked in a file"
        converse.(head.("/plain", "Content-Length: 70000") + "f" * 10_000).start_with?("HTTP/1.1 400 ") or abort "cut"
        chunks = Array.new(3) { "3e8\r\n#{"c" * 1_000}\r\n" }
        converse.(head.("/plain", "Transfer-Encoding: chunked"), *chunks, "0\r\n\r\n")
          .end_with?("a" * 100 + "c" * 3_000) or abort "chunked"
        large = converse.(head.("/large") + head.("/large", "Connection: close"), close: true)
        large.count("b") == 800_000 or
          abort "large: #{large.bytesize} bytes, #{large.scan("HTTP/1.1 ").size} responses, rejected: #{rejections}"
        converse.(head.("/each")).count("29") > 20_000 or abort "each"
        converse.(head.("/left")) == "l" * 100 or abort "left"
        converse.("no request\r\n\r\n").start_with?("HTTP/1.1 400 ") or abort "rejection"
        converse.(head.("/plain", *Array.new(40) { |n| "x-#{n}: #{"v" * 100}" })).end_with?("a" * 100) or abort "fields"
      end
      GC.stress = false
      rejections.last == ["unix", 400, rejections.last[2], false] or abort "told #{rejections.last}"
      kept.last.remote_address == "unix" or abort "kept"
      sockets.close
    end
    scheduler.run
    puts "fine"
  RUBY

  def test_under_gc_stress = check("GC.stress = true")

  def test_while_everything_moves = check("GC.auto_compact = true; GC.stress = true")

  def test_compacted_now_and_then = check("compact = true")

  # Nothing says in which order the objects of a connection are freed.
  def test_objects_are_freed_in_any_order
    orders = %i[engine sockets exchange scheduler].permutation.to_a
    program = <<~'RUBY'
      require "socket"
      require "heddle/http"
      order = ARGV.map(&:to_sym)
      held = {}
      scheduler = held[:scheduler] = Heddle::Scheduler.new
      Fiber.set_scheduler(scheduler)
      clients = []
      limits = Heddle::HTTP::Limits.new(write_timeout: 0.05)
      engine = held[:engine] = Heddle::HTTP::Engine.new(limits)
      sockets = held[:sockets] = Heddle::Net::Sockets.new(scheduler, service: engine) do |exchange|
        held[:exchange] = exchange
        exchange.write("w" * 1_000_000)
      rescue Heddle::ClientGoneError
        nil
      end
      [["GET / HTTP/1.1\r\nHost: a\r\n\r\n"], ["GET /"], ["POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab"],
       []].each do |pieces|
        mine, client = UNIXSocket.pair
        sockets.adopt(mine)
        mine.close
        pieces.each { |piece| client.write(piece) }
        clients << client
      end
      Fiber.schedule { 5.times { scheduler.yield } }
      scheduler.run
      raise "not served" unless held[:exchange]
      sockets.connections == 3 or raise sockets.inspect
      exit if order.empty?
      Fiber.set_scheduler(nil)
      scheduler = engine = sockets = mine = nil
      order.each do |name|
        held.delete(name)
        GC.start
        Array.new(1_000) { "x" * 100 }
      end
      GC.start
    RUBY
    [[], *orders.each_slice(6).map(&:first)].each do |order|
      output, status = ruby(program, *order.map(&:to_s))

      assert_equal ["", true], [plain(output), status.success?], order.inspect
    end
  end

  # As many as are there at once are kept for the next ones, up to a limit.
  def test_exchanges_are_used_again
    require "objspace"
    engine = first = nil
    serve(*Array.new(20) { GET * 16 }) do |exchange|
      engine = exchange.engine
      first ||= ObjectSpace.memsize_of(engine)
      reply(exchange, "")
    end

    assert_operator ObjectSpace.memsize_of(engine) - first, :<, 5_000
  end

  private

  def check(how)
    output, status = ruby(PROGRAM.sub("HOW", how), flags: %w[-W:no-experimental])

    assert_equal "fine\n", plain(output)
    assert_predicate status, :success?
  end

  # What a process said, without the notes that a sanitizer may make.
  def plain(output) = output.lines.grep_v(/ASan|False positive|sanitizers/).join
end
