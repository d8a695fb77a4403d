# frozen_string_literal: true

# test: each selector
# test: sanitize

require "heddle/rack"
require "tmpdir"
require_relative "support/sockets_case"
require_relative "../http/support/conversation"

# Output of a connection that the kernel has not taken yet: marks, order, slow readers, memory.
module SendingTests
  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
  FULL = 262_144
  LOW = 65_536

  # @return [Heddle::TestHelpers::Conversation] with a client that does not read before it is told
  def converse(answer, reads: false, **limits)
    scheduled do |scheduler|
      @conversation = conversation = Heddle::TestHelpers::Conversation.new(scheduler, set:, reads:, limits:, &answer)
      conversation.say(GET)
      yield conversation
      raise conversation.raised.first if conversation.raised.any?
    ensure
      conversation&.close
    end
  end

  # What the kernel takes for a client that reads nothing.
  def kernel_room
    mine, client = UNIXSocket.pair
    room = 0
    while (sent = mine.write_nonblock("x" * 65_536, exception: false)).is_a?(Integer)
      room += sent
    end
    room
  ensure
    [mine, client].each(&:close)
  end

  def test_a_writer_continues_until_the_output_is_full_and_again_once_it_is_low
    written = 0
    room = kernel_room
    answer = lambda do |exchange|
      100.times do
        exchange.write("x" * 20_000)
        written += 20_000
      end
      exchange.drain
      exchange.close
    end
    converse(answer) do |conversation|
      conversation.await { before = written and 20.times { Fiber.scheduler.yield } and before == written }

      assert_operator written, :>=, FULL
      assert_operator written, :<=, FULL + room + 20_000
      stopped = written
      taken = conversation.client.readpartial(10_000).bytesize
      10.times { Fiber.scheduler.yield }

      assert_equal stopped, written, "the output is not low yet"
      conversation.output << ("x" * taken)
      conversation.read
      conversation.await_end

      assert_equal 2_000_000, conversation.output.bytesize
      assert_equal 2_000_000, written
    end
  end

  def test_small_and_large_pieces_arrive_in_order_at_a_slow_reader
    pieces = Array.new(300) { |n| n.to_s * (n % 7 == 0 ? 5_000 : n) }
    answer = lambda do |exchange|
      pieces.each_slice(10) do |some|
        some.size.even? ? exchange.write(some) : some.each { |piece| exchange.write(piece) }
        Fiber.scheduler.yield if some.first.size % 3 == 0
      end
      exchange.drain
      exchange.close
    end
    converse(answer) do |conversation|
      output = +""
      while output.bytesize < pieces.sum(&:bytesize)
        output << conversation.client.readpartial(3_000)
        Fiber.scheduler.yield
      end

      assert_equal pieces.join, output
      conversation.read
      conversation.await_end
    end
  end

  def test_a_string_that_is_changed_after_it_was_written_is_sent_as_it_was
    answer = lambda do |exchange|
      [20_000, 100].each do |size|
        text = +"a" * size
        exchange.write(text)
        text.replace("b" * size)
      end
      Heddle::Rack.respond(exchange, [200, {}, [@large = +"c" * 1_000_000]], false)
      @large.replace("d" * 1_000_000)
    end
    converse(answer) do |conversation|
      conversation.read
      conversation.await { conversation.output.count("c") >= 1_000_000 }

      assert_operator conversation.output, :start_with?, "a" * 20_100
      refute_match(/b|d{2}/, conversation.output.sub(/HTTP.*?\r\n\r\n/m, ""))
    end
  end

  # Only those that have something to say are looked at in the next turn, whoever else is behind.
  def test_slow_readers_do_not_delay_others
    scheduled do |scheduler|
      engine = Heddle::HTTP::Engine.new
      sockets = Heddle::Net::Sockets.new(scheduler, set:, service: engine) do |exchange|
        next Heddle::Rack.respond(exchange, [200, {}, ["s" * 2_000_000]], false) if exchange.target == "/slow"

        exchange.write("q")
        until_true { exchange.closed? }
      end
      clients = %w[/slow /slow /quick /slow /quick].map do |path|
        mine, client = UNIXSocket.pair
        sockets.adopt(mine)
        mine.close
        client.write(GET.sub("/", path))
        client
      end

      assert_equal %w[q q], [clients[2].readpartial(10), clients[4].readpartial(10)]
      assert_operator clients[0].readpartial(10), :start_with?, "HTTP"
    ensure
      sockets.close
      clients.each(&:close)
    end
  end

  def test_a_full_output_ends_with_its_connection
    answer = lambda do |exchange|
      error = assert_raises(Heddle::ClientGoneError) { exchange.write("x" * 2_000_000) }

      assert_match(/EPIPE|ECONNRESET|closed/, error.message)
    end
    converse(answer) do |conversation|
      5.times { Fiber.scheduler.yield }
      conversation.vanish
      conversation.await { !conversation.open? }
    end
  end

  def test_a_file_is_sent_without_its_position
    body = Random.new(2).bytes(3_000_000)
    with_file(body) do |file|
      answer = lambda do |exchange|
        exchange.write("head:")
        exchange.send_file(file, 1000, 2_000_000)
      end
      converse(answer, reads: true) do |conversation|
        conversation.await { conversation.output.bytesize == 2_000_005 }

        assert_equal "head:#{body.byteslice(1000, 2_000_000)}".hash, conversation.output.hash
      end
      assert_equal 0, file.pos
    end
  end

  def test_a_file_that_is_too_short_is_an_error
    with_file("short") do |file|
      answer = lambda do |exchange|
        error = assert_raises(EOFError) { exchange.send_file(file, 1, 10) }

        assert_match(/6 bytes are missing/, error.message)
        exchange.send_file(file, 0, 0)
        exchange.close
      end
      converse(answer, reads: true) do |conversation|
        conversation.await { conversation.output == "hort" && !conversation.open? }
      end
    end
  end

  def test_a_file_for_a_client_that_takes_nothing_ends_the_request
    with_file("x" * 2_000_000) do |file|
      answer = lambda do |exchange|
        error = assert_raises(Heddle::ClientGoneError) { exchange.send_file(file, 0, 2_000_000) }

        assert_match(/read nothing of the response/, error.message)
      end
      converse(answer, write_timeout: 0.05) { |conversation| conversation.await { !conversation.open? } }
    end
  end

  def with_file(content, &block)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "file")
      File.binwrite(path, content)
      File.open(path, "rb", &block)
    end
  end

  PROGRAM = <<~'RUBY'
    require "socket"
    require "tempfile"
    require "heddle/rack"
    Heddle::HTTP::RequestBody
    compact = false
    scheduler = Heddle::Scheduler.new
    Fiber.set_scheduler(scheduler)
    engine = Heddle::HTTP::Engine.new
    file = Tempfile.new("heddle")
    file.write("f" * 500_000)
    file.flush
    sockets = Heddle::Net::Sockets.new(scheduler, set: ARGV[0].to_sym, service: engine) do |exchange|
      8.times { |n| exchange.write([n.to_s * 20_000, "-" * n]) }
      exchange.send_file(file, 0, 500_000)
      Heddle::Rack.respond(exchange, [200, {}, Array.new(8) { |n| n.to_s * 30_000 }], false)
    end
    Fiber.schedule do
      mine, client = UNIXSocket.pair
      sockets.adopt(mine)
      mine.close
      HOW
      client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      output = +""
      until output.end_with?("7" * 30_000)
        Array.new(100) { "garbage" * 1_000 } unless GC.stress
        GC.compact if compact
        output << client.readpartial(150_000)
      end
      GC.stress = false
      head = output.slice!(/HTTP.*?\r\n\r\n/m) or abort "no head"
      output == (0..7).map { |n| n.to_s * 20_000 + "-" * n }.join + "f" * 500_000 +
        (0..7).map { |n| n.to_s * 30_000 }.join or abort "other"
      sockets.close
      client.close
    end
    scheduler.run
    puts "fine"
  RUBY

  ["GC.stress = true", "GC.auto_compact = true; GC.stress = true", "compact = true"].each_with_index do |how, number|
    define_method(:"test_strings_wait_unmoved_and_uncollected_#{number}") do
      output, status = ruby(PROGRAM.sub("HOW", how), set.to_s, flags: %w[-W:no-experimental])

      assert_equal ["fine\n", true], [plain(output), status.success?]
    end
  end
end
Heddle::TestHelpers.with_each_event_set(SendingTests)
