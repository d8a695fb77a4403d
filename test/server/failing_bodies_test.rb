# frozen_string_literal: true

# test: smoke

require "test_helper"
require "server/server_helpers"
require "support/h2_client"

# Bodies that raise: while nothing of the response has left the client gets a 500, afterwards a response that it can see
# is incomplete.
class FailingBodiesTest < Minitest::Test
  include ServerHelpers

  # Calls a block for its content.
  class Body
    def initialize(&block) = @block = block
    def each(&) = @block.call(&)
  end

  LARGE = { "x-large" => "x" * 10_000 }.freeze
  # The client has the head.
  SEEN = Thread::Queue.new
  # What an application that is reached by `/each/NAME` and `/callable/NAME` does.
  FAILURES = {
    "first" => ->(_write) { raise "first" },
    "large" => ->(_write) { raise "large" },
    "length" => ->(_write) { raise "length" },
    "second" => lambda do |write|
      write.call("a")
      raise "second"
    end,
    "waits" => ->(_write) { SEEN.pop && raise("waits") },
    "events" => ->(_write) { raise "events" },
    "hints" => ->(_write) { raise "hints" },
    "fine" => ->(write) { write.call("fine") },
    "none" => ->(_write) {}
  }.freeze
  HEADERS = { "large" => LARGE, "length" => { "content-length" => "5" },
              "events" => { "content-type" => "text/event-stream" } }.freeze

  def self.callable(act)
    lambda do |stream|
      act.call(stream.method(:write))
      stream.close
    end
  end

  APP = lambda do |env|
    kind, name = env["PATH_INFO"].split("/")[1..]
    env["rack.early_hints"]&.call("link" => "</a.css>; rel=preload") if name == "hints"
    act = FAILURES.fetch(name)
    body = kind == "each" ? Body.new { |&write| act.call(write) } : callable(act)
    [200, HEADERS.fetch(name, {}).dup, body]
  end
  private_constant :Body, :LARGE, :SEEN, :FAILURES, :HEADERS, :APP

  MODES = [{ mode: :fiber }, { mode: :fiber, threads: 2 }, { mode: :thread, threads: 2 }, { mode: :single }].freeze
  KINDS = %w[each callable].freeze
  private_constant :MODES, :KINDS

  # @return [Array] status, content, and whether the client can see that it is complete
  def ask(path)
    socket = connect
    socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    head = Timeout.timeout(PATIENCE) { socket.gets("\r\n\r\n") }
    head = socket.gets("\r\n\r\n") while head.start_with?("HTTP/1.1 1")
    SEEN << true if path.end_with?("/waits")
    content = read_all(socket)
    whole = head.match?(/^content-length: #{content.bytesize}\r?$/i) || content.end_with?("0\r\n\r\n")
    [head[/ (\d+) /, 1], content, whole]
  ensure
    socket&.close
  end

  # The same over HTTP/2.
  def ask_h2(path)
    client = H2Client.new(connect)
    client.send_preface
    client.send_frame("HEADERS es+eh 1 :method=GET :scheme=http :authority=localhost :path=#{path}")
    frames = []
    until frames.last && (frames.last.end_stream? || frames.last.type == "RST_STREAM")
      frame = client.read_frame or break
      frames << frame if frame.stream == 1
      SEEN << true if frame.type == "HEADERS" && path.end_with?("/waits")
    end
    heads, rest = frames.partition { |frame| frame.type == "HEADERS" }
    [status_of(heads.last), rest.select { |frame| frame.type == "DATA" }.map(&:payload).join, frames.last.end_stream?]
  ensure
    client&.close
  end

  # A status of HPACK's static table: 200 is its entry 8, 500 its entry 14.
  def status_of(head) = { 0x88 => "200", 0x8e => "500" }.fetch(head.payload.getbyte(0))

  def serving(**options) = super(APP, lint: false, early_hints: :always, **options)

  # However slow this machine is, a thread fails in time.
  def serving_at_leisure(**, &)
    Constants.replace(Heddle::Rack::ExchangeProxy, :HEAD_DELAY, 600) { serving(**, &) }
  end

  MODES.each do |options|
    mode = options.values.join("_")

    KINDS.product(%w[first large length hints]) do |kind, name|
      define_method("test_#{kind}_body_that_raises_before_its_first_part_is_a_500_#{name}_#{mode}") do
        serving_at_leisure(**options) do
          [ask("/#{kind}/#{name}"), ask_h2("/#{kind}/#{name}")].each do |status, content, whole|
            assert_equal ["500", true], [status, whole]
            assert_includes content, "500 Internal Server Error"
          end
        end
        assert_includes errors.string, name
      end
    end

    KINDS.product(%w[second waits events]) do |kind, name|
      define_method("test_#{kind}_body_that_raises_after_its_head_has_left_is_incomplete_#{name}_#{mode}") do
        serving(**options) do
          assert_equal ["200", false], ask("/#{kind}/#{name}").values_at(0, 2)
          assert_equal ["200", false], ask_h2("/#{kind}/#{name}").values_at(0, 2)
        end
      end
    end

    define_method("test_bodies_that_do_not_fail_are_complete_in_mode_#{mode}") do
      serving(**options) do
        KINDS.each do |kind|
          assert_equal ["200", "4\r\nfine\r\n0\r\n\r\n", true], ask("/#{kind}/fine")
          assert_equal ["200", "fine", true], ask_h2("/#{kind}/fine")
          assert_equal ["200", "0\r\n\r\n", true], ask("/#{kind}/none")
          assert_equal ["200", "", true], ask_h2("/#{kind}/none")
        end
      end
    end
  end
end
