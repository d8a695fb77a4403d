# frozen_string_literal: true

require "socket"
require "heddle/net/connector"
require_relative "support/loop_helpers"

# The table of docs/concurrency.md: what each wait does when its time is over, and when what it waits for is closed.
class WaitsTest < Minitest::Test
  include Heddle::LoopHelpers

  ROW = /^\| `(?<wait>[^`]+)`[^|]*\|[^|]*\| `(?<late>[^`]+)` \| (?:`(?<closed>[^`]+)`|–)/
  TABLE = File.read(File.expand_path("../../docs/concurrency.md", __dir__))[/^## Time limits of waits$.*/m]
              .scan(ROW).freeze

  # Each gives what waits, called with the time limit.
  WAITS = {
    "Heddle::Task#wait" => -> { Heddle.async(background: true) { forever }.method(:wait) },
    "Heddle::Channel#pop" => -> { closing(Heddle::Channel.new) { |one, **limit| one.pop(**limit) } },
    "Heddle::Channel#push" => -> { closing(Heddle::Channel.new(0)) { |one, **limit| one.push(1, **limit) } },
    "Heddle::Channel.select" => -> { closing(Heddle::Channel.new) { |one, **limit| one.class.select(one, **limit) } },
    "Heddle::Condition#wait" => -> { Heddle::Condition.new.method(:wait) },
    "Heddle::Net::OutboundConnection#readpartial" =>
      -> { closing(connection) { |one, **limit| one.readpartial(1, **limit) } },
    "Heddle::Net::OutboundConnection#write" => -> { closing(connection) { |one, **limit| one.write(LARGE, **limit) } },
    "Heddle::Semaphore#acquire" => -> { Heddle::Semaphore.new(1).tap(&:acquire).method(:acquire) },
    "Heddle::Barrier#wait" => -> { Heddle::Barrier.new(2).method(:wait) },
    "Heddle::Promise#wait" => -> { Heddle::Promise.new.method(:wait) },
    "Heddle::Promise#value" => -> { Heddle::Promise.new.method(:value) },
    "Heddle::Pool#acquire" => -> { closing(pool) { |one, **limit| one.acquire(**limit) } },
    "Heddle::Pool#with" => -> { closing(pool) { |one, **limit| one.with(**limit) { flunk } } },
    "Heddle.timeout" => -> { ->(timeout:) { Heddle.timeout(timeout) { forever } } }
  }.freeze
  LARGE = "x" * (32 << 20)

  def teardown = [@listener, @peer].compact.each(&:close)

  def test_table_lists_every_wait
    assert_equal WAITS.keys, TABLE.map(&:first)
  end

  WAITS.each_with_index do |(name, prepare), index|
    _, late, closed = TABLE[index]

    define_method(:"test_#{name}_ends_as_the_table_says_when_its_time_is_over") do
      in_loop { assert_equal late, outcome { instance_exec(&prepare).call(timeout: 0.001) } }
    end
    next unless closed

    define_method(:"test_#{name}_ends_as_the_table_says_when_it_is_closed") do
      in_loop do
        wait = instance_exec(&prepare)
        waiting = Heddle.async { outcome { wait.call } }
        turns
        @closes.close

        assert_equal [closed] * 2, [waiting.value, outcome { wait.call }]
      end
    end
  end

  private

  # @return [Proc] waits for the subject, which the test closes
  def closing(subject, &wait)
    @closes = subject
    ->(**limit) { wait.call(subject, **limit) }
  end

  def outcome
    yield.inspect
  rescue StandardError => e
    e.class.name
  end

  def connection
    @listener = TCPServer.new("127.0.0.1", 0)
    Heddle::Net.connect("127.0.0.1:#{@listener.local_address.ip_port}").tap { @peer = @listener.accept }
  end

  # Another task has the only one.
  def pool
    Heddle::Pool.new(max: 1) { Object.new }.tap do |pool|
      Heddle.async(background: true) { pool.acquire && forever }
      turns
    end
  end
end
