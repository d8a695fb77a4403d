# frozen_string_literal: true

require "test_helper"
require "json"
require "tmpdir"
require "heddle/pubsub"
require_relative "served_example"
require_relative "support/page_policy"

# examples/ticker, with its market as a process of its own.
class TickerExampleTest < Minitest::Test
  include PagePolicy

  PATIENCE = 60
  MARKET = "market.rb"

  def setup
    @folder = Dir.mktmpdir
    @control = "unix:#{@folder}/control.sock"
    @served = ServedExample.new("ticker", environment: { "HEDDLE_CONTROL" => @control })
  end

  def teardown
    @sockets&.each(&:close)
    @served.stop
    FileUtils.remove_entry(@folder)
  end

  # Runs market.rb against this server until the block ends.
  # @yieldparam output [IO] what it says
  def market(control = @control)
    output, writer = IO.pipe
    pid = spawn(RbConfig.ruby, "-I#{File.expand_path("../../lib", __dir__)}", MARKET, control,
                chdir: File.expand_path("../../examples/ticker", __dir__), in: File::NULL, out: writer, err: writer)
    writer.close
    process = Process.detach(pid)
    yield output
    process
  ensure
    signal_end(pid) if process&.alive?
    process&.join(PATIENCE)
    output.close
  end

  def signal_end(pid)
    Process.kill("INT", pid)
  rescue Errno::ESRCH
    # It has ended by itself.
  end

  # @return [TCPSocket] after the head of the answer
  def listen(fields = "")
    socket = TCPSocket.new(@served.uri.host, @served.uri.port)
    (@sockets ||= []) << socket
    socket.timeout = PATIENCE
    socket.write("GET /prices HTTP/1.1\r\nHost: a\r\n#{fields}\r\n")
    assert_match(%r{^content-type: text/event-stream\r$}, socket.gets("\r\n\r\n"))
    socket
  end

  # @return [Array(String, Hash)] position and prices of the next event that has any
  def prices(socket)
    position = nil
    while (line = socket.gets)
      position = line[/\Aid: (\S+)/, 1] || position
      return [position, JSON.parse(line.delete_prefix("data: "))] if line.start_with?("data: {")
    end
    flunk "the stream has ended"
  end

  def test_prices_of_the_market_come_to_every_listener
    first, second = Array.new(2) { listen }
    market do
      heard = prices(first)

      assert_equal %w[gold silver copper], heard.last.keys
      assert_equal heard, prices(second)
    end
  end

  def test_a_page_that_is_opened_later_begins_with_the_prices_before
    first = listen
    market { @before = Array.new(2) { prices(first) } }
    late = listen

    assert_equal @before, Array.new(2) { prices(late) }
    back = listen("Last-Event-ID: #{@before.first.first}\r\n")
    assert_equal @before.last, prices(back)
  end

  def test_a_market_without_a_server_says_what_to_start
    process = market("unix:#{@folder}/nobody.sock") { |output| @said = output.read }

    refute_predicate process.value, :success?
    assert_includes @said, "Start `heddle serve` in this folder first."
  end
end
